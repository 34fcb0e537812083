"""`hookledger replays`: what replays there are and were, and stopping one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hookledger.cli.ended import ended_in_words
from hookledger.cli.errors import say
from hookledger.cli.options import LARGEST_NUMBER, DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import print_json, print_table
from hookledger.cli.who import who

if TYPE_CHECKING:
    from hookledger.operate.replay import Replay

HEADINGS = ("id", "kind", "state", "who", "started", "queued", "of", "last batch", "result", "filter", "reason")


def list_replays(
    context: typer.Context,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="So many at the most.")] = 50,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print the ids alone.")] = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """List replays: those that run first, then the newest first."""
    if context.invoked_subcommand is not None:
        return
    from hookledger.cli.database import bounded_engine_of
    from hookledger.operate.replay import newest

    with bounded_engine_of(database_url, schema) as engine:
        found = newest(engine, schema, most)
    if json:
        print_json({"replays": [one.as_document() for one in found]})
    elif quiet:
        for one in found:
            print(one.id)
    elif not found:
        say("no replays yet; `hookledger replay --dry-run` shows what one would do")
    else:
        print_table(HEADINGS, [_row(one) for one in found], numbers=False)


def stop(
    number: Annotated[
        int, typer.Argument(metavar="REPLAY", max=LARGEST_NUMBER, help="Its number, as `hookledger replays` shows it.")
    ],
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """End a replay after the batch that it is at. `hookledger replay --resume` goes on with it."""
    from hookledger.cli.database import engine_of
    from hookledger.ledger.ready import open_ready
    from hookledger.ledger.revision import command
    from hookledger.operate import replay as replays

    with engine_of(database_url) as engine:
        open_ready(engine, schema)
        stopped = replays.stop(engine, schema, number, why=f"stopped by {who(None)}")
    if json:
        print_json(stopped.as_document())
    else:
        print(ended_in_words(stopped))
        say(f"{command(f'replay --resume {number}', schema)} goes on with it")


def build(markup: Literal["markdown", "rich"] | None) -> typer.Typer:
    """The group of commands."""
    app = typer.Typer(help="List replays, or stop one.", invoke_without_command=True, rich_markup_mode=markup)
    app.callback()(list_replays)
    app.command("stop")(stop)
    return app


def _row(replay: Replay) -> list[str]:
    from datetime import datetime

    from hookledger.operate.moments import shown_moment

    at = replay.result.get("batch_at")
    outcomes = replay.result.get("outcomes", {})
    result = ", ".join(f"{count:,} {name}" for name, count in sorted(outcomes.items()))
    why = replay.result.get("why")
    shown = {
        name: value if name != "handler" else value["handler"] for name, value in replay.selection.as_document().items()
    }
    ids = shown.get("ids")
    if isinstance(ids, list) and len(ids) > 5:
        shown["ids"] = f"{len(ids)} ids"
    return [
        str(replay.id),
        replay.kind.value,
        replay.state.value,
        replay.who,
        shown_moment(replay.started_at),
        f"{replay.queued:,}",
        f"{replay.plan.total:,}",
        shown_moment(datetime.fromisoformat(at)) if isinstance(at, str) else "",
        f"{result} ({why})" if why else result,
        " ".join(f"{name}={value}" for name, value in shown.items()),
        replay.reason or "",
    ]
