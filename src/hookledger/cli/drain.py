"""`hookledger drain`: wait until the workers have done all that is due."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.errors import FAILED, say
from hookledger.cli.live import Live
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import print_json

if TYPE_CHECKING:
    from hookledger.operate.draining import Left

SHORTEST_LOOK, LONGEST_LOOK = 0.1, 1.0


def drain(
    source: Annotated[
        str | None, typer.Option("--source", metavar="NAME", help="Wait for deliveries of this source only.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="End with status 1 after so long.")
    ] = None,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Wait until nothing due is pending and nothing is under way.

    Workers must be running. What waits for its next attempt, or is paused, is not waited for. Ends with status 0, or
    with 1 if --timeout came first.
    """
    from hookledger.cli.database import engine_of
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.draining import read_left
    from hookledger.operate.locked import Locked, bounded, telling_who

    started = time.monotonic()
    pause = SHORTEST_LOOK
    with engine_of(database_url) as engine, Live() as live:
        reader = bounded(engine)
        with telling_who(reader, schema):
            open_ready(reader, schema)
        while True:
            try:
                with telling_who(reader, schema), reader.connect() as connection:
                    left = read_left(connection, schema, source)
            except Locked as error:
                if timeout is not None and time.monotonic() - started >= timeout:
                    raise
                live.show(str(error))
                continue
            seconds = time.monotonic() - started
            if left.nothing_due or (timeout is not None and seconds >= timeout):
                break
            live.show(f"{_shown(left.due)} due, {_shown(left.under_way)} under way")
            time.sleep(pause if timeout is None else min(pause, max(0.0, timeout - seconds)))
            pause = min(LONGEST_LOOK, pause * 1.5)
    _tell(left, seconds, as_json=json)
    if not left.nothing_due:
        raise typer.Exit(FAILED)


def _tell(left: Left, seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "drained": left.nothing_due,
                "due": left.due,
                "under_way": left.under_way,
                "paused": left.parked,
                "retrying": left.later,
                "seconds": round(seconds, 3),
            }
        )
        return
    if not left.nothing_due:
        say(f"not drained within {seconds:.0f} s: {_shown(left.due)} due, {_shown(left.under_way)} under way")
        return
    waits = [words for waiting, words in ((left.later, "for their next attempt"), (left.parked, "paused")) if waiting]
    say("drained: nothing due is pending" + (f"; some wait {' and some are '.join(waits)}" if waits else ""))


def _shown(count: int) -> str:
    from hookledger.operate.draining import COUNTED

    return f"{count:,}{'+' if count >= COUNTED else ''}"
