"""`hookledger deliveries`: find what was received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.documents import found_document
from hookledger.cli.errors import one_line, say
from hookledger.cli.filtering import (
    PANEL,
    EventIdOption,
    FingerprintOption,
    IdsArgument,
    IdsFrom,
    OutcomeOption,
    ResourceOption,
    SettledSinceOption,
    SettledUntilOption,
    SinceOption,
    SourceOption,
    TextOption,
    TypeOption,
    UntilOption,
    read_filter,
    read_ids,
)
from hookledger.cli.options import LARGEST_NUMBER, DatabaseUrl, Debug, Schema
from hookledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from hookledger.operate.find import Found

NOTHING_MATCHED = 3
LONGEST_ERROR = 80


def deliveries(
    ids: IdsArgument = None,
    ids_from: IdsFrom = None,
    source: SourceOption = None,
    type: TypeOption = None,
    resource: ResourceOption = None,
    event_id: EventIdOption = None,
    outcome: OutcomeOption = None,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="NAME", help="In this state: pending, dead, settled.", rich_help_panel=PANEL),
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    settled_since: SettledSinceOption = None,
    settled_until: SettledUntilOption = None,
    fingerprint: FingerprintOption = None,
    text: TextOption = None,
    before: Annotated[
        int | None,
        typer.Option(
            "--before", metavar="ID", min=0, max=LARGEST_NUMBER, help="Only older ones: the next page begins there."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="As many at the most.")] = 50,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object with all of them.")] = False,
    ndjson: Annotated[bool, typer.Option("--ndjson", help="Print one JSON object for each, on a line.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print ids only, for --ids-from.")] = False,
    fail_if_none: Annotated[bool, typer.Option("--fail-if-none", help="End with status 3 if there is none.")] = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """List deliveries, the newest first.

    All filters must hold. Times are shown in UTC. `hookledger show ID` tells all about one.
    """
    from hookledger.cli.database import bounded_engine_of
    from hookledger.operate.find import LARGEST_PAGE, Page, find, find_all, find_ids

    wanted = read_filter(
        ids=read_ids(ids, ids_from),
        source=source,
        type=type,
        resource=resource,
        event_id=event_id,
        outcome=outcome,
        state=state,
        since=since,
        until=until,
        settled_since=settled_since,
        settled_until=settled_until,
        fingerprint=fingerprint,
        text=text,
    )
    with bounded_engine_of(database_url, schema) as engine, engine.connect() as connection:
        if quiet:
            found_ids = find_ids(connection, schema, wanted, before=before, limit=limit)
            for id in found_ids:
                print(id)
            _end(bool(found_ids), fail_if_none=fail_if_none)
            return
        if ndjson:
            any_found = False
            for found in find_all(connection, schema, wanted, before=before, limit=limit):
                any_found = True
                print_json(found_document(found))
            _end(any_found, fail_if_none=fail_if_none)
            return
        if limit <= LARGEST_PAGE:
            page = find(connection, schema, wanted, before=before, limit=limit)
        else:
            many = tuple(find_all(connection, schema, wanted, before=before, limit=limit))
            page = Page(many, many[-1].id if len(many) == limit else None)
        any_at_all = bool(page.deliveries) or bool(find_ids(connection, schema, limit=1))
    if json:
        print_json({"deliveries": [found_document(each) for each in page.deliveries], "before": page.before})
    else:
        _print(page.deliveries, page.before, any_at_all=any_at_all)
    _end(bool(page.deliveries), fail_if_none=fail_if_none)


def outcome_in_words(found: Found) -> str:
    """What became of it, in a few words."""
    outcomes = found.outcomes
    told = ", ".join(
        value if name == "-" or len(set(outcomes.values())) == len(outcomes) == 1 else f"{name} {value}"
        for name, value in outcomes.items()
    )
    parts = [told] if told else []
    if found.reason is not None:
        parts.append(found.reason)
    if found.parked:
        parts.append("paused")
    if found.error is not None:
        line = one_line(found.error.partition("\n")[0])
        parts.append(line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]} ...")
    return "; ".join(parts)


def _print(found: tuple[Found, ...], before: int | None, *, any_at_all: bool) -> None:
    from hookledger.operate.moments import shown_moment

    if not found:
        say("no delivery matches" if any_at_all else "no deliveries yet")
        return
    rows = [
        [
            str(each.id),
            shown_moment(each.received_at),
            each.source,
            each.event_type,
            each.resource or "",
            each.state.value,
            "" if each.attempts is None else str(each.attempts),
            outcome_in_words(each),
        ]
        for each in found
    ]
    headings = ["id", "received", "source", "type", "resource", "state", "attempts", "outcome"]
    print_table(headings, rows, numbers=False)
    if before is not None:
        say(f"more: --before {before}")


def _end(any_found: bool, *, fail_if_none: bool) -> None:
    if fail_if_none and not any_found:
        raise typer.Exit(NOTHING_MATCHED)
