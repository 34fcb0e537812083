"""A plan over many settled deliveries reads the big tables by their indexes, page by page (D11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import event, text

from hookledger.ledger.schema import tables
from hookledger.operate.filters import Filter, State
from hookledger.operate.replay import Kind, Matching, Selection, make_plan
from hookledger.operate.replay.plan import CHUNK, groups
from tests.outcomes import SHOP
from tests.replaying import SCHEMA, Shop

MANY = 2 * CHUNK + 1000
BIG = ("deliveries", "effects", "payloads")

MOMENT = "timestamptz '2031-01-01' + n * interval '1 ms'"
FILL = (
    "INSERT INTO hookledger.payloads (id, received_at, headers, body)"
    f" SELECT n, {MOMENT}, '[]', 'x' FROM generate_series(1, :many) n",
    "INSERT INTO hookledger.deliveries"
    " (id, source, event_id, event_type, resource, version, payload_id, received_at, body_digest)"
    " SELECT n, 'shop', 'e' || n, CASE n % 2 WHEN 0 THEN 'fact.added' ELSE 'thing.updated' END,"
    f" 'r' || n % 100, ARRAY[n], n, {MOMENT}, '' FROM generate_series(1, :many) n",
    "INSERT INTO hookledger.effects (source, event_id, handler, delivery_id, outcome)"
    " SELECT 'shop', 'e' || n, CASE n % 2 WHEN 0 THEN 'add' ELSE 'save' END, n, 'applied'"
    " FROM generate_series(1, :many) n WHERE n % 1000 > 0",
    "INSERT INTO hookledger.resource_state (handler, source, resource, version, delivery_id)"
    " SELECT 'save', 'shop', 'r' || n, ARRAY[:many], :many FROM generate_series(0, 99) n",
)


def fill(shop: Shop, many: int) -> None:
    """Make so many settled deliveries; one in a thousand has no effect yet of the handler that there is now."""
    for statement in FILL:
        shop.execute(statement, many=many)
    shop.execute("ANALYZE hookledger.payloads, hookledger.deliveries, hookledger.effects, hookledger.pending")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def explain(shop: Shop, selection: Selection) -> list[dict[str, Any]]:
    """The nodes of the plan of the statement that reads a page."""
    statement = groups(tables(SCHEMA), selection)
    seen: list[tuple[str, Any]] = []
    with shop.pool.connect() as connection:
        connection.execute(text("SET jit = off"))
        event.listen(
            connection, "before_cursor_execute", lambda _, cursor, sql, values, *more: seen.append((sql, values))
        )
        connection.execute(statement, {"after": CHUNK, "until": MANY, "snapshots": ["save"]})
        ((sql, values),) = seen
        driver: Any = connection.connection.driver_connection
        ((top,),) = driver.execute(f"EXPLAIN (FORMAT JSON) {sql}", values).fetchone()
    return list(nodes(top["Plan"]))


SELECTIONS = {
    "all": Selection(include_settled=True),
    "settled": Selection(Filter(state=State.SETTLED)),
    "forget": Selection(kind=Kind.FORGET, matching=Matching("save")),
    "backfill": Selection(Filter(source=SHOP), kind=Kind.BACKFILL, matching=Matching("new", SHOP, ("fact.*",))),
    "fingerprint": Selection(Filter(fingerprint="f")),
    "dead": Selection(),
}


def test_a_plan_counts_all_of_them_by_the_indexes(shop: Shop) -> None:
    fill(shop, MANY)
    looked_at: list[int] = []
    plan = make_plan(shop.pool, SCHEMA, Selection(include_settled=True), inbox=shop.inbox, progress=looked_at.append)
    without = MANY // 1000
    assert (plan.settled, plan.skipped, plan.run, plan.stale) == (MANY, MANY - without, without, 0)
    assert looked_at == [CHUNK, 2 * CHUNK, MANY]
    for name, selection in SELECTIONS.items():
        scans = [node for node in explain(shop, selection) if "Relation Name" in node]
        big = [node for node in scans if node["Relation Name"].startswith(BIG)]
        assert big, name
        assert [node for node in big if node["Node Type"] == "Seq Scan"] == [], name
