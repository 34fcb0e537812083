"""What a function may look like to be a handler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy import Connection as Tx
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from hookledger import Delivery
from hookledger.errors import SetupError
from hookledger.handlers import Handler, Kind, read_signature

if TYPE_CHECKING:
    from sqlalchemy import Connection as HiddenConnection
    from sqlalchemy.orm import Session as HiddenSession

    from hookledger import Delivery as HiddenDelivery


class OwnSession(Session):
    """A session class of the application."""


def plain(delivery: Delivery, tx: Connection) -> None: ...
def bare(delivery, tx): ...  # type: ignore[no-untyped-def]
def anything(delivery: Delivery, tx: Any) -> None: ...
def any_arguments(*arguments: Any) -> None: ...
def with_defaults(delivery: Delivery, tx: Connection, more: int = 1, *, last: int = 2) -> None: ...
def with_session(delivery: Delivery, tx: Session) -> None: ...
def by_module(delivery: Delivery, tx: sa.Connection) -> None: ...
def by_alias(delivery: HiddenDelivery, tx: Tx) -> None: ...
def quoted(delivery: "HiddenDelivery", tx: "Session") -> None: ...  # noqa: UP037
def by_name(delivery: HiddenDelivery, tx: sqlalchemy.orm.Session) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def annotated(delivery: Delivery, tx: Annotated[Session, "the one of the ledger"]) -> None: ...
async def coroutine(delivery: Delivery, tx: AsyncConnection) -> None: ...
async def coroutine_with_session(delivery: Delivery, tx: AsyncSession) -> None: ...
async def bare_coroutine(delivery, tx): ...  # type: ignore[no-untyped-def]


class Called:
    """An object that can be called."""

    def __call__(self, delivery: Delivery, tx: Session) -> None: ...
    def method(self, delivery: HiddenDelivery, tx: Session) -> None: ...
    @classmethod
    def of_class(cls, delivery: Delivery, tx: Session) -> None: ...
    @staticmethod
    def static(delivery: Delivery, tx: Session) -> None: ...


class CalledAsynchronously:
    """A coroutine in the form of an object."""

    async def __call__(self, delivery: Delivery, tx: AsyncSession) -> None: ...


def three(more: int, delivery: Delivery, tx: Session) -> None: ...


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return wrapper


@pytest.mark.parametrize(
    ("function", "takes", "is_async"),
    [
        (plain, Connection, False),
        (bare, Connection, False),
        (anything, Connection, False),
        (any_arguments, Connection, False),
        (with_defaults, Connection, False),
        (lambda delivery, tx: None, Connection, False),
        (with_session, Session, False),
        (by_module, Connection, False),
        (by_alias, Connection, False),
        (quoted, Session, False),
        (by_name, Session, False),
        (annotated, Session, False),
        (coroutine, AsyncConnection, True),
        (coroutine_with_session, AsyncSession, True),
        (bare_coroutine, AsyncConnection, True),
        (Called(), Session, False),
        (Called().method, Session, False),
        (Called.of_class, Session, False),
        (Called.static, Session, False),
        (CalledAsynchronously(), AsyncSession, True),
        (functools.partial(three, 1), Session, False),
        (functools.partial(coroutine_with_session), AsyncSession, True),
        (decorated(with_session), Session, False),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_is_taken(function: Any, takes: type, is_async: bool) -> None:
    assert read_signature(function, "name") == (takes, is_async)


def hidden(delivery: HiddenDelivery, tx: HiddenConnection) -> None: ...
def hidden_session(delivery: Delivery, tx: HiddenSession | None) -> None: ...
def own_session(delivery: Delivery, tx: OwnSession) -> None: ...
def text(delivery: Delivery, tx: str) -> None: ...
def engine(delivery: Delivery, tx: sa.Engine) -> None: ...
def async_in_sync(delivery: Delivery, tx: AsyncConnection) -> None: ...
def nonsense(delivery: Delivery, tx: "no type (") -> None: ...  # type: ignore  # noqa: F722
async def sync_in_async(delivery: Delivery, tx: Session) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (hidden, "HiddenConnection"),
        (hidden_session, "HiddenSession"),
        (own_session, "OwnSession"),
        (text, "str: annotate it with Connection or Session"),
        (engine, "Engine"),
        (async_in_sync, "synchronous and its second argument is annotated AsyncConnection"),
        (sync_in_async, "asynchronous and its second argument is annotated Session"),
        (nonsense, "no type ("),
        (decorated(coroutine), "AsyncConnection"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_second_argument_that_no_handler_gets(function: Any, said: str) -> None:
    with pytest.raises(SetupError, match="annotate it with") as refused:
        read_signature(function, "name")
    assert said in str(refused.value)


def one(delivery: Delivery) -> None: ...
def three_needed(delivery: Delivery, tx: Connection, more: int) -> None: ...
def named_only(delivery: Delivery, *, tx: Connection) -> None: ...
def generator(delivery: Delivery, tx: Connection) -> Any:
    yield


async def async_generator(delivery: Delivery, tx: AsyncConnection) -> Any:
    yield


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (one, "two arguments"),
        (three_needed, "two arguments"),
        (named_only, "two arguments"),
        (int, "two arguments"),
        (generator, "generator"),
        (async_generator, "generator"),
        (None, "not callable"),
        ("text", "not callable"),
    ],
)
def test_what_cannot_be_called_with_a_delivery_and_a_transaction(function: Any, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        read_signature(function, "name")


@pytest.mark.parametrize(
    ("patterns", "matching", "others"),
    [
        (["*"], ["", "a", "a.b", "a\nb"], []),
        (["customer.*"], ["customer.", "customer.created", "customer.a.b"], ["customer", "xcustomer.a", "customers.a"]),
        (["*.deleted"], ["a.deleted", ".deleted"], ["deleted", "a.deleted.b"]),
        (["a.b"], ["a.b"], ["axb", "a.b.", "A.B", "a.b\n"]),
        (["a?"], ["a?"], ["ab"]),
        (["a[bc]"], ["a[bc]"], ["ab"]),
        (["a", "b"], ["a", "b"], ["ab", "", "c"]),
        (["a|b"], ["a|b"], ["a", "b"]),
        (["*a*b*"], ["ab", "xaxbx"], ["ba"]),
        (["☕*"], ["☕", "☕.a"], ["a☕"]),
    ],
)
def test_event_types(patterns: list[str], matching: list[str], others: list[str]) -> None:
    handler = Handler("name", Kind.SNAPSHOT, "shop", tuple(patterns), plain, Connection, is_async=False)
    assert [type_ for type_ in [*matching, *others] if handler.matches("shop", type_)] == matching
    assert not any(handler.matches("other", type_) for type_ in matching)
