"""The statements themselves, driven step by step as the model goes, on connections of their own.

The claim is split within: a function in its condition waits, after the statement has its snapshot and before it locks
a row. Everything else is the statement as it stands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import NullPool

from hookledger import RetryPolicy
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Buried, GivenBack, NewEffect, NewFailure, NewState, Postponed
from hookledger.ledger.statements import claim_statement
from tests.model.hand import Hand
from tests.model.state import DEAD, PENDING, SETTLED, UNMOVED, Claim, Row, Setting, Step, Worker
from tests.outcomes import SHOP, Ledger, document
from tests.processes import wait_until

POLICY = RetryPolicy(max_attempts=2, first_delay=3600)
"""With a first delay that no test lives to see: due times come when the model says so."""

RESOURCE = "r"
GATE = 7000
GATE_FUNCTION = """
    CREATE FUNCTION at_gate(key integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_advisory_lock_shared(key); PERFORM pg_advisory_unlock_shared(key); RETURN true;
    END $$
"""
APPLIED = "CREATE TABLE applied (delivery integer NOT NULL, handler integer NOT NULL)"

Seen = tuple[tuple[Row, ...], tuple[int, ...], tuple[tuple[int, ...], ...], int]
"""Rows, ledger, done and mark, as the state has them."""


class Stage:
    """A ledger, and as many connections as the setting has workers.

    Args:
        setting: whose walks are followed.
        database_url: of an empty ledger.
    """

    def __init__(self, setting: Setting, database_url: str) -> None:
        self.setting = setting
        self.ledger = Ledger(database_url)
        self.repository = Repository.of("hookledger")
        self.ledger.execute(GATE_FUNCTION)
        self.ledger.execute(APPLIED)
        self._engine = create_engine(database_url, poolclass=NullPool, isolation_level="READ COMMITTED")
        self.control = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self.hands = [Hand(index, self._engine, self.control) for index in range(setting.workers)]
        for hand in self.hands:
            self._gate(hand, "lock")
        self._walks = 0

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        for hand in self.hands:
            hand.cut()
            hand.close()
        self.control.close()

    def begin(self) -> None:
        """Forget the last walk, and record the deliveries of the next one."""
        for hand in self.hands:
            hand.cut()
        for table in ("hookledger.pending", "hookledger.dead_letters", "hookledger.resource_state", "applied"):
            self.ledger.execute(f"DELETE FROM {table}")
        self._walks += 1
        names = [f"{self._walks}-{d}" for d in range(len(self.setting.deliveries))]
        versions = self.setting.versions or (None,) * len(names)
        documents = [document(name, RESOURCE, version) for name, version in zip(names, versions, strict=True)]
        self.names, self.ids = names, self.ledger.record(*documents)

    def take_step(self, before: Worker, step: Step) -> object:
        """Do what the step says; what the statement told, to be held against the step's `detail`."""
        if step.worker < 0:
            self._happen(step)
            return None
        hand = self.hands[step.worker]
        match step.name:
            case "look":
                self._look(hand)
            case "take":
                return self._take(hand)
            case "hold":
                return self._hold(hand, before.job.claims)
            case "wait":
                self._wait(hand, before, step)
            case "woken" | "timeout":
                return None if step.name == "woken" else self._time_out(hand, before)
            case "let go":
                assert hand.savepoint is not None
                hand.savepoint.rollback()
                hand.savepoint = None
            case "again":
                return tuple(sorted((*before.held, *self._hold(hand, self._claims(before, before.rest)))))
            case "lock":
                return self._lock(hand)
            case "run" | "refused" | "die":
                self._run(hand, before, step)
            case "charge":
                claim = before.job.claims[0]
                return self.repository.claim_one(hand.connection, self.ids[claim.delivery], claim.attempts, POLICY)
            case "bury":
                self._bury(hand, self._claims(before, before.held))
            case "give back":
                self._give_back(hand, self._claims(before, before.held), before.job.refund)
            case "commit":
                hand.connection.commit()
            case "conflict":
                hand.connection.rollback()
            case "unheard":
                hand.connection.commit()
                hand.cut()
            case "lost" | "released":
                hand.cut()
            case "crash":
                if not step.state.workers[step.worker].held:
                    hand.cut()
            case _:
                assert step.name == "stop"
        return None

    def _happen(self, step: Step) -> None:
        (d,) = step.detail
        if step.name == "revive":
            statement = (
                "WITH gone AS (DELETE FROM hookledger.dead_letters WHERE delivery_id = :id RETURNING delivery_id)"
                " INSERT INTO hookledger.pending (delivery_id, revisited) SELECT delivery_id, true FROM gone"
            )
        else:
            statement = "UPDATE hookledger.pending SET due_at = clock_timestamp() WHERE delivery_id = :id"
        self.ledger.execute(statement, id=self.ids[d])

    def _gate(self, hand: Hand, what: str) -> None:
        self.control.exec_driver_sql(f"SELECT pg_advisory_{what}({GATE + hand.index})")

    def _look(self, hand: Hand) -> None:
        statement = claim_statement("hookledger", self.setting.batch)
        gated = statement.replace("WHERE hookledger.pending.due_at <= now()", f"WHERE at_gate({GATE + hand.index})", 1)
        assert gated != statement
        gated = gated.replace(
            " AND (hookledger.pending.due_at,", " AND hookledger.pending.due_at <= now() AND (due_at,", 1
        )
        values = {
            "since": "-infinity",
            "since_id": 0,
        }
        hand.start(lambda: hand.connection.exec_driver_sql(gated, values).mappings().all())
        wait_until(hand.waits)

    def _take(self, hand: Hand) -> tuple[Claim, ...]:
        self._gate(hand, "unlock")
        rows = hand.result()
        self._gate(hand, "lock")
        if rows:
            backoff = {name: getattr(POLICY, name) for name in ("first_delay", "factor", "longest_delay", "jitter")}
            ids = [row["id"] for row in rows]
            hand.connection.exec_driver_sql(self.repository.sql.take, {"ids": ids, **backoff})
        return tuple(
            sorted(
                Claim(
                    self.ids.index(row["id"]),
                    row["attempts"],
                    row["last_error"] is not None,
                    row["crashed"],
                    row["revisited"],
                )
                for row in rows
            )
        )

    def _claims(self, worker: Worker, deliveries: Sequence[int]) -> list[Claim]:
        return [claim for claim in worker.job.claims if claim.delivery in deliveries]

    def _hold(self, hand: Hand, claims: Sequence[Claim], *, wait: bool = False) -> tuple[int, ...]:
        ours = [(self.ids[claim.delivery], claim.attempts) for claim in claims]
        return tuple(sorted(self.ids.index(id) for id in self.repository.hold(hand.connection, ours, wait=wait)))

    def _wait(self, hand: Hand, before: Worker, step: Step) -> None:
        rest = self._claims(before, before.rest)
        hand.savepoint = hand.connection.begin_nested()
        hand.start(lambda: self._hold(hand, rest, wait=True))
        if step.state.workers[step.worker].rest:
            wait_until(hand.waits)

    def waited(self, hand: Hand, *, overtaken: bool) -> tuple[int, ...]:
        """What a wait that is over has given; its savepoint is over too, unless something was overtaken."""
        found: tuple[int, ...] = hand.result()
        if hand.savepoint is not None and not overtaken:
            hand.savepoint.commit()
            hand.savepoint = None
        return found

    def _time_out(self, hand: Hand, before: Worker) -> tuple[int, ...]:
        self.control.exec_driver_sql("SELECT pg_cancel_backend(%(pid)s)", {"pid": hand.pid})
        with contextlib.suppress(DBAPIError):
            hand.result()
        assert hand.savepoint is not None
        hand.savepoint.rollback()
        hand.savepoint = None
        rest = [claim for claim in before.job.claims if claim.delivery not in before.before]
        return tuple(sorted((*before.before, *self._hold(hand, rest))))

    def _lock(self, hand: Hand) -> int:
        if not self.setting.versions:
            return 0
        keys = [("h0", SHOP, RESOURCE)]
        self.repository.insert_states(hand.connection, keys)
        (watermark,) = self.repository.lock_states(hand.connection, keys).watermarks.values()
        if watermark.version is None:
            return 0
        assert isinstance(watermark.version, tuple)
        return int(str(watermark.version[0]))

    def _run(self, hand: Hand, before: Worker, step: Step) -> None:
        held = {claim.delivery: claim for claim in before.job.claims if claim.delivery in before.held}
        connection, repository = hand.connection, self.repository
        if step.name == "die":
            connection.exec_driver_sql("INSERT INTO applied SELECT -1, -1")
            return
        if step.name == "refused":
            # What is known to be in the ledger, by a transaction that did not look.
            again = [
                NewEffect(SHOP, self.names[d], f"h{h}", self.ids[d], "applied", None) for d, h in self._known(held)
            ]
            with contextlib.suppress(IntegrityError):
                repository.settle(connection, again, [])
                raise AssertionError("the key of the effects let a second outcome pass")
            connection.rollback()
            return
        writes = step.state.workers[step.worker].writes
        effects: list[NewEffect] = []
        for effect in writes.effects:
            for handler in range(len(self.setting.deliveries[effect.delivery])):
                if effect.done >> handler & 1:
                    values = {"delivery": effect.delivery, "handler": handler}
                    connection.execute(text("INSERT INTO applied VALUES (:delivery, :handler)"), values)
                if effect.ledger >> handler & 1:
                    outcome = "applied" if effect.done >> handler & 1 else "superseded"
                    name = self.names[effect.delivery]
                    effects.append(NewEffect(SHOP, name, f"h{handler}", self.ids[effect.delivery], outcome, None))
        if writes.mark != UNMOVED:
            winner = self.ids[self.setting.versions.index(writes.mark)]
            new = NewState("h0", SHOP, RESOURCE, f"{{{writes.mark}}}", winner, False, False, None)
            repository.save_states(connection, [new])
        settled = [self.ids[d] for d, row in writes.rows if row.place == SETTLED]
        if effects or settled:
            repository.settle(connection, effects, settled)
        self._give_back(hand, [held[d] for d, row in writes.rows if row.place == PENDING and row.due], 1)
        failed = [held[d] for d, row in writes.rows if row.place == PENDING and not row.due]
        dead = [held[d] for d, row in writes.rows if row.place == DEAD]
        rows = [NewFailure(self.ids[claim.delivery], claim.attempts, "h", "e", "f") for claim in (*failed, *dead)]
        repository.write_failures(connection, rows)
        repository.postpone(
            connection, [Postponed(self.ids[claim.delivery], claim.attempts, 3600, "e") for claim in failed]
        )
        self._bury(hand, dead)

    def _known(self, held: dict[int, Claim]) -> Iterator[tuple[int, int]]:
        _, ledger, _, _ = self.seen()
        for d in held:
            for handler in range(len(self.setting.deliveries[d])):
                if ledger[d] >> handler & 1:
                    yield d, handler

    def _bury(self, hand: Hand, claims: Sequence[Claim]) -> None:
        buried = [Buried(self.ids[claim.delivery], claim.attempts, "crashed", "e", "f") for claim in claims]
        self.repository.bury(hand.connection, buried)

    def _give_back(self, hand: Hand, claims: Sequence[Claim], refund: int) -> None:
        rows = [
            GivenBack(
                self.ids[claim.delivery],
                claim.attempts,
                0 if claim.crashed else refund,
                "e" if claim.error else None,
            )
            for claim in claims
        ]
        self.repository.give_back(hand.connection, rows)

    def seen(self) -> Seen:
        """What is committed."""
        query = (
            "SELECT d.id, p.attempts, p.last_error IS NOT NULL AS error, p.due_at <= clock_timestamp() AS due,"
            " p.revisited, l.delivery_id IS NOT NULL AS dead,"
            " ARRAY(SELECT handler FROM hookledger.effects e WHERE e.delivery_id = d.id) AS handlers"
            " FROM hookledger.deliveries d LEFT JOIN hookledger.pending p ON p.delivery_id = d.id"
            " LEFT JOIN hookledger.dead_letters l ON l.delivery_id = d.id WHERE d.id = ANY(%(ids)s) ORDER BY d.id"
        )
        rows: list[Row] = []
        ledger: list[int] = []
        for found in self.control.exec_driver_sql(query, {"ids": self.ids}):
            if found.attempts is not None:
                assert not found.dead
                rows.append(Row(PENDING, found.attempts, found.error, found.due, found.revisited))
            else:
                rows.append(Row(DEAD if found.dead else SETTLED, 0, False, False, True))
            ledger.append(sum(1 << int(handler[1:]) for handler in found.handlers))
        written = self.control.exec_driver_sql("SELECT delivery, handler, count(*) FROM applied GROUP BY 1, 2").all()
        counts = {(delivery, handler): count for delivery, handler, count in written}
        done = tuple(
            tuple(counts.get((d, h), 0) for h in range(len(handlers)))
            for d, handlers in enumerate(self.setting.deliveries)
        )
        mark = self.control.exec_driver_sql("SELECT coalesce(max(version[1]), 0)::int FROM hookledger.resource_state")
        return tuple(rows), tuple(ledger), done, int(mark.scalar_one())
