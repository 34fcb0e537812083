"""Checks of what others do on the server: transactions that keep vacuum away, connections that are used up.

https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-PG-STAT-ACTIVITY-VIEW
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, text

from hookledger.doctor.finding import Finding, Severity, Subject, in_words

# A transaction that has neither a snapshot nor a number of its own holds back nothing. Statements are not shown: they
# may hold what is secret.
_OPEN = text(
    """
    SELECT 'the transaction of process ' || pid || ' (role ' || coalesce(usename, '-') || ', '
        || coalesce(nullif(application_name, ''), 'no application_name') || ', ' || coalesce(state, '-') || ')' AS what,
        'SELECT pg_terminate_backend(' || pid || ')' AS remedy,
        extract(epoch FROM clock_timestamp() - xact_start) AS seconds
    FROM pg_catalog.pg_stat_activity
    WHERE pid <> pg_backend_pid() AND (datname = current_database() OR backend_type = 'walsender')
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND backend_type NOT IN ('autovacuum worker', 'parallel worker')
    UNION ALL
    SELECT 'the prepared transaction ' || quote_literal(gid) || ' of the role ' || owner,
        'COMMIT PREPARED or ROLLBACK PREPARED ' || quote_literal(gid), extract(epoch FROM clock_timestamp() - prepared)
    FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()
    ORDER BY seconds DESC LIMIT 3
    """
)
_SLOTS = text(
    """
    SELECT slot_name, age(xmin) AS transactions FROM pg_catalog.pg_replication_slots
    WHERE xmin IS NOT NULL AND NOT active ORDER BY 2 DESC LIMIT 3
    """
)
_HIDDEN = text(
    """
    SELECT count(*) FROM pg_catalog.pg_stat_activity
    WHERE datname = current_database() AND query = '<insufficient privilege>'
    """
)
_CONNECTIONS = text(
    """
    SELECT what, remedy, used, most FROM (
        SELECT 1, 'max_connections of the server', 'raise max_connections, or put a pooler in front',
            (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datid IS NOT NULL AND leader_pid IS NULL),
            (SELECT current_setting('max_connections')::integer - sum(setting::integer) FROM pg_catalog.pg_settings
             WHERE name IN ('superuser_reserved_connections', 'reserved_connections'))
        UNION ALL
        SELECT 2, 'CONNECTION LIMIT of the database', 'ALTER DATABASE ... CONNECTION LIMIT a larger number',
            (SELECT count(*) FROM pg_catalog.pg_stat_activity
             WHERE datname = current_database() AND leader_pid IS NULL),
            (SELECT nullif(datconnlimit, -1) FROM pg_catalog.pg_database WHERE datname = current_database())
        UNION ALL
        SELECT 3, 'CONNECTION LIMIT of the role', 'ALTER ROLE ... CONNECTION LIMIT a larger number',
            (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE usename = session_user AND leader_pid IS NULL),
            (SELECT nullif(rolconnlimit, -1) FROM pg_catalog.pg_roles WHERE rolname = session_user)
    ) AS counted (place, what, remedy, used, most) WHERE most IS NOT NULL ORDER BY place
    """
)


def transactions(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Transactions that have been open for long, and so keep vacuum from clearing pending."""
    for what, do, seconds in connection.execute(_OPEN):
        if float(seconds) > subject.limits.open_transaction.total_seconds():
            yield Finding(
                Severity.WARNING,
                "transactions",
                f"{what} has been open for {in_words(float(seconds))}: vacuum cannot clear pending, and claims become "
                "slower",
                f"end it, by {do} if its program does not",
            )
    for slot, age in connection.execute(_SLOTS):
        yield Finding(
            Severity.WARNING,
            "transactions",
            f"the replication slot {slot!r} is used by nobody and holds back vacuum, by {age} transactions so far",
            f"let its standby connect, or SELECT pg_drop_replication_slot('{slot}')",
        )
    hidden = connection.execute(_HIDDEN).scalar_one()
    if hidden:
        yield Finding(
            Severity.NOTE,
            "transactions",
            f"{hidden} sessions of other roles cannot be looked at: how long their transactions are open is not known",
            "run this as a role with pg_read_all_stats",
        )


def connections(connection: Connection, subject: Subject) -> Iterator[Finding]:
    """Connections that are nearly used up."""
    for what, do, used, most in connection.execute(_CONNECTIONS):
        if used >= most * subject.limits.connections:
            yield Finding(
                Severity.WARNING,
                "connections",
                f"{used} of {most} connections are in use ({what}): receivers answer 503 when there are none left",
                do,
            )
