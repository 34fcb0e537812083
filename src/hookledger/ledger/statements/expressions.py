"""Expressions that several statements are made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Float, Interval, any_, bindparam, cast, func, literal_column
from sqlalchemy.types import Text

from hookledger.ledger.arrays import BIGINTS


def next_id(schema: str, sequence: str) -> Any:
    """The next number of a sequence in the given schema."""
    # Quoted by hand: the preparer doubles percent signs, and the compiler doubles those of a literal again.
    quoted = '"' + schema.replace('"', '""') + '"'
    name = f"{quoted}.{sequence}".replace("'", "''")
    return func.nextval(literal_column(f"'{name}'::regclass"))


def is_one_of(column: Any, parameter: str) -> Any:
    """Whether a column is one of the ids that are given as an array. Said beside a join with the same ids, it has
    PostgreSQL go by the index even where it believes that the table is empty."""
    return column == any_(bindparam(parameter, type_=BIGINTS))


def seconds(value: Any) -> Any:
    """A number of seconds as an interval."""
    return cast(value, Float) * cast(literal_column("'1 second'"), Interval)


def literal_text(value: str) -> Any:
    """A word of ours as a constant in the text of the statement; never what somebody sent."""
    return cast(literal_column(f"'{value}'"), Text)
