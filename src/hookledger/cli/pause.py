"""`hookledger pause` and `hookledger resume`: keep deliveries from handlers for a while."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.documents import pause_document
from hookledger.cli.errors import WrongUse, say
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import counted, print_json, print_table
from hookledger.cli.who import WhoOption, who

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from hookledger.operate.pauses import PauseKind

Source = Annotated[bool, typer.Option("--source", help="NAME is a source.")]
Handler = Annotated[bool, typer.Option("--handler", help="NAME is a handler.")]


def pause(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A source or a handler.")] = None,
    source: Source = False,
    handler: Handler = False,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")] = None,
    by: WhoOption = None,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Pause a source or a handler. Without a name: show what is paused.

    Deliveries of a paused source are received as ever and run once it is resumed. A paused handler alone is left out;
    the other handlers of a delivery do their part. Batches that are under way are finished. Nothing is charged.
    """
    from hookledger.cli.database import bounded_engine_of
    from hookledger.ledger.revision import command
    from hookledger.operate import pauses

    with bounded_engine_of(database_url, schema) as engine:
        if name is None:
            _list(engine, schema, as_json=json)
            return
        kind = _kind(engine, schema, name, source=source, handler=handler)
        is_new = pauses.pause(engine, schema, kind, name, who=who(by), reason=reason)
    if json:
        print_json({"kind": kind.value, "name": name, "paused": True, "changed": is_new})
    else:
        again = f"resume it with {command(f'resume {shlex.quote(name)}', schema)}"
        say(f"the {kind.value} {name} is paused; {again}" if is_new else f"the {kind.value} {name} was paused already")


def resume(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A source or a handler.")],
    source: Source = False,
    handler: Handler = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Resume a source or a handler. What waited for it is due at once.

    Interrupted, it can be run again and does the rest.
    """
    from hookledger.cli.database import bounded_engine_of
    from hookledger.operate import pauses

    def told(count: int) -> None:
        say(f"{counted(count, 'delivery', 'deliveries')} made due")

    with bounded_engine_of(database_url, schema) as engine:
        kind = _kind(engine, schema, name, source=source, handler=handler, paused_first=True)
        progress = told if sys.stderr.isatty() else None
        was_paused, made_due = pauses.resume(engine, schema, kind, name, progress=progress)
        with engine.connect() as connection:
            paused = pauses.read_pauses(connection, schema)
    others = [each.name for each in paused if each.kind is pauses.PauseKind.HANDLER]
    if json:
        print_json({"kind": kind.value, "name": name, "paused": False, "changed": was_paused, "made_due": made_due})
        return
    what = f"the {kind.value} {name} is resumed" if was_paused else f"the {kind.value} {name} was not paused"
    # Which of them that concerns, only a worker knows, which has the handlers.
    still = f"; what the pause of {' or '.join(others)} concerns too is put back" if others else ""
    waited = "1 delivery that waited is" if made_due == 1 else f"{made_due:,} deliveries that waited are"
    say(f"{what}; {waited} due now{still if made_due else ''}")


def _kind(
    engine: Engine, schema: str, name: str, *, source: bool, handler: bool, paused_first: bool = False
) -> PauseKind:
    """Which of the two is meant: as the option says, or as the ledger knows the name."""
    from hookledger.operate.pauses import PauseKind, kinds_known, read_pauses

    if not name:
        raise WrongUse("an empty name is that of no source and no handler")
    if source and handler:
        raise WrongUse("give --source or --handler, not both")
    if source or handler:
        return PauseKind.SOURCE if source else PauseKind.HANDLER
    with engine.connect() as connection:
        kinds = {each.kind for each in read_pauses(connection, schema) if each.name == name} if paused_first else set()
        kinds = kinds or kinds_known(connection, schema, name)
    if len(kinds) == 1:
        return kinds.pop()
    if kinds:
        raise WrongUse(f"{name!r} is a source and a handler: say which with --source or --handler")
    raise WrongUse(f"the ledger knows no source and no handler {name!r}: say what it is with --source or --handler")


def _list(engine: Engine, schema: str, *, as_json: bool) -> None:
    from hookledger.operate.moments import shown_moment
    from hookledger.operate.pauses import read_pauses

    with engine.connect() as connection:
        found = read_pauses(connection, schema)
    if as_json:
        print_json({"pauses": [pause_document(each) for each in found]})
    elif not found:
        say("nothing is paused")
    else:
        rows = [[each.kind.value, each.name, shown_moment(each.since), each.who, each.reason or ""] for each in found]
        print_table(["what", "name", "since", "who", "reason"], rows, numbers=False)
