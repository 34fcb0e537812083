"""`hookledger dead`: dead letters in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.documents import iso
from hookledger.cli.errors import one_line, say
from hookledger.cli.filtering import (
    EventIdOption,
    FingerprintOption,
    IdsArgument,
    IdsFrom,
    ResourceOption,
    SinceOption,
    SourceOption,
    TextOption,
    TypeOption,
    UntilOption,
    read_filter,
    read_ids,
)
from hookledger.cli.options import DatabaseUrl, Debug, Schema
from hookledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from hookledger.operate.dead import Group, Groups

LONGEST_ERROR = 100


def dead(
    ids: IdsArgument = None,
    ids_from: IdsFrom = None,
    source: SourceOption = None,
    type: TypeOption = None,
    resource: ResourceOption = None,
    event_id: EventIdOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    fingerprint: FingerprintOption = None,
    text: TextOption = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Groups at the most.")] = 100,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object with all groups.")] = False,
    ndjson: Annotated[bool, typer.Option("--ndjson", help="Print one JSON object for each group, on a line.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print the id of one of each group.")] = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Show dead letters in groups by reason and error.

    The group that grew last comes first. Counts are exact up to 10,000. Those of a group are listed by
    `hookledger deliveries --state dead --fingerprint MARK`.
    """
    from hookledger.cli.database import bounded_engine_of
    from hookledger.operate.dead import read_groups

    wanted = read_filter(
        ids=read_ids(ids, ids_from),
        source=source,
        type=type,
        resource=resource,
        event_id=event_id,
        since=since,
        until=until,
        fingerprint=fingerprint,
        text=text,
    )
    with bounded_engine_of(database_url, schema) as engine, engine.connect() as connection:
        found = read_groups(connection, schema, wanted, limit=limit)
    if json:
        print_json({"groups": [_document(group) for group in found.groups], "groups_in_all": found.in_all})
    elif ndjson:
        for group in found.groups:
            print_json(_document(group))
    elif quiet:
        for group in found.groups:
            print(group.example)
    else:
        _print(found)


def _document(group: Group) -> dict[str, object]:
    return {
        "reason": group.reason,
        "fingerprint": group.fingerprint,
        "count": group.count,
        "precision": "at least" if group.is_bounded else "exact",
        "first_at": iso(group.first_at),
        "last_at": iso(group.last_at),
        "example": group.example,
        "source": group.source,
        "event_type": group.event_type,
        "error": group.error,
    }


def _print(found: Groups) -> None:
    from hookledger.operate.moments import shown_moment

    if not found.groups:
        say("no dead letters")
        return
    rows = [
        [
            f"{group.count:,}{'+' if group.is_bounded else ''}",
            group.reason,
            group.fingerprint,
            shown_moment(group.first_at),
            shown_moment(group.last_at),
            str(group.example),
            f"{group.source} {group.event_type}",
            _shortened(group.error),
        ]
        for group in found.groups
    ]
    headings = ["count", "reason", "fingerprint", "first died", "last died", "example", "of", "error"]
    print_table(headings, rows, numbers=False, whole=("count", "fingerprint", "example"))
    if found.in_all > len(found.groups):
        say(f"{found.in_all - len(found.groups):,} more groups: --limit shows them")
    if found.is_bounded:
        say("there are more than were looked at: a narrower filter counts all that it lets through")


def _shortened(error: str) -> str:
    line = one_line(error.partition("\n")[0])
    return line if len(line) <= LONGEST_ERROR else f"{line[:LONGEST_ERROR]} ..."
