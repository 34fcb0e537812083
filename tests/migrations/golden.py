"""A description of a ledger's schema that is the same on every version of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, RowMapping, text

from hookledger.ledger.rights import quoted

# Identity of partitions (from 17 on) and constraints for NOT NULL (from 18 on) are left out.
RELATIONS = """
    SELECT c.oid, c.relname AS name, c.relkind AS kind, c.relispartition AS is_partition, c.reloptions AS options,
           pg_get_partkeydef(c.oid) AS partition_key, pg_get_expr(c.relpartbound, c.oid) AS bound,
           p.relname AS parent
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
    WHERE n.nspname = :schema AND c.relkind NOT IN ('i', 'I') ORDER BY c.relname COLLATE "C"
"""
COLUMNS = """
    SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS not_null,
           a.attidentity AS identity, pg_get_expr(d.adbin, d.adrelid) AS default
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = :oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
CONSTRAINTS = """
    SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
    WHERE conrelid = :oid AND contype <> 'n' ORDER BY conname COLLATE "C"
"""
INDEXES = """
    SELECT pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = :oid AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)
    ORDER BY c.relname COLLATE "C"
"""
OTHERS = """
    SELECT 'FUNCTION ' || proname FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = :schema
    UNION ALL
    SELECT 'TYPE ' || typname FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
    WHERE nspname = :schema AND typrelid = 0 AND typelem = 0
    UNION ALL
    SELECT 'TRIGGER ' || tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = :schema
    ORDER BY 1
"""
KINDS = {"S": "SEQUENCE", "v": "VIEW", "m": "MATERIALIZED VIEW", "f": "FOREIGN TABLE", "c": "TYPE"}
OUTSIDE = """
    SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', :schema)
"""


def describe_schema(connection: Connection, schema: str) -> str:
    """Everything in the schema, as statements without the schema's name."""
    statements = [*_relations(connection, schema)]
    statements += connection.execute(text(OTHERS), {"schema": schema}).scalars()
    return "\n\n".join(statements).replace(f"{quoted(schema)}.", "") + "\n"


def outside_schema(connection: Connection, schema: str) -> list[str]:
    """The relations of this database that are neither in the schema nor the server's own."""
    return [*connection.execute(text(OUTSIDE), {"schema": schema}).scalars()]


def _relations(connection: Connection, schema: str) -> Iterator[str]:
    for relation in connection.execute(text(RELATIONS), {"schema": schema}).mappings().all():
        if relation["kind"] not in ("r", "p"):
            yield f"CREATE {KINDS.get(relation['kind'], relation['kind'])} {relation['name']};"
            continue
        oid = {"oid": relation["oid"]}
        parts = [_column(column, relation) for column in connection.execute(text(COLUMNS), oid).mappings()]
        parts += [f"CONSTRAINT {name} {definition}" for name, definition in connection.execute(text(CONSTRAINTS), oid)]
        statement = f"CREATE TABLE {relation['name']}"
        if relation["parent"]:
            statement += f" PARTITION OF {relation['parent']}"
        statement += " (\n    " + ",\n    ".join(parts) + "\n)"
        if relation["bound"]:
            statement += f" {relation['bound']}"
        if relation["partition_key"]:
            statement += f" PARTITION BY {relation['partition_key']}"
        if relation["options"]:
            statement += f" WITH ({', '.join(sorted(relation['options']))})"
        yield statement + ";"
        for definition in connection.execute(text(INDEXES), oid).scalars():
            yield f"{definition};"


def _column(column: RowMapping, relation: RowMapping) -> str:
    described = f"{column['name']} {column['type']}"
    if column["default"]:
        described += f" DEFAULT {column['default']}"
    if column["not_null"]:
        described += " NOT NULL"
    if column["identity"] and not relation["is_partition"]:
        described += f" GENERATED {'ALWAYS' if column['identity'] == 'a' else 'BY DEFAULT'} AS IDENTITY"
    return described
