"""`hookledger erase`: remove for good what requests said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookledger.cli.confirm import confirm_typed
from hookledger.cli.errors import INTERRUPTED, NOTHING, PARTLY, WrongUse, say
from hookledger.cli.filtering import read_filter
from hookledger.cli.going import Going
from hookledger.cli.options import LARGEST_NUMBER, DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import counted as number_of
from hookledger.cli.output import print_json
from hookledger.cli.who import WhoOption, who

if TYPE_CHECKING:
    from hookledger.operate.filters import Filter

WHERE = (
    *("source", "type", "resource", "event-id", "outcome", "state", "since", "until"),
    *("settled-since", "settled-until", "fingerprint", "text"),
)


def erase(
    id: Annotated[
        list[int] | None, typer.Option("--id", metavar="ID", max=LARGEST_NUMBER, help="This delivery; repeatable.")
    ] = None,
    resource: Annotated[
        str | None, typer.Option("--resource", metavar="KEY", help="All that is about this resource, and its states.")
    ] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="NAME", help="Only of this source.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="NAME=VALUE",
            help="A filter of `hookledger deliveries`, e.g. type=invoice.* or until=2031-05-04; repeatable, all must "
            "hold.",
        ),
    ] = None,
    given_who: WhoOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Erase the contents of deliveries for good.

    Body, headers, state and error texts go. The key, the digest, the outcomes and the watermark stay, so that a copy
    that comes later is known. What is pending is left, and told: erase it again once it is settled. Run it as the owner
    of the tables.

    Exit status: 0 done, 1 failed or declined, 2 wrong use, 3 nothing matches, 5 something is pending and was left.

    Example: hookledger erase --resource cus_123 --source stripe
    """
    from dataclasses import asdict, replace

    from hookledger.cli.database import engine_of
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.locked import reading
    from hookledger.operate.retention.brief import Stopped
    from hookledger.operate.retention.erase import PATIENCE, Erased
    from hookledger.operate.retention.erase import erase as remove

    given = (("resource", resource), ("source", source))
    wanted: dict[str, Any] = {name: value for name, value in given if value is not None}
    for name, value in _conditions(where or []):
        if name in wanted:
            raise WrongUse(f"{name.replace('_', '-')} is given twice: once is enough")
        wanted[name] = value
    filter = read_filter(ids=tuple(id) if id else None, **wanted)
    if filter.is_empty:
        raise WrongUse("say what to erase: --id, --resource, --source or --where")
    person = who(given_who)
    with engine_of(database_url) as engine:
        with reading(engine, schema) as reader:
            open_ready(reader, schema)
        counted = remove(engine, schema, filter, who=person, dry_run=True)
        if not dry_run and (counted.deliveries or counted.with_them or counted.states):
            shared = f", with {counted.with_them:,} more that came in the same requests" if counted.with_them else ""
            deliveries = number_of(counted.deliveries, "delivery", "deliveries")
            warning = (
                f"Erase body and headers of {deliveries}{shared}, and their states, for good. "
                "They can never be replayed."
            )
            confirm_typed(warning, _word(filter, counted.deliveries), yes=yes)
            with Going() as going:

                def progress(erased: Erased) -> None:
                    going.tell(f"erased {erased.deliveries:,} of {counted.deliveries:,}")

                try:
                    patience = replace(PATIENCE, stopping=going.stopping)
                    counted = remove(engine, schema, filter, who=person, patience=patience, progress=progress)
                except Stopped as error:
                    say(f"{error}; run the same command again to go on")
                    raise typer.Exit(INTERRUPTED) from None
    if json:
        print_json({**asdict(counted), "dry_run": dry_run})
    else:
        deliveries = number_of(counted.deliveries, "delivery", "deliveries")
        verb = "would erase" if dry_run else "erased"
        shared = f", and {counted.with_them:,} that came in the same requests" if counted.with_them else ""
        print(f"{verb} {deliveries}{shared}; {number_of(counted.states, 'state', 'states')}")
    if counted.pending:
        say(f"{counted.pending:,} were left, as they are pending or came with one that is: erase them again later")
        raise typer.Exit(PARTLY)
    if not (counted.deliveries or counted.with_them or counted.states):
        raise typer.Exit(NOTHING)


def _word(filter: Filter, count: int) -> str:
    if filter.ids is not None and len(filter.ids) == 1:
        return str(filter.ids[0])
    return filter.resource or str(count)


def _conditions(texts: list[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in WHERE:
            raise WrongUse(f"--where takes NAME=VALUE with one of {', '.join(WHERE)}")
        yield name.replace("-", "_"), value
