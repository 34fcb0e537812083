"""A handler: a user's function, what it is for, and what it wants to be called with."""

from __future__ import annotations

import enum
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from hookledger.delivery import Delivery
from hookledger.errors import SetupError
from hookledger.retry import RetryPolicy

NO_HANDLER = "-"
"""The handler's name in the ledger's row for a delivery that no handler matched."""

Transaction = Connection | AsyncConnection | Session | AsyncSession
HandlerFunction = Callable[..., Any]


class Kind(enum.Enum):
    """How the outcomes of a handler are made safe."""

    SNAPSHOT = "snapshot"
    ACCUMULATE = "accumulate"


@dataclass(frozen=True)
class Handler:
    """A registered handler.

    Args:
        name: its key in the ledger; keep it when the function is renamed.
        kind: snapshot or accumulate.
        source: the name of the source whose deliveries it takes.
        event_types: patterns, `*` for any run of characters.
        function: the user's function of (delivery, tx).
        takes: the class of the second argument, read from its annotation.
        is_async: whether it is a coroutine function.
        resource, version, deleted: functions of the delivery that replace what the source reads.
        retry: when it is tried again; None for the inbox's policy.
        aliases: names that it had before: what the ledger holds under them counts as its own.
    """

    name: str
    kind: Kind
    source: str
    event_types: tuple[str, ...]
    function: HandlerFunction = field(repr=False)
    takes: type[Transaction]
    is_async: bool
    resource: Callable[[Delivery], Any] | None = None
    version: Callable[[Delivery], Any] | None = None
    deleted: Callable[[Delivery], bool] | None = None
    retry: RetryPolicy | None = None
    aliases: tuple[str, ...] = ()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Not fnmatch: to it, brackets and question marks mean something as well.
        parts = [".*".join(re.escape(part) for part in pattern.split("*")) for pattern in self.event_types]
        return re.compile("|".join(parts), re.DOTALL)

    def matches(self, source: str, event_type: str) -> bool:
        """Whether deliveries of that source and event type are for this handler."""
        return source == self.source and self._pattern.fullmatch(event_type) is not None


def _annotation(function: HandlerFunction, parameter: inspect.Parameter) -> Any:
    """What a parameter is annotated with; a text is evaluated where the function stands."""
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        return annotation
    while isinstance(function, functools.partial):
        function = function.func
    written = inspect.unwrap(function if inspect.isroutine(function) else type(function).__call__)
    names = getattr(written, "__globals__", {})
    try:
        # This annotation alone: that of the delivery may be imported for type checkers only.
        holder = types.SimpleNamespace(__annotations__={parameter.name: annotation})
        return typing.get_type_hints(holder, globalns=names)[parameter.name]
    except Exception:
        # As this one may be, and then its name has to do.
        kinds = {kind.__name__: kind for kind in (Connection, AsyncConnection, Session, AsyncSession)}
        return kinds.get(annotation.rpartition(".")[2].strip(" \"'"), annotation)


def read_signature(function: HandlerFunction, name: str) -> tuple[type[Transaction], bool]:
    """What a function wants as its second argument, and whether it is asynchronous.

    Raises:
        SetupError: if it cannot be called with a delivery and a transaction.
    """
    if not callable(function):
        raise SetupError(f"the handler {name!r} is not callable")
    called = function if inspect.isroutine(function) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise SetupError(f"the handler {name!r} is a generator; write it as a plain or async function")
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
    try:
        signature = inspect.signature(function)
        signature.bind(None, None)
    except (TypeError, ValueError):
        raise SetupError(f"the handler {name!r} must take two arguments: (delivery, tx)") from None
    positional = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    default: type[Transaction] = AsyncConnection if is_async else Connection
    if len(positional) < 2:
        return default, is_async
    annotation = _annotation(function, positional[1])
    if annotation in (inspect.Parameter.empty, Any):
        return default, is_async
    fitting: tuple[type[Any], type[Any]] = (AsyncConnection, AsyncSession) if is_async else (Connection, Session)
    for kind in fitting:
        # Not a subclass of it: the handler would not get what it expects.
        if annotation is kind:
            return kind, is_async
    names = " or ".join(kind.__name__ for kind in fitting)
    shown = getattr(annotation, "__name__", str(annotation))
    raise SetupError(
        f"the handler {name!r} is {'asynchronous' if is_async else 'synchronous'} and its second argument is "
        f"annotated {shown}: annotate it with {names} of SQLAlchemy"
    )
