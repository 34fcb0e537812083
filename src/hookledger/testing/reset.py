"""Putting a database back to how it was: its rows and its sequences, without making it anew."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from types import TracebackType
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, CursorResult, Engine, text

from hookledger.errors import SetupError
from hookledger.ledger.schema import VERSION_TABLE

KEPT = "hookledger_kept"
"""The schema in which rows are kept that were there at the beginning."""
ALEMBIC = "alembic_version"

_TABLES = text(
    """
    SELECT c.oid::bigint AS id, format('%I.%I', n.nspname, c.relname) AS name, n.nspname = :schema AS ours,
           EXISTS (SELECT FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) AS triggers,
           (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') AS columns
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
      AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', :kept)
      AND c.relname NOT IN (:version_table, :alembic)
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
    ORDER BY name
    """
)
_REFERENCES = text(
    "SELECT conrelid::bigint, confrelid::bigint FROM pg_catalog.pg_constraint WHERE contype = 'f' AND conparentid = 0"
)
_SEQUENCES = text(
    """
    SELECT format('%I.%I', schemaname, sequencename) AS name, coalesce(last_value, start_value) AS value,
           last_value IS NOT NULL AS called
    FROM pg_catalog.pg_sequences
    """
)
_SET = text(
    "SELECT setval(name::regclass, value, called) FROM unnest("
    "CAST(:names AS text[]), CAST(:given AS bigint[]), CAST(:called AS boolean[])) AS s (name, value, called)"
)


class _Table(NamedTuple):
    id: int
    name: str
    ours: bool
    triggers: bool
    columns: str


class Reset:
    """Notes what is in a database, and puts it back as often as it is asked to: the rows of all tables but those in
    which migrations keep their version, and the sequences.

    Args:
        engine: of the database.
        schema: of the ledger.

    Raises:
        SetupError: if tables with rows refer to each other in a circle.
    """

    def __init__(self, engine: Engine, schema: str) -> None:
        self._engine = engine
        with engine.begin() as connection:
            _run(connection, f"DROP SCHEMA IF EXISTS {KEPT} CASCADE")
            names = {"kept": KEPT, "schema": schema, "version_table": VERSION_TABLE, "alembic": ALEMBIC}
            self._tables = [_Table(*row) for row in connection.execute(_TABLES, names)]
            self._sequences = connection.execute(_SEQUENCES).all()
            filled = self._filled(connection)
            self._kept = _in_order(connection, [table for table in self._tables if table.name in filled])
            if self._kept:
                _run(connection, f"CREATE SCHEMA {KEPT}")
            for table in self._kept:
                _run(connection, f"CREATE TABLE {_copy(table)} AS SELECT {table.columns} FROM {table.name}")  # noqa: S608

    def __call__(self) -> None:
        """Put all of it back."""
        with self._engine.begin() as connection:
            filled = self._filled(connection)
            kept = {table.name for table in self._kept}
            changed = [table for table in self._tables if table.name in filled | kept]
            yours = [table.name for table in changed if not table.ours]
            if yours:
                _run(connection, f"TRUNCATE {', '.join(yours)} CASCADE")
            for table in changed:
                if table.ours:
                    # Few rows are deleted faster than files are made, and nothing of yours hangs on these tables.
                    _run(connection, f"DELETE FROM {table.name}")  # noqa: S608
            for table in self._kept:
                self._restore(connection, table)
            if self._sequences:
                names, given, called = zip(*self._sequences, strict=True)
                connection.execute(_SET, {"names": list(names), "given": list(given), "called": list(called)})

    def close(self) -> None:
        """Put all of it back for the last time."""
        self()
        with self._engine.begin() as connection:
            _run(connection, f"DROP SCHEMA IF EXISTS {KEPT} CASCADE")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _filled(self, connection: Connection) -> set[str]:
        if not self._tables:
            return set()
        looks = [f"SELECT {number} WHERE EXISTS (SELECT FROM {t.name})" for number, t in enumerate(self._tables)]  # noqa: S608
        found = _run(connection, " UNION ALL ".join(looks)).scalars()
        return {self._tables[number].name for number in found}

    def _restore(self, connection: Connection, table: _Table) -> None:
        # Yours did their work when the rows were made.
        if table.triggers:
            _run(connection, f"ALTER TABLE {table.name} DISABLE TRIGGER USER")
        into = f"{table.name} ({table.columns}) OVERRIDING SYSTEM VALUE"
        _run(connection, f"INSERT INTO {into} SELECT {table.columns} FROM {_copy(table)}")  # noqa: S608
        if table.triggers:
            _run(connection, f"ALTER TABLE {table.name} ENABLE TRIGGER USER")


def _in_order(connection: Connection, tables: Sequence[_Table]) -> list[_Table]:
    """The tables in an order in which their rows can be inserted: what is referred to first."""
    by_id = {table.id: table for table in tables}
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(by_id, ()))
    for referring, referred in connection.execute(_REFERENCES):
        if referring in by_id and referred in by_id and referring != referred:
            sorter.add(referring, referred)
    try:
        return [by_id[id] for id in sorter.static_order()]
    except CycleError as error:
        circle = ", ".join(by_id[id].name for id in error.args[1][1:])
        raise SetupError(
            f"the tables {circle} have rows and refer to each other in a circle, which cannot be put back: begin with "
            "one of them empty"
        ) from None


def _run(connection: Connection, statement: str) -> CursorResult[Any]:
    # Not as text(), to which a colon in a name would be a parameter.
    return connection.exec_driver_sql(statement.replace("%", "%%"))


def _copy(table: _Table) -> str:
    return f"{KEPT}.rows_{table.id}"
