"""What did come out of it: the ledger's tables and the handlers' own, read with plain SQL in one snapshot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, text

from hookledger.demo.model import Resource, Total
from hookledger.demo.traffic import Kind

EventKey = tuple[str, str]

HANDLERS = {
    Kind.CUSTOMER: "save_customer",
    Kind.PULL_REQUEST: "save_pull_request",
    Kind.CHARGE: "add_revenue",
    Kind.PUSH: "add_commits",
}
"""The handler of each kind, as the inbox names it."""

EFFECTS = "SELECT source, event_id, outcome FROM hookledger.effects"
DELIVERIES = "SELECT source, event_id, id FROM hookledger.deliveries"
UNSETTLED = """
    SELECT source, event_id, 'is still pending' || coalesce(': ' || last_error, '')
    FROM hookledger.pending JOIN hookledger.deliveries d ON d.id = delivery_id
    UNION ALL
    SELECT source, event_id, 'is a dead letter (' || reason || '): ' || error
    FROM hookledger.dead_letters JOIN hookledger.deliveries d ON d.id = delivery_id
"""
WRITTEN = """
    SELECT source, event_id, NULL::bigint FROM demo.changes
    UNION ALL SELECT 'stripe', event_id, amount FROM demo.revenue
    UNION ALL SELECT 'github', event_id, commits FROM demo.commits
"""
OWN_STATES = """
    SELECT 'customer', id, balance, deleted FROM demo.customers
    UNION ALL SELECT 'pull_request', id, additions, deleted FROM demo.pull_requests
"""
RETURNED_STATES = """
    SELECT resource, (state -> :field)::numeric::bigint, deleted FROM hookledger.resource_state WHERE handler = :handler
"""
RETURNED_TOTALS = """
    SELECT resource, (state -> 'count')::numeric::bigint, (state -> 'sum')::numeric::bigint
    FROM hookledger.resource_state WHERE handler = :handler
"""
# The ledger's applied_at is when the transaction began; this is when it was committed.
LATENCY = """
    SELECT percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (
        ORDER BY extract(epoch FROM pg_xact_commit_timestamp(e.xmin) - d.received_at)::float8
    )
    FROM hookledger.effects e JOIN hookledger.deliveries d ON d.id = e.delivery_id WHERE e.outcome = 'applied'
"""
COUNTS = """
    SELECT (SELECT count(*) FROM hookledger.effects), (SELECT count(*) FROM hookledger.pending),
           (SELECT count(*) FROM hookledger.dead_letters)
"""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a resource: the number of its last event, or that it is gone."""

    number: int | None
    deleted: bool


@dataclass(frozen=True)
class Evidence:
    """What the database holds at the end.

    Args:
        deliveries: the ledger's number of each event; later arrivals have higher ones.
        outcomes: what the ledger says became of each event.
        unsettled: why an event has no outcome.
        written: how often each event stands in the handlers' own tables, and with which number where it has one.
        own_states: the state of each resource in the handlers' own tables.
        returned_states: the same as the handlers returned it to the ledger.
        returned_totals: what accumulate handlers returned, added up by the ledger.
        p50, p99: seconds from receipt to the commit of what was applied; None if nothing was.
    """

    deliveries: dict[EventKey, int]
    outcomes: dict[EventKey, str]
    unsettled: dict[EventKey, str]
    written: Counter[tuple[EventKey, int | None]]
    own_states: dict[Resource, State]
    returned_states: dict[Resource, State]
    returned_totals: dict[Resource, Total]
    p50: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Counts:
    """How far the workers are."""

    settled: int
    pending: int
    dead: int


def count(connection: Connection) -> Counts:
    """How many rows there are. Each event of the demo has one handler, so each settled one has one effects row."""
    return Counts(*connection.execute(text(COUNTS)).one())


def gather(connection: Connection) -> Evidence:
    """Read all of it.

    Args:
        connection: at REPEATABLE READ, so that all is of one moment.
    """

    p50, p99 = connection.execute(text(LATENCY)).scalar_one() or (None, None)
    returned_states: dict[Resource, State] = {}
    for kind, field in ((Kind.CUSTOMER, "balance"), (Kind.PULL_REQUEST, "additions")):
        found = connection.execute(text(RETURNED_STATES), {"handler": HANDLERS[kind], "field": field})
        returned_states |= {(kind, resource): State(number, deleted) for resource, number, deleted in found}
    returned_totals: dict[Resource, Total] = {}
    for kind in (Kind.CHARGE, Kind.PUSH):
        found = connection.execute(text(RETURNED_TOTALS), {"handler": HANDLERS[kind]})
        returned_totals |= {(kind, resource): Total(how_many, total) for resource, how_many, total in found}
    return Evidence(
        deliveries={(source, event_id): number for source, event_id, number in connection.execute(text(DELIVERIES))},
        outcomes={(source, event_id): outcome for source, event_id, outcome in connection.execute(text(EFFECTS))},
        unsettled={(source, event_id): why for source, event_id, why in connection.execute(text(UNSETTLED))},
        written=Counter(((source, event_id), number) for source, event_id, number in connection.execute(text(WRITTEN))),
        own_states={
            (Kind(kind), resource): State(number, deleted)
            for kind, resource, number, deleted in connection.execute(text(OWN_STATES))
        },
        returned_states=returned_states,
        returned_totals=returned_totals,
        p50=p50,
        p99=p99,
    )
