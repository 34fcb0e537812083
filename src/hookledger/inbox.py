"""The inbox: the sources that may send, and the handlers that take what they sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from hookledger import storable
from hookledger.delivery import Delivery
from hookledger.errors import SetupError, UnknownSource
from hookledger.handlers import NO_HANDLER, Handler, HandlerFunction, Kind, read_signature
from hookledger.retry import RetryPolicy
from hookledger.sources.source import Source

Function = TypeVar("Function", bound=HandlerFunction)

DEFAULT_SCHEMA = "hookledger"
LARGEST_MATCH_CACHE = 10_000


class Inbox:
    """Sources and handlers. Give it to a receiver and to a worker.

    Args:
        sources: the senders, each with a name of its own.
        retry: the policy of handlers that have none.
        schema: the PostgreSQL schema of the ledger.
        future_tolerance: a snapshot whose version is a time further ahead of its receipt than this becomes a
            dead letter `rejected` instead of raising the watermark above all that follows.

    Raises:
        SetupError: for two sources of one name, or settings that could not work.
    """

    def __init__(
        self,
        *sources: Source,
        retry: RetryPolicy | None = None,
        schema: str = DEFAULT_SCHEMA,
        future_tolerance: timedelta = timedelta(days=1),
    ) -> None:
        self.sources: dict[str, Source] = {}
        for source in sources:
            if not isinstance(source, Source):
                raise SetupError(f"an inbox takes sources, such as stripe(secrets=...), not {type(source).__name__}")
            if source.name in self.sources:
                raise SetupError(
                    f"two sources are named {source.name!r}: give one another name, e.g. "
                    f'{source.provider}("{source.name}-2", secrets=...)'
                )
            self.sources[source.name] = source
        if not re.fullmatch(r"[^\x00]{1,63}", schema) or schema.startswith("pg_"):
            raise SetupError(f"the schema name {schema!r} is not one that PostgreSQL takes")
        if future_tolerance < timedelta(0):
            raise SetupError("future_tolerance must not be negative")
        _require_policy("the inbox", retry)
        self.retry = retry or RetryPolicy()
        self.schema = schema
        self.future_tolerance = future_tolerance
        self.handlers: dict[str, Handler] = {}
        self._matched: dict[tuple[str, str], tuple[Handler, ...]] = {}

    def snapshot(
        self,
        source: str,
        *event_types: str,
        name: str | None = None,
        resource: Callable[[Delivery], Any] | None = None,
        version: Callable[[Delivery], Any] | None = None,
        deleted: Callable[[Delivery], bool] | None = None,
        retry: RetryPolicy | None = None,
        aliases: Sequence[str] = (),
    ) -> Callable[[Function], Function]:
        """Register a handler for events that carry the whole state of a resource.

        Only a version newer than the last one applied reaches it; what it returns, if it is a mapping,
        becomes `resource_state.state`.

        Args:
            source: the name of a source of this inbox.
            event_types: patterns, `*` for any run of characters; none means all.
            name: the key in the ledger; the function's name if not given.
            resource: what the delivery is about (a string or integer), in place of what the source reads.
            version: what orders it (see `read_version`), in place of what the source reads.
            deleted: whether the delivery says that the resource is gone.
            retry: when it is tried again.
            aliases: names that the handler had before. What it did under them is not done again, and its watermarks
                hold. Give the new name as an alias too where a deploy is rolled back.

        Raises:
            SetupError: for an unknown source, a name that is taken, a function of the wrong shape, or a source
                that reads no resource or version where none is given here.
        """
        settings = {"resource": resource, "version": version, "deleted": deleted, "retry": retry, "aliases": aliases}
        return lambda function: self._register(Kind.SNAPSHOT, source, event_types, name, function, settings)

    def accumulate(
        self,
        source: str,
        *event_types: str,
        name: str | None = None,
        resource: Callable[[Delivery], Any] | None = None,
        retry: RetryPolicy | None = None,
        aliases: Sequence[str] = (),
    ) -> Callable[[Function], Function]:
        """Register a handler for events that are facts to add: applied once each, in any order.

        If it returns a mapping of names to numbers, they are added to `resource_state.state` of the resource.

        Args:
            source: the name of a source of this inbox.
            event_types: patterns, `*` for any run of characters; none means all.
            name: the key in the ledger; the function's name if not given.
            resource: what the returned numbers are added to, in place of what the source reads.
            retry: when it is tried again.
            aliases: names that the handler had before; what it did under them is not done again. Numbers that it
                returned then stay in the state of that name.

        Raises:
            SetupError: as `snapshot` does.
        """
        settings = {"resource": resource, "retry": retry, "aliases": aliases}
        return lambda function: self._register(Kind.ACCUMULATE, source, event_types, name, function, settings)

    def handlers_for(self, source: str, event_type: str) -> tuple[Handler, ...]:
        """The handlers of a delivery, in the order of their registration."""
        wanted = (source, event_type)
        found = self._matched.get(wanted)
        if found is None:
            found = tuple([handler for handler in self.handlers.values() if handler.matches(*wanted)])
            if len(self._matched) < LARGEST_MATCH_CACHE:
                self._matched[wanted] = found
        return found

    def retry_of(self, handler: Handler) -> RetryPolicy:
        """The policy that holds for a handler."""
        return handler.retry or self.retry

    def source(self, name: str) -> Source:
        """The source of that name.

        Raises:
            UnknownSource: if there is none.
        """
        try:
            return self.sources[name]
        except KeyError:
            raise UnknownSource(f"no source is named {name[:100]!r}") from None

    def _register(
        self,
        kind: Kind,
        source_name: str,
        event_types: tuple[str, ...],
        name: str | None,
        function: Function,
        settings: dict[str, Any],
    ) -> Function:
        if name is None:
            name = str(getattr(function, "__name__", type(function).__name__))
        if not _can_name(name):
            raise SetupError(f"{name!r} cannot name a handler: use a short text, and not {NO_HANDLER!r}")
        if name in self.handlers:
            raise SetupError(
                f"two handlers are named {name!r}: the name is the ledger's key, so give one of them name=..."
            )
        source = self.sources.get(source_name) if isinstance(source_name, str) else None
        if source is None:
            known = ", ".join(sorted(self.sources)) or "none"
            raise SetupError(f"the handler {name!r} is for the source {source_name!r}, but the inbox has: {known}")
        if any(not isinstance(pattern, str) or not pattern for pattern in event_types):
            raise SetupError(f"the handler {name!r} has an event type that is no text")
        for what in ("resource", "version", "deleted"):
            if settings.get(what) is not None and not callable(settings[what]):
                raise SetupError(f"the handler {name!r} needs {what}= to be a function of the delivery")
        _require_policy(f"the handler {name!r}", settings["retry"])
        if kind is Kind.SNAPSHOT:
            for what, known_by_source in (("resource", source.has_resource), ("version", source.has_version)):
                if settings[what] is None and not known_by_source:
                    raise SetupError(
                        f"the snapshot handler {name!r} needs {what}=..., a function of the delivery, because "
                        f"the source {source_name!r} reads no {what}"
                    )
        settings["aliases"] = self._read_aliases(name, settings["aliases"])
        takes, is_async = read_signature(function, name)
        self.handlers[name] = Handler(
            name, kind, source_name, event_types or ("*",), function, takes, is_async, **settings
        )
        self._matched.clear()
        return function

    def _read_aliases(self, name: str, aliases: Sequence[str]) -> tuple[str, ...]:
        given = (aliases,) if isinstance(aliases, str) else tuple(aliases)
        others = {
            alias: handler.name for handler in self.handlers.values() for alias in (handler.name, *handler.aliases)
        }
        for alias in given:
            if not _can_name(alias) or alias == name:
                raise SetupError(
                    f"{alias!r} cannot be an alias of the handler {name!r}: give the name that it had before"
                )
            if alias in others:
                raise SetupError(f"the handlers {name!r} and {others[alias]!r} cannot both have had the name {alias!r}")
        if name in others:
            raise SetupError(f"the handler {others[name]!r} has the alias {name!r}, which is another one's name")
        return given


def _can_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and bool(name.strip())
        and name != NO_HANDLER
        and len(name) <= 200
        and storable.text(name) == name
    )


def _require_policy(whose: str, retry: object) -> None:
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise SetupError(f"{whose} has a retry= that is no RetryPolicy, but {type(retry).__name__}")
