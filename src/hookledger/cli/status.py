"""`hookledger status`: what is pending, dead and settled."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from hookledger.cli.errors import say, sentence, unhealthy
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from hookledger.ledger.status import Counts, Pending, Precision, SourceStatus, Status

COUNTING_SECONDS = 15
OTHER_SCREEN, FIRST_SCREEN, FROM_THE_TOP = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H\x1b[2J"
"""What a terminal does at these: go to a second screen and back, clear it."""


def status(
    exact: Annotated[
        bool, typer.Option("--exact", help="Count every row, however many; else large counts are estimated.")
    ] = False,
    max_age: Annotated[
        float | None,
        typer.Option(
            "--max-age",
            min=0,
            metavar="SECONDS",
            help="End with status 6 if a delivery has been due for longer: the workers are down or too slow.",
        ),
    ] = None,
    max_dead: Annotated[
        int | None,
        typer.Option("--max-dead", min=0, metavar="N", help="End with status 6 if there are more dead letters."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again until Ctrl-C; in a pipe, a line each time.")
    ] = False,
    every: Annotated[float, typer.Option("--every", min=0.1, metavar="SECONDS", help="How often, with --watch.")] = 2.0,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Show what is pending, dead and settled, for each source.

    Cheap on a ledger of any size. With --max-age or --max-dead it serves as a health check.
    """
    if watch:
        _watch(database_url, schema, every, exact=exact, json=json)
    found = _read(database_url, schema, exact=exact)
    if json:
        print_json(as_document(found))
    else:
        _print(found)
    overdue = found.seconds_overdue
    if max_age is not None and overdue > max_age:
        unhealthy(f"a delivery has been due for {duration(overdue)}, more than {duration(max_age)}")
    dead = found.total.dead.count
    if max_dead is not None and dead > max_dead:
        unhealthy(f"there are {dead:,} dead letters, more than {max_dead:,}")


def _watch(database_url: str | None, schema: str, every: float, *, exact: bool, json: bool) -> NoReturn:
    from hookledger.cli.database import engine_of
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.locked import bounded, telling_who

    screen = sys.stdout.isatty() and not json
    with engine_of(database_url) as engine:
        reader = bounded(engine)
        with telling_who(reader, schema):
            open_ready(reader, schema)
        if screen:
            print(OTHER_SCREEN, end="")
        try:
            while True:
                found = _read_if_possible(reader, schema, exact=exact)
                if isinstance(found, str):
                    _tell_why_not(found, every, screen=screen)
                elif json:
                    print_json(as_document(found))
                elif screen:
                    print(FROM_THE_TOP, end="")
                    _print(found)
                    print(_foot(found.read_at, every), flush=True)
                else:
                    print(f"{found.read_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC  {verdict(found)}", flush=True)
                time.sleep(every)
        finally:
            if screen:
                print(FIRST_SCREEN, end="", flush=True)


def _read_if_possible(engine: Engine, schema: str, *, exact: bool) -> Status | str:
    """The status, or why it cannot be read just now."""
    from sqlalchemy.exc import DBAPIError

    from hookledger.ledger.failure import is_outage
    from hookledger.operate.locked import Locked, telling_who

    try:
        with telling_who(engine, schema):
            return _read_at_once(engine, schema, exact=exact)
    except (Locked, DBAPIError) as error:
        if isinstance(error, DBAPIError) and not is_outage(error):
            raise
        return sentence(error)


def _tell_why_not(why: str, every: float, *, screen: bool) -> None:
    moment = datetime.now(UTC)
    if screen:
        print(f"{FROM_THE_TOP}{why}\n{_foot(moment, every)}", flush=True)
    else:
        say(f"{moment:%Y-%m-%d %H:%M:%S} UTC  {why}")


def _foot(moment: datetime, every: float) -> str:
    return f"\n{moment.astimezone(UTC):%H:%M:%S} UTC, again every {every:g} s; Ctrl-C ends it"


def _read(database_url: str | None, schema: str, *, exact: bool) -> Status:
    from hookledger.cli.database import bounded_engine_of

    with bounded_engine_of(database_url, schema) as engine:
        return _read_at_once(engine, schema, exact=exact)


def _read_at_once(engine: Engine, schema: str, *, exact: bool) -> Status:
    from sqlalchemy import text

    from hookledger.ledger.status import read_status

    with engine.connect() as connection:
        one_moment = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        if not exact:
            one_moment.execute(text(f"SET LOCAL statement_timeout = '{COUNTING_SECONDS}s'"))
        return read_status(one_moment, schema, exact=exact)


