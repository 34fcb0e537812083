"""`hookledger prune`: remove what is settled and old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookledger.cli.confirm import confirm
from hookledger.cli.errors import INTERRUPTED, PARTLY, say
from hookledger.cli.going import Going
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import print_json

if TYPE_CHECKING:
    from hookledger.operate.retention import Retention
    from hookledger.operate.retention.prune import Pruned

NEVER = "never"

Payloads = Annotated[
    str, typer.Option("--payloads", metavar="SPAN", help="How long headers and bodies are kept: 30d, 12h, or never.")
]
Deliveries = Annotated[
    str,
    typer.Option("--deliveries", metavar="SPAN", help="How long the rows are kept by which a copy is known."),
]
Effects = Annotated[
    str, typer.Option("--effects", metavar="SPAN", help="How long outcomes are kept, which keep a copy from running.")
]
Kept = Annotated[str, typer.Option("--quarantine", metavar="SPAN", help="How long refused requests are kept.")]
Force = Annotated[
    bool, typer.Option("--force", help="Take horizons shorter than the senders' own time of sending again.")
]


def prune(
    payloads: Payloads = NEVER,
    deliveries: Deliveries = NEVER,
    effects: Effects = NEVER,
    quarantine: Kept = NEVER,
    inbox: Annotated[
        str | None,
        typer.Option("--inbox", metavar="MODULE:INBOX", help="Tells the provider of each source; else the name does."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Force = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Remove what is settled and old; what is pending or dead stays.

    Payloads go by whole weeks, without work on their rows. Run it as the owner of the tables, e.g. once a day, or let
    workers do it (`hookledger worker --prune-payloads 30d`). Receivers and workers go on meanwhile.

    Exit status: 0 done, 1 failed or declined, 2 wrong use, 5 something was in use and stays until the next run.

    Example: hookledger prune --payloads 30d --deliveries 180d --effects never
    """
    from dataclasses import replace

    from hookledger.cli.database import engine_of
    from hookledger.cli.errors import WrongUse
    from hookledger.cli.load import load_inbox, schema_of
    from hookledger.ledger.ready import open_ready
    from hookledger.ledger.schema import tables
    from hookledger.operate.locked import reading
    from hookledger.operate.retention.brief import Stopped
    from hookledger.operate.retention.horizons import retry_times, sources_in
    from hookledger.operate.retention.prune import PATIENCE, plan_prune, require_owner
    from hookledger.operate.retention.prune import prune as remove

    kept = retention(payloads, deliveries, effects, quarantine, force=force)
    if not any(kept.named.values()):
        raise WrongUse("nothing would be pruned: give a horizon, e.g. --payloads 30d")
    loaded = None if inbox is None else load_inbox(inbox)
    schema = schema_of(loaded, schema)
    with engine_of(database_url) as engine:
        with reading(engine, schema) as reader:
            open_ready(reader, schema)
        # Before anything is looked at, as some of that is the owner's as well.
        require_owner(engine, schema)
        with reading(engine, schema) as reader, reader.connect() as connection:
            kept.require(retry_times(sources_in(connection, tables(schema)), loaded))
        planned = plan_prune(engine, schema, kept)
        if dry_run:
            _show(planned, json=json, would=True)
            return
        if not yes:
            _show(planned, json=False, would=True, to_stderr=True)
        confirm("Remove this for good", yes=yes)
        removed: dict[str, int] = {}
        with Going() as going:

            def progress(what: str, count: int) -> None:
                removed[what] = removed.get(what, 0) + count
                going.tell("removed " + ", ".join(f"{count:,} {what}" for what, count in removed.items()))

            try:
                pruned = remove(
                    engine, schema, kept, patience=replace(PATIENCE, stopping=going.stopping), progress=progress
                )
            except Stopped as error:
                say(f"{error}; run the same command again to go on")
                raise typer.Exit(INTERRUPTED) from None
        _show(pruned, json=json, would=False)
        if not pruned.is_whole:
            raise typer.Exit(PARTLY)


def retention(payloads: str, deliveries: str, effects: str, quarantine: str, *, force: bool) -> Retention:
    """The horizons as they were written."""
    from hookledger.operate.retention import Retention
    from hookledger.operate.spans import read_span

    return Retention(read_span(payloads), read_span(deliveries), read_span(effects), read_span(quarantine), force=force)


def as_document(pruned: Pruned) -> dict[str, Any]:
    """What --json prints; times are ISO 8601 with zone."""
    return {
        "at": pruned.at.isoformat(),
        "partitions": [
            {
                "name": drop.partition.name,
                "from": drop.partition.start and drop.partition.start.isoformat(),
                "to": drop.partition.end and drop.partition.end.isoformat(),
                "bytes": drop.partition.size,
                "unsettled_payloads": drop.unsettled,
                "kept": drop.kept,
            }
            for drop in pruned.drops
        ],
        "moved_payloads": pruned.moved,
        "rows": pruned.counts,
        "rows_bounded": pruned.is_bounded,
        "by_another": pruned.by_another,
        "put_off": pruned.put_off,
    }


def _show(pruned: Pruned, *, json: bool, would: bool, to_stderr: bool = False) -> None:
    if json:
        print_json(as_document(pruned))
        return
    tell = say if to_stderr else print
    for drop in pruned.drops:
        size = f"{drop.partition.size / 1024 / 1024:,.1f} MiB"
        if drop.kept is not None:
            tell(f"{drop.partition.name} ({size}) stays: {drop.kept}")
            continue
        moved = f", {drop.unsettled:,} payloads of unsettled deliveries moved first" if drop.unsettled else ""
        tell(f"{'would drop' if would else 'dropped'} {drop.partition.name} ({size}){moved}")
    for what, count in pruned.counts.items():
        most = "+" if pruned.is_bounded and count >= 10_000 else ""
        tell(f"{'would remove' if would else 'removed'} {count:,}{most} {_ROWS[what]}")
    if not pruned.drops and not any(pruned.counts.values()) and pruned.is_whole:
        say(f"nothing {'would be' if would else 'was'} removed: nothing that is settled is over its horizon")
    if pruned.put_off is not None:
        tell(pruned.put_off)
    if pruned.by_another:
        tell("somebody else is pruning this ledger now; it does the rest")


_ROWS = {
    "payloads": "payloads of the default partition",
    "deliveries": "deliveries, with their redeliveries and failures",
    "effects": "effects",
    "quarantine": "refused requests",
}
