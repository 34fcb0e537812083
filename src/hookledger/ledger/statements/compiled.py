"""The statements as text, built once a schema."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql import ClauseElement

from hookledger.ledger.schema import tables
from hookledger.ledger.statements.claim import claim, claim_one, read_bodies, take
from hookledger.ledger.statements.failures import bury, postpone, write_failures
from hookledger.ledger.statements.give_back import give_back, hold_pauses, park
from hookledger.ledger.statements.hold import hold, hold_alike, hold_waiting
from hookledger.ledger.statements.record import known, record, record_again, record_earlier
from hookledger.ledger.statements.revive import find_ignored, leave_dead_letters, revive_ignored
from hookledger.ledger.statements.settle import look_up, settle
from hookledger.ledger.statements.states import (
    add_states,
    insert_states,
    lock_states,
    read_states,
    save_locked_states,
    save_states,
)

DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Statements:
    """The text of every statement for one schema, with psycopg's named placeholders."""

    record: str
    record_earlier: str
    known: str
    record_again: str
    take: str
    read_bodies: str
    claim_one: str
    hold: str
    hold_alike: str
    hold_waiting: str
    look_up: str
    insert_states: str
    lock_states: str
    read_states: str
    save_states: str
    save_locked_states: str
    add_states: str
    settle: str
    write_failures: str
    postpone: str
    give_back: str
    park: str
    hold_pauses: str
    bury: str
    find_ignored: str
    revive_ignored: str
    leave_dead_letters: str


def _compiled(element: ClauseElement) -> str:
    # Bytes go in psycopg's binary format: as text they would be twice as many, and escaped on the way (measured for
    # a body of 25 MiB: 1 s instead of 4).
    return str(element.compile(dialect=DIALECT)).replace(")s::BYTEA[]", ")b::BYTEA[]")


@cache
def statements(schema: str) -> Statements:
    """The statements of the ledger in the given schema, built once."""
    t = tables(schema)
    return Statements(
        record=_compiled(record(t)),
        record_earlier=_compiled(record_earlier(t)),
        known=_compiled(known(t)),
        record_again=_compiled(record_again(t)),
        take=_compiled(take(t)),
        read_bodies=_compiled(read_bodies(t)),
        claim_one=_compiled(claim_one(t)),
        hold=_compiled(hold(t)),
        hold_alike=_compiled(hold_alike(t)),
        hold_waiting=_compiled(hold_waiting(t)),
        look_up=_compiled(look_up(t)),
        insert_states=_compiled(insert_states(t)),
        lock_states=_compiled(lock_states(t)),
        read_states=_compiled(read_states(t)),
        save_states=_compiled(save_states(t)),
        save_locked_states=_compiled(save_locked_states(t)),
        add_states=_compiled(add_states(t)),
        settle=_compiled(settle(t)),
        write_failures=_compiled(write_failures(t)),
        postpone=_compiled(postpone(t)),
        give_back=_compiled(give_back(t)),
        park=_compiled(park(t)),
        hold_pauses=_compiled(hold_pauses(t)),
        bury=_compiled(bury(t)),
        find_ignored=_compiled(find_ignored(t)),
        revive_ignored=_compiled(revive_ignored(t)),
        leave_dead_letters=_compiled(leave_dead_letters(t)),
    )


@lru_cache(maxsize=256)
def claim_statement(schema: str, batch: int) -> str:
    """The claim of up to `batch` deliveries, built once a size."""
    return _compiled(claim(tables(schema), batch))
