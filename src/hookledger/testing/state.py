"""A state as it is compared: plain values, and rows of a query in no order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Result, Row, RowMapping, ScalarResult, text

from hookledger.errors import SetupError

ReadState = Callable[[Connection], Any] | str | Sequence[str]
"""What gives the state: a function of a connection, or one or several queries."""


def reader(read_state: ReadState) -> Callable[[Connection], Any]:
    """A function that reads the state.

    Raises:
        SetupError: for what is neither a function nor queries.
    """
    if callable(read_state):
        return read_state
    if isinstance(read_state, str):
        query = read_state
        return lambda connection: connection.execute(text(query))
    if isinstance(read_state, Sequence) and all(isinstance(each, str) for each in read_state):
        queries = list(read_state)
        return lambda connection: {each: connection.execute(text(each)) for each in queries}
    raise SetupError("read_state must be a function of a SQLAlchemy Connection, or a query, or a list of queries")


def plain(value: Any) -> Any:
    """The value without what belongs to the connection. Results of queries, which come in no certain order unless the
    query says so, are sorted."""
    if isinstance(value, Result | ScalarResult):
        return sorted((plain(row) for row in value.all()), key=repr)
    if isinstance(value, RowMapping | Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Row | tuple):
        return tuple(plain(each) for each in value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value