def as_document(status: Status) -> dict[str, Any]:
    """The status as the object that --json prints; times are ISO 8601 with zone, ages are seconds."""
    return {
        "schema": status.schema,
        "read_at": status.read_at.isoformat(),
        "last_received_at": status.last_received_at and status.last_received_at.isoformat(),
        "paused": [{"kind": kind, "name": name, "since": since.isoformat()} for kind, name, since in status.paused],
        **_part(status.total, status),
        "sources": {name: _part(source, status) for name, source in status.sources.items()},
    }


def _part(part: SourceStatus, status: Status) -> dict[str, Any]:
    oldest = part.pending.oldest_due_at
    return {
        "pending": {
            "count": part.pending.count,
            "due": part.pending.due,
            "retrying": part.pending.retrying,
            "claimed": part.pending.claimed,
            "oldest_due_at": oldest and oldest.isoformat(),
            "oldest_due_seconds": oldest and (status.read_at - oldest).total_seconds(),
            "precision": part.pending.precision.value,
        },
        "dead": _counts(part.dead, "by_reason"),
        "settled": _counts(part.settled, "by_outcome"),
        "redeliveries": {
            "count": part.redeliveries.count,
            "differing": part.redeliveries.differing,
            "precision": part.redeliveries.precision.value,
        },
    }


def _counts(counts: Counts, name: str) -> dict[str, Any]:
    return {"count": counts.count, name: dict(counts.by_kind), "precision": counts.precision.value}


def shown(count: int, precision: Precision) -> str:
    """A count as a person reads it: 1,234 or 10,000+ or ~1,200,000."""
    if precision.value == "at least":
        return f"{count:,}+"
    if precision.value == "about":
        digits = max(0, len(str(count)) - 2)
        return f"~{round(count, -digits):,}"
    return f"{count:,}"


def duration(seconds: float) -> str:
    """A span of time in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def verdict(status: Status) -> str:
    """How the ledger stands, in one sentence."""
    total = status.total
    if status.last_received_at is None and not status.sources:
        return "No deliveries yet."
    waiting = shown(total.pending.count, total.pending.precision)
    sentence = "Nothing is pending" if not total.pending.count else f"{waiting} pending{_oldest(total.pending, status)}"
    if status.paused:
        sentence += f"; paused: {', '.join([f'{kind} {name}' for kind, name, _ in status.paused])}"
    if not total.dead.count:
        return f"{sentence}; no dead letters."
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in total.dead.by_kind.items())
    return f"{sentence}; {shown(total.dead.count, total.dead.precision)} dead ({reasons})."


def _oldest(pending: Pending, status: Status) -> str:
    if pending.oldest_due_at is None:
        return ""
    seconds = (status.read_at - pending.oldest_due_at).total_seconds()
    if seconds >= 0:
        return f", the oldest due for {duration(seconds)}"
    return f", the next due in {duration(-seconds)}"


def _print(status: Status) -> None:
    print(verdict(status))
    if status.last_received_at is not None:
        ago = (status.read_at - status.last_received_at).total_seconds()
        print(
            f"Last delivery received {duration(ago)} ago, at {status.last_received_at.isoformat(timespec='seconds')}."
        )
    elif status.sources:
        print("The newest deliveries were imported; none was received since.")
    else:
        return
    print()
    columns = {"all": status.total, **status.sources}
    rows = [
        ["pending", *[shown(part.pending.count, part.pending.precision) for part in columns.values()]],
        ["  due now", *[f"{part.pending.due:,}" for part in columns.values()]],
        ["  retrying", *[f"{part.pending.retrying:,}" for part in columns.values()]],
        ["  claimed", *[f"{part.pending.claimed:,}" for part in columns.values()]],
        ["dead letters", *[shown(part.dead.count, part.dead.precision) for part in columns.values()]],
        *_rows_by_kind(columns, "dead"),
        ["settled", *[shown(part.settled.count, part.settled.precision) for part in columns.values()]],
        *_rows_by_kind(columns, "settled"),
        [
            "redeliveries",
            *[shown(part.redeliveries.count, part.redeliveries.precision) for part in columns.values()],
        ],
        ["  differing", *[f"{part.redeliveries.differing:,}" for part in columns.values()]],
    ]
    print_table(["", *columns], rows)


def _rows_by_kind(columns: dict[str, SourceStatus], name: str) -> list[list[str]]:
    parts: list[Counts] = [getattr(column, name) for column in columns.values()]
    kinds = sorted({kind for part in parts for kind in part.by_kind})
    return [[f"  {kind}", *[shown(part.by_kind.get(kind, 0), part.precision) for part in parts]] for kind in kinds]
