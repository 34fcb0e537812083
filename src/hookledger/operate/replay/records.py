"""What is recorded of replays: who wanted what, when, what the plan said, how far it is, and how it ended."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, Row, Select, case, func, insert, literal, select, update

from hookledger import storable
from hookledger.errors import ReplayError
from hookledger.ledger.revision import command
from hookledger.ledger.schema import Tables, tables
from hookledger.operate.replay.forget import require_forgetting
from hookledger.operate.replay.options import Options
from hookledger.operate.replay.plan import Plan
from hookledger.operate.replay.selection import Kind, Selection
from hookledger.operate.retention.brief import end_if_silent


class ReplayState(enum.StrEnum):
    """How a replay stands. One whose process was killed says running; its last batch tells how long ago that was."""

    RUNNING = "running"
    STOPPED = "stopped"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay as it is recorded.

    Args:
        id: its number.
        kind: replay, backfill or forget.
        who: began it.
        reason: as given.
        selection: the deliveries that it is about.
        plan: what was going to happen.
        options: how it goes.
        started_at: when it was begun.
        finished_at: when it ended; None while it has not, also while it is stopped.
        state: how it stands.
        cursor_id: the last delivery that it has looked at.
        queued: how many deliveries it has made pending.
        result: what became of them, and why it was stopped; with `batch_at`, the time of the last batch.
    """

    id: int
    kind: Kind
    who: str
    reason: str | None
    selection: Selection
    plan: Plan
    options: Options
    started_at: datetime
    finished_at: datetime | None
    state: ReplayState
    cursor_id: int
    queued: int
    result: Mapping[str, Any]

    def as_document(self) -> dict[str, Any]:
        """As JSON can hold it; times as ISO 8601 with zone."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "state": self.state.value,
            "who": self.who,
            "reason": self.reason,
            "started_at": self.started_at.isoformat(),
            "finished_at": self.finished_at and self.finished_at.isoformat(),
            "filter": self.selection.as_document(),
            "plan": self.plan.as_document(),
            "options": self.options.as_document(),
            "cursor_id": self.cursor_id,
            "queued": self.queued,
            "result": dict(self.result),
        }


def begin(
    engine: Engine,
    schema: str,
    selection: Selection,
    plan: Plan,
    *,
    who: str,
    reason: str | None = None,
    options: Options | None = None,
) -> Replay:
    """Record that a replay begins.

    Args:
        engine: of the ledger's database.
        schema: where the ledger is.
        selection: the deliveries that it is about.
        plan: of that selection.
        who: wants it.
        reason: why, in words.
        options: how it goes.

    Raises:
        ReplayError: if one of the same selection has not ended yet.
        SetupError: if it is to forget effects, and the role may not.
    """
    t = tables(schema)
    document = selection.as_document()
    options = options or Options()
    with engine.begin() as connection:
        if selection.kind is Kind.FORGET:
            require_forgetting(connection, t)
        # Whoever begins at the same moment waits here, and then finds ours.
        connection.exec_driver_sql("SET LOCAL lock_timeout = '10s'")
        end_if_silent(connection)
        place = connection.dialect.identifier_preparer.format_table(t.replays)
        connection.exec_driver_sql(f"LOCK TABLE {place} IN SHARE ROW EXCLUSIVE MODE")
        r = t.replays.c
        same = select(r.id).where(
            r.state == ReplayState.RUNNING.value,
            r.kind == selection.kind.value,
            r.filter == literal(document, r.filter.type),
        )
        other = connection.execute(same).scalar()
        if other is not None:
            raise ReplayError(
                f"replay {other} of the same deliveries has not ended: {command('replays', schema)} shows how far it "
                f"is, {command(f'replay --resume {other}', schema)} goes on with it if its process is gone, and "
                f"{command(f'replays stop {other}', schema)} ends it"
            )
        new = insert(t.replays).values(
            kind=selection.kind.value,
            who=storable.text(who),
            reason=None if reason is None else storable.text(reason),
            filter=document,
            plan={**plan.as_document(), "options": options.as_document()},
            state=ReplayState.RUNNING.value,
            until_id=plan.until_id,
            result={},
        )
        id_ = connection.execute(new.returning(r.id)).scalar_one()
        return _read(connection, t, id_)


def find(engine: Engine, schema: str, replay_id: int) -> Replay:
    """The replay of that number.

    Raises:
        ReplayError: if there is none.
    """
    with engine.connect() as connection:
        return _read(connection, tables(schema), replay_id)


def newest(engine: Engine, schema: str, most: int = 50, *, before: int | None = None) -> list[Replay]:
    """Replays, those that run first, then the newest first.

    Args:
        engine: of the ledger's database.
        schema: where the ledger is.
        most: of them.
        before: only those with lower numbers, for the next page.
    """
    t = tables(schema)
    r = t.replays.c
    statement = _all(t).order_by(case((r.state == ReplayState.RUNNING.value, 0), else_=1), r.id.desc()).limit(most)
    if before is not None:
        statement = statement.where(r.id < before)
    with engine.connect() as connection:
        return [_of(row) for row in connection.execute(statement)]


def stop(engine: Engine, schema: str, replay_id: int, *, why: str = "stopped") -> Replay:
    """Have a replay end after the batch that it is at; it can be resumed.

    Raises:
        ReplayError: if there is none of that number, or it has ended.
    """
    t = tables(schema)
    with engine.begin() as connection:
        before = _read(connection, t, replay_id, lock=True)
        if before.state is not ReplayState.RUNNING:
            raise ReplayError(f"replay {replay_id} does not run: it is {before.state.value}")
        change(connection, t, replay_id, ReplayState.STOPPED, {"why": why})
        return _read(connection, t, replay_id)


def resume(engine: Engine, schema: str, replay_id: int, options: Options | None = None) -> Replay:
    """Let a replay run again that was stopped, failed, or lost its process; it goes on where it was.

    Args:
        engine: of the ledger's database.
        schema: where the ledger is.
        replay_id: its number.
        options: how it goes from here on; None as before.

    Raises:
        ReplayError: if there is none of that number, or it is done.
    """
    t = tables(schema)
    with engine.begin() as connection:
        before = _read(connection, t, replay_id, lock=True)
        if before.state is ReplayState.DONE:
            raise ReplayError(f"replay {replay_id} is done: nothing of it is left to resume")
        r = t.replays
        values: dict[str, Any] = {"state": ReplayState.RUNNING.value, "finished_at": None}
        if options is not None:
            values["plan"] = {**before.plan.as_document(), "options": options.as_document()}
        values["result"] = {name: value for name, value in before.result.items() if name != "why"}
        connection.execute(update(r).where(r.c.id == replay_id).values(**values))
        return _read(connection, t, replay_id)


def read_state(connection: Connection, t: Tables, replay_id: int) -> ReplayState:
    """How a replay stands now."""
    return ReplayState(connection.execute(select(t.replays.c.state).where(t.replays.c.id == replay_id)).scalar_one())


def change(
    connection: Connection, t: Tables, replay_id: int, state: ReplayState, result: Mapping[str, Any] | None = None
) -> None:
    """Write how a replay stands, and add to its result."""
    r = t.replays.c
    ended = state in (ReplayState.DONE, ReplayState.FAILED)
    added = func.coalesce(r.result, literal({}, r.result.type)).op("||", return_type=r.result.type)(
        literal(dict(result or {}), r.result.type)
    )
    connection.execute(
        update(t.replays)
        .where(r.id == replay_id)
        .values(state=state.value, finished_at=func.clock_timestamp() if ended else None, result=added)
    )


def _read(connection: Connection, t: Tables, replay_id: int, *, lock: bool = False) -> Replay:
    statement = _all(t).where(t.replays.c.id == replay_id)
    row = connection.execute(statement.with_for_update() if lock else statement).one_or_none()
    if row is None:
        raise ReplayError(f"there is no replay {replay_id}: {command('replays', t.schema)} lists them")
    return _of(row)


def _all(t: Tables) -> Select[Any]:
    r = t.replays.c
    return select(
        *(r.id, r.kind, r.who, r.reason, r.filter, r.plan, r.started_at, r.finished_at),
        *(r.state, func.coalesce(r.cursor_id, 0).label("cursor_id"), r.queued, r.result),
    )


def _of(row: Row[Any]) -> Replay:
    return Replay(
        id=row.id,
        kind=Kind(row.kind),
        who=row.who,
        reason=row.reason,
        selection=Selection.of_document(row.kind, row.filter),
        plan=Plan.of_document(row.plan),
        options=Options.of_document(row.plan["options"]),
        started_at=row.started_at,
        finished_at=row.finished_at,
        state=ReplayState(row.state),
        cursor_id=int(row.cursor_id),
        queued=int(row.queued),
        result=row.result or {},
    )
