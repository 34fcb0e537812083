"""Rows given to PostgreSQL as one array a column: one statement and one round trip for a whole batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    Numeric,
    Text,
    bindparam,
    column,
    func,
)
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import TypeEngine

from hookledger.version import Version

TYPES: dict[str, TypeEngine[Any]] = {
    "text": Text(),
    "bigint": BigInteger(),
    "integer": Integer(),
    "boolean": Boolean(),
    "float": Float(),
    "numeric": Numeric(),
    "bytes": LargeBinary(),
    "moment": DateTime(timezone=True),
}
BIGINTS = ARRAY(TYPES["bigint"])
VERSION = ARRAY(Numeric)


def rows(name: str, *, number: str | None = None, **columns: str) -> TableValuedAlias:
    """A FROM element with a row for every index of the arrays bound under `<name>_<column>`.

    Args:
        name: of the element in the statement.
        number: the name of a column that counts the rows from 1, in the order of the arrays.
        columns: names and types (keys of TYPES). A version is passed as text, such as '{12.5,3}', because
            unnest would flatten an array of arrays.
    """
    binds = [bindparam(f"{name}_{label}", type_=ARRAY(TYPES[kind])) for label, kind in columns.items()]
    typed: list[Any] = [column(label, TYPES[kind]) for label, kind in columns.items()]
    if number is None:
        valued = func.unnest(*binds).table_valued(*typed, name=name)
    else:
        valued = func.unnest(*binds).table_valued(*typed, with_ordinality=number, name=name)
    return valued.render_derived(name=name)


def version_text(version: Iterable[Any] | None) -> str | None:
    """A version as the text of a numeric[]."""
    return None if version is None else "{" + ",".join([str(part) for part in version]) + "}"


def version_of(text: str) -> Version:
    """A version from the text of a numeric[], which takes a fraction of the time that the driver takes for one."""
    return tuple(map(Decimal, text[1:-1].split(","))) if len(text) > 2 else ()


def bound(name: str, columns: Sequence[str], values: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Parameters for `rows`: the values, given row by row, turned into one array a column."""
    if not values:
        return {f"{name}_{label}": "{}" for label in columns}
    turned = zip(*values, strict=True)
    return {f"{name}_{label}": array(column) for label, column in zip(columns, turned, strict=True)}


def array(values: Sequence[Any]) -> str | list[Any]:
    """An array as PostgreSQL reads it from text; writing it here takes a fraction of the driver's time.

    Bytes are left to the driver, which sends them in binary.
    https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
    """
    kinds = set(map(type, values))
    if bytes in kinds:
        return list(values)
    if kinds == {str}:
        joined = '","'.join(values)
        if "\\" not in joined and joined.count('"') == 2 * (len(values) - 1):
            return f'{{"{joined}"}}'
    elif kinds == {int}:
        return f"{{{','.join(map(str, values))}}}"
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)
