"""The story of a delivery: what it says of each kind, and why."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, Engine, text

from hookledger.ledger.schema import tables
from hookledger.operate.filters import Filter
from hookledger.operate.find import page
from hookledger.operate.pauses import PauseKind, pause
from hookledger.operate.story import Story, Told, find_id, read_story
from hookledger.operate.words import (
    body_in_words,
    outcome_in_words,
    state_in_words,
    verification_in_words,
    version_in_words,
)
from hookledger.outcomes import Outcome
from hookledger.version import read_version
from tests.outcomes import SHOP, Ledger, document
from tests.shop_history import BROKEN, live_through, shop_inbox, work
from tests.ways import WAYS

SCHEMA = "hookledger"


def story(operator: Engine, delivery_id: int) -> Story:
    with operator.connect() as connection:
        found = read_story(connection, SCHEMA, delivery_id)
    assert found is not None
    return found


def told(story: Story) -> Told:
    [one] = story.outcomes
    return one


def test_each_outcome_is_told_with_the_delivery_that_won(ledger: Ledger, operator: Engine) -> None:
    ids = live_through(ledger)
    stories = {event: story(operator, id) for event, id in ids.items()}

    superseded = told(stories["t2"])
    assert superseded.outcome is Outcome.SUPERSEDED
    assert superseded.after is not None
    assert superseded.after.delivery_id == ids["t3"]
    assert f"delivery {ids['t3']} with version 3 was applied in the same batch" in outcome_in_words(superseded)

    first = told(stories["t3"])
    assert first.outcome is Outcome.APPLIED
    assert first.before is None
    assert "its version 3 became the watermark" in outcome_in_words(first)

    second = told(stories["t4"])
    assert second.before is not None
    assert (second.before.delivery_id, second.before.set_at) == (ids["t3"], first.at)
    assert f"the watermark was 3 (set by delivery {ids['t3']} at" in outcome_in_words(second)

    # At its time the watermark was 3, whatever came later.
    early = told(stories["t1"])
    assert early.before is not None
    assert early.before.delivery_id == ids["t3"]
    late = told(stories["t0"])
    assert late.before is not None
    assert late.before.delivery_id == ids["t4"]
    moment = f"{second.at:%Y-%m-%d %H:%M:%S} UTC"
    assert f"watermark 4 was set by delivery {ids['t4']} at {moment}; its own version is 0" in outcome_in_words(late)

    assert "no handler of the inbox matched it" in outcome_in_words(told(stories["x1"]))
    assert outcome_in_words(told(stories["o1"])).startswith("applied at ")
    assert state_in_words(stories["t1"]).startswith("settled at ")


def test_attempts_and_the_next_try_are_told(ledger: Ledger, operator: Engine) -> None:
    ids = live_through(ledger)
    dead, retried, waiting = (story(operator, ids[event]) for event in ("o2", "o3", "w1"))
    assert state_in_words(dead).endswith("UTC: rejected, tried once")
    assert [(each.attempt, each.handler) for each in dead.attempts] == [(1, "count")]
    assert BROKEN in dead.attempts[0].error
    assert "attempt 2 is due at " in state_in_words(retried)
    assert "attempt 1 is due since " in state_in_words(waiting)
    ledger.execute(
        "UPDATE hookledger.pending SET attempts = 1, due_at = now() + interval '5 s' WHERE last_error IS NULL"
    )
    assert "attempt 1 is under way, or its worker died" in state_in_words(story(operator, ids["w1"]))


def test_a_paused_delivery_names_the_pause(ledger: Ledger, operator: Engine) -> None:
    [id] = ledger.record(document("o1", type="order.paid"))
    pause(operator, SCHEMA, PauseKind.SOURCE, SHOP, who="anna", reason="stocktaking")
    work(ledger)
    found = story(operator, id)
    assert [(each.name, each.who, each.reason) for each in found.pauses] == [(SHOP, "anna", "stocktaking")]
    assert f"the source {SHOP} is paused since" in state_in_words(found)


def test_a_handler_that_names_its_own_resource_is_told_without_a_watermark(ledger: Ledger, operator: Engine) -> None:
    inbox = shop_inbox()

    def elsewhere(delivery: object, tx: Connection) -> None:
        pass

    inbox.snapshot(SHOP, "thing.*", name="elsewhere", resource=lambda delivery: f"of {delivery.event_id}")(elsewhere)
    ids = ledger.record(document("t1", "r1", 1), document("t2", "r1", 2))
    WAYS[0].work(ledger.engine.url.render_as_string(hide_password=False), inbox)
    by_handler = {one.handler: one for one in story(operator, ids[0]).outcomes}
    assert by_handler["elsewhere"].outcome is Outcome.APPLIED
    assert by_handler["elsewhere"].before is by_handler["elsewhere"].after is None
    assert by_handler["save"].after is not None
    assert by_handler["save"].after.delivery_id == ids[1]


def test_copies_replays_and_origins_are_told(ledger: Ledger, operator: Engine) -> None:
    [id] = ledger.record(document("o1", type="order.paid"))
    assert verification_in_words(story(operator, id)) == "verified when it was received"
    ledger.execute(
        "INSERT INTO hookledger.redeliveries (delivery_id, received_at, headers, differs) "
        """SELECT :id, now(), '[["X-Sig", "t=1,v1=0123456789"], ["User-Agent", "shop"]]', n = 60"""
        " FROM generate_series(1, 60) n",
        id=id,
    )
    replay = ledger.value(
        "INSERT INTO hookledger.replays (kind, who, reason, filter, plan, state, until_id)"
        " VALUES ('replay', 'anna', 'the stock was broken', '{}', '{}', 'done', 1) RETURNING id"
    )
    ledger.execute(
        "INSERT INTO hookledger.replayed VALUES (:replay, :id), (:other, :id)", replay=replay, id=id, other=0
    )
    ledger.execute("INSERT INTO hookledger.imported (delivery_id, origin) VALUES (:id, 'dump.har')", id=id)
    found = story(operator, id)
    assert (len(found.copies), found.copies_in_all) == (50, 60)
    assert found.copies[0].differs
    assert found.copies[0].headers == (("X-Sig", "[masked, 17 characters]"), ("User-Agent", "shop"))
    assert [(each.id, each.who, each.reason) for each in found.replays] == [(replay, "anna", "the stock was broken")]
    assert "imported from dump.har" in verification_in_words(found)
    ledger.execute("DELETE FROM hookledger.imported")
    ledger.execute(
        "INSERT INTO hookledger.quarantine (source, status, reason, method, url, headers, body, size, delivery_ids)"
        " VALUES ('shop', 401, 'no match', 'POST', '/', '[]', '', 0, ARRAY[CAST(:id AS bigint)])",
        id=id,
    )
    assert "kept in the quarantine as 1" in verification_in_words(story(operator, id))


def test_bytes_that_are_gone_are_told(ledger: Ledger, operator: Engine) -> None:
    dropped, erased = ledger.record(document("e1"), document("e2"))
    whole = story(operator, dropped)
    assert body_in_words(whole) is None
    assert whole.body is not None
    ledger.execute(
        "DELETE FROM hookledger.payloads USING hookledger.deliveries d WHERE d.payload_id = payloads.id AND d.id = :id",
        id=dropped,
    )
    ledger.execute("UPDATE hookledger.payloads SET body = '', headers = '[]'")
    ledger.execute("INSERT INTO hookledger.erased (delivery_id, who) VALUES (:id, 'anna')", id=erased)
    gone = story(operator, dropped)
    assert gone.body is None
    assert gone.headers == ()
    assert "dropped by retention" in (body_in_words(gone) or "")
    assert story(operator, erased).body is None
    assert "erased at" in (body_in_words(story(operator, erased)) or "")
    assert "by anna" in (body_in_words(story(operator, erased)) or "")


def test_secrets_are_masked_wherever_they_stand(ledger: Ledger, operator: Engine) -> None:
    [id] = ledger.record(document("e1"))
    secret = "s3cr3t-in-a-header"
    ledger.execute(
        """UPDATE hookledger.payloads SET headers = CAST(:headers AS jsonb)""",
        headers=f'[["Authorization", "Bearer {secret}"], ["Content-Type", "application/json"]]',
    )
    ledger.execute(
        "INSERT INTO hookledger.failures (delivery_id, attempt, handler, error, fingerprint)"
        " VALUES (:id, 1, 'save', :error, 'f')",
        id=id,
        error=f"401 for {secret}",
    )
    found = story(operator, id)
    assert secret not in repr((found.headers, found.attempts, found.found))
    assert found.headers[1] == ("Content-Type", "application/json")
    assert found.content_type == "application/json"


def test_a_delivery_is_found_by_the_senders_id(ledger: Ledger, operator: Engine) -> None:
    ids = ledger.record(document("e1"), document("x" * 600))
    with operator.connect() as connection:
        assert find_id(connection, SCHEMA, SHOP, "e1") == ids[0]
        assert find_id(connection, SCHEMA, SHOP, "x" * 600) == ids[1]
        assert find_id(connection, SCHEMA, SHOP, "\x00") is None
        assert read_story(connection, SCHEMA, 2**62) is None


def test_the_watermark_of_a_resource_with_a_long_history_is_told(ledger: Ledger, operator: Engine) -> None:
    """The one that set it is too far away to be found, and whoever holds it now is told instead."""
    [old] = ledger.record(document("old", "r1", 1))
    ledger.execute(
        "INSERT INTO hookledger.deliveries (source, event_id, event_type, resource, version, payload_id, received_at,"
        " body_digest) SELECT source, 'n' || n, event_type, resource, ARRAY[n], 0, received_at, '' "
        "FROM hookledger.deliveries, generate_series(2, 3000) n"
    )
    ledger.execute(
        "WITH gone AS (DELETE FROM hookledger.pending) INSERT INTO hookledger.effects"
        " (source, event_id, handler, delivery_id, outcome, version, applied_at)"
        " SELECT source, event_id, 'save', id, CASE id WHEN :old THEN 'stale' WHEN :newest THEN 'applied'"
        " ELSE 'superseded' END, version, now() FROM hookledger.deliveries",
        old=old,
        newest=ledger.value("SELECT max(id) FROM hookledger.deliveries"),
    )
    ledger.execute(
        "INSERT INTO hookledger.resource_state (handler, source, resource, version, delivery_id)"
        " SELECT 'save', source, resource, version, id FROM hookledger.deliveries ORDER BY id DESC LIMIT 1"
    )
    one = told(story(operator, old))
    assert one.before is not None
    assert one.before.set_at is None
    assert "its version is 1, and the watermark is now 3000 (set by delivery" in outcome_in_words(one)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (5, "5"),
        ((1, 2.5), "1, 2.5"),
        (2**53 + 1, "9007199254740993"),
        (1_700_000_000, "1700000000 (2023-11-14 22:13:20 UTC)"),
    ],
)
def test_versions_in_words(version: object, words: str) -> None:
    read = read_version(version)
    assert read is not None
    assert version_in_words(read) == words


def test_the_watermark_is_looked_up_in_the_index(ledger: Ledger, operator: Engine) -> None:
    ledger.record(*[document(f"e{number}", f"r{number}", 1) for number in range(20)])
    ledger.execute(
        "INSERT INTO hookledger.deliveries (source, event_id, event_type, resource, payload_id, received_at,"
        " body_digest) SELECT 'shop', 'n' || n, 't', 'r' || n % 5000, 0, now(), '' FROM generate_series(1, 50000) n"
    )
    ledger.execute("ANALYZE hookledger.deliveries")
    statement = page(tables(SCHEMA), Filter(resource="r17"), None, 51)
    with operator.connect() as connection:
        compiled = statement.compile(connection, compile_kwargs={"literal_binds": True})
        plan = "\n".join(connection.execute(text(f"EXPLAIN {compiled}")).scalars())
    assert "deliveries_resource_idx" in plan
    assert "Seq Scan on deliveries" not in plan
