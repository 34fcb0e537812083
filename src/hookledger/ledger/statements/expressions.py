"""Expressions that several statements are made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Float, Interval, cast, func, literal_column
from sqlalchemy.types import Text


def next_id(schema: str, sequence: str) -> Any:
    """The next number of a sequence in the given schema."""
    # Quoted by hand: the preparer doubles percent signs, and the compiler doubles those of a literal again.
    quoted = '"' + schema.replace('"', '""') + '"'
    name = f"{quoted}.{sequence}".replace("'", "''")
    return func.nextval(literal_column(f"'{name}'::regclass"))


def seconds(value: Any) -> Any:
    """A number of seconds as an interval."""
    return cast(value, Float) * cast(literal_column("'1 second'"), Interval)


def literal_text(value: str) -> Any:
    """A word of ours as a constant in the text of the statement; never what somebody sent."""
    return cast(literal_column(f"'{value}'"), Text)
