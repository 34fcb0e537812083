"""Running all checks, each for itself: one that fails or takes too long does not hide the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import psycopg
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from hookledger.doctor import activity, clock, inbox, ledger, pooler, server, settings, work
from hookledger.doctor.finding import Finding, Limits, Look, Severity, Subject
from hookledger.engine import connect
from hookledger.errors import DatabaseUnreachable
from hookledger.inbox import DEFAULT_SCHEMA, Inbox
from hookledger.ledger.failure import is_unmigrated, sqlstate

INSUFFICIENT_PRIVILEGE = "42501"
CANCELLED = "57014"

CHECKS: dict[str, Look] = {
    "server": server.server,
    "durability": server.durability,
    "read-only": server.read_only,
    "vacuum": server.vacuum,
    "encoding": server.encoding,
    "schema": ledger.schema,
    "tables": ledger.tables,
    "rights": ledger.rights,
    "indexes": ledger.indexes,
    "time-limits": settings.time_limits,
    "isolation": settings.isolation,
    "client-check": settings.client_check,
    "pooler": pooler.pooler,
    "hints": pooler.hints,
    "clock": clock.clock,
    "transactions": activity.transactions,
    "connections": activity.connections,
    "partitions": work.partitions,
    "pending": work.pending,
    "dead-letters": work.dead_letters,
}
"""Those that look at the database, in their order."""

NAMES = ("database", "secrets", "handlers", *CHECKS)
"""Of all checks."""

TOLD_BY_OTHERS = frozenset({"partitions", "pending", "dead-letters"})
"""Those that read tables whose absence is told by others."""

_BOUND = text("SELECT set_config('statement_timeout', :most, true), set_config('lock_timeout', :most, true)")


def examine(
    examined: Inbox | None,
    engine: Engine,
    *,
    schema: str = DEFAULT_SCHEMA,
    limits: Limits | None = None,
    only: Collection[str] = NAMES,
    now: Callable[[], float] = time.time,
) -> list[Finding]:
    """See what is wrong, or may become so. Reads only, and is quick on a ledger of any size.

    Args:
        examined: the inbox; None to look at the database only.
        engine: as receivers and workers use it: with their role, and past the pooler or through it as they go.
        schema: of the ledger, where there is no inbox.
        limits: from where on something counts.
        only: names of the checks that are made, of NAMES.
        now: the clock of this machine, as Unix time in seconds.

    Returns:
        What was found, the worst first. A database that cannot be reached is a finding, too.
    """
    subject = Subject(examined, schema if examined is None else examined.schema, limits or Limits(), now)
    findings: list[Finding] = []
    if examined is not None:
        findings = [each for each in (*inbox.secrets(examined), *inbox.handlers(examined)) if each.check in only]
    try:
        connect(engine).close()
    except (DatabaseUnreachable, SQLAlchemyError) as error:
        what, _, do = str(error).rpartition("; ")
        findings.append(Finding(Severity.ERROR, "database", what or do, do if what else "see whether the server runs"))
    else:
        for name, look in CHECKS.items():
            if name in only:
                findings += _looked(name, look, engine, subject)
    return sorted(findings, key=lambda finding: list(Severity).index(finding.severity))


async def examine_asynchronously(
    examined: Inbox | None, engine: AsyncEngine, *, schema: str = DEFAULT_SCHEMA, limits: Limits | None = None
) -> list[Finding]:
    """`examine` for an AsyncEngine."""
    return await greenlet_spawn(examine, examined, engine.sync_engine, schema=schema, limits=limits)


def _looked(name: str, look: Look, engine: Engine, subject: Subject) -> list[Finding]:
    most = str(round(subject.limits.check.total_seconds() * 1000))
    try:
        with connect(engine) as connection:
            # In a transaction whatever the engine's own level, so that the limits hold, and end with it.
            connection.execution_options(isolation_level="READ COMMITTED")
            connection.execute(_BOUND, {"most": most})
            return list(look(connection, subject))
    except (DatabaseUnreachable, SQLAlchemyError, psycopg.Error, OSError) as error:
        if is_unmigrated(error) and name in TOLD_BY_OTHERS:
            return []
        return [_not_looked(name, error)]


def _not_looked(name: str, error: BaseException) -> Finding:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    code = sqlstate(error)
    if code == INSUFFICIENT_PRIVILEGE:
        return Finding(
            Severity.WARNING,
            name,
            f"this could not be looked at: {reason}",
            "grant the role what `hookledger db grants ROLE` prints",
        )
    do = "look again when the database is less busy" if code == CANCELLED else "look again when that is mended"
    return Finding(Severity.WARNING, name, f"this could not be looked at: {reason}", do)
