"""`hookledger rebuild`: run the stored deliveries of a handler into a schema beside the live one, and compare."""

from __future__ import annotations

import json as json_format
import signal
import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookledger.cli.backfill import HandlerArgument
from hookledger.cli.confirm import confirm
from hookledger.cli.errors import INTERRUPTED, PARTLY, WrongUse, say
from hookledger.cli.load import load_inbox_with_handlers
from hookledger.cli.options import DatabaseUrl, Debug, Json
from hookledger.cli.output import counted, print_json, print_table
from hookledger.cli.progress import Progress
from hookledger.cli.replaying import InboxOption, Yes

if TYPE_CHECKING:
    from sqlalchemy import URL

    from hookledger.operate.rebuild import Difference, Rebuilt, Shadow


def rebuild(
    handler: HandlerArgument,
    into: Annotated[
        str, typer.Option("--into", metavar="SCHEMA", help="The shadow schema; it is made, and must hold no ledger.")
    ],
    inbox: InboxOption = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show the resources whose state differs from the live one.")
    ] = False,
    copy_table: Annotated[
        list[str] | None,
        typer.Option(
            "--copy-table", metavar="NAME", help="A table that the handler writes: an empty one like it is made there."
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="So many differences at the most.")] = 1000,
    yes: Yes = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    debug: Debug = False,
) -> None:
    """Run a handler's deliveries into a shadow schema.

    All that are stored, and nothing live is touched. The handler's returned states go into a ledger in that schema,
    and its own tables are looked for there. What it does outside the database is done again. Drop the schema when
    you have seen enough.

    Example: hookledger rebuild keep_order --into rebuilt --inbox hooks:inbox --copy-table orders --diff
    """
    if inbox is None:
        raise WrongUse("a rebuild runs your handler: give --inbox MODULE:INBOX, as for `hookledger worker`")
    loaded = load_inbox_with_handlers(inbox)

    from hookledger.cli.database import engine_of
    from hookledger.engine import database_url as read_url
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.rebuild import differences, prepare

    with engine_of(database_url) as engine:
        open_ready(engine, loaded.schema)
        confirm(
            f"Run {handler} over all its deliveries again, into the schema {into}",
            yes=yes,
            no_terminal=f"this runs {handler} over all its deliveries, into a new schema {into}, and there is no "
            "terminal to ask at: give --yes to do it",
        )
        shadow = prepare(engine, loaded, handler, into, copy_tables=copy_table or ())
        done, interrupted = _run(read_url(database_url), shadow, quiet=json)
        found = list(differences(engine, shadow, most=most)) if diff else []
    if json:
        told: dict[str, Any] = {
            "schema": into,
            "deliveries": done.deliveries,
            "failed": done.failed,
            "gone": done.gone,
            "until_id": done.until_id,
        }
        print_json({**told, **({"differences": [one.as_document() for one in found]} if diff else {})})
    else:
        _tell(done, into, found if diff else None, most)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if done.failed:
        raise typer.Exit(PARTLY)


def _run(url: URL, shadow: Shadow, *, quiet: bool) -> tuple[Rebuilt, bool]:
    import asyncio

    from hookledger.engine import create
    from hookledger.operate.rebuild import rebuild as run

    stopping = threading.Event()

    async def main() -> Rebuilt:
        if shadow.handler.is_async:
            asynchronous = create(url, asynchronous=True, pool_size=2)
            try:
                return await run(asynchronous, shadow, progress=progress.show, stopping=stopping.is_set)
            finally:
                await asynchronous.dispose()
        engine = create(url, pool_size=2)
        try:
            return await run(engine, shadow, progress=progress.show, stopping=stopping.is_set)
        finally:
            engine.dispose()

    def on_signal(number: int, frame: Any) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        say("ending after this batch; once more to break off")
        stopping.set()

    with Progress("rebuild, deliveries", quiet=quiet) as progress:
        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return asyncio.run(main()), stopping.is_set()
        finally:
            for number, usual in before.items():
                signal.signal(number, usual)


def _tell(done: Rebuilt, into: str, found: list[Difference] | None, most: int) -> None:
    say(
        f"{counted(done.deliveries, 'delivery', 'deliveries')} run into {into}, {done.failed:,} of them failed; "
        f"{done.gone:,} left out, their bytes are gone (deliveries up to {done.until_id})"
    )
    if found is None:
        return
    if not found:
        say("no state differs from the live one")
        return
    print_table(
        ["source", "resource", "live", "rebuilt"],
        [[one.source, one.resource, _shown(one.live), _shown(one.shadow)] for one in found],
        numbers=False,
    )
    if len(found) == most:
        say(f"only the first {most:,} are shown; --most shows more")


def _shown(side: dict[str, Any] | None) -> str:
    if side is None:
        return "none"
    if side["deleted"]:
        return "deleted"
    return json_format.dumps(side["state"]) if side["state"] is not None else f"at version {side['version']}"
