"""Registering sources and handlers: what is wrong is told at start, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection

from hookledger import Delivery, Inbox, RetryPolicy, github, hmac_source, stripe
from hookledger.errors import SetupError, UnknownSource
from hookledger.worker import Worker, WorkerSettings
from tests.outcomes import shop

BARE = hmac_source("bare", header="X-Sig", secrets="k-test-1")
NO_VERSION = hmac_source("unordered", header="X-Sig", secrets="k-test-1", resource="id")


def handle(delivery: Delivery, tx: Connection) -> None: ...


@pytest.fixture
def inbox() -> Inbox:
    return Inbox(shop(), shop("other"), BARE, NO_VERSION)


def test_the_decorator_gives_the_function_back(inbox: Inbox) -> None:
    assert inbox.snapshot("shop")(handle) is handle
    assert inbox.accumulate("shop", name="second")(handle) is handle
    assert list(inbox.handlers) == ["handle", "second"]


def test_handlers_are_found_by_source_and_type_in_the_order_they_were_registered(inbox: Inbox) -> None:
    inbox.snapshot("shop", "a.*", name="first")(handle)
    inbox.accumulate("shop", name="second")(handle)
    inbox.accumulate("other", name="third")(handle)
    assert [found.name for found in inbox.handlers_for("shop", "a.b")] == ["first", "second"]
    assert [found.name for found in inbox.handlers_for("shop", "b")] == ["second"]
    assert [found.name for found in inbox.handlers_for("other", "a.b")] == ["third"]
    assert inbox.handlers_for("unknown", "a.b") == ()
    # One that is registered later is found as well.
    inbox.accumulate("shop", name="fourth")(handle)
    assert [found.name for found in inbox.handlers_for("shop", "b")] == ["second", "fourth"]


def test_two_of_one_name_are_refused(inbox: Inbox) -> None:
    inbox.snapshot("shop")(handle)
    with pytest.raises(SetupError, match=r"two handlers are named 'handle'.*give one of them name="):
        inbox.accumulate("other")(handle)


def test_an_unknown_source_is_told_with_those_there_are(inbox: Inbox) -> None:
    with pytest.raises(SetupError, match="'shp', but the inbox has: bare, other, shop, unordered"):
        inbox.snapshot("shp")(handle)
    with pytest.raises(SetupError, match="but the inbox has: none"):
        Inbox().accumulate("shop")(handle)
    with pytest.raises(UnknownSource, match="'nobody'"):
        inbox.source("nobody")


def test_a_decorator_without_its_source_is_refused(inbox: Inbox) -> None:
    with pytest.raises(SetupError, match="is for the source <function"):
        inbox.snapshot(handle)(handle)  # type: ignore[arg-type]


def test_a_snapshot_needs_a_resource_and_a_version(inbox: Inbox) -> None:
    with pytest.raises(SetupError, match="needs resource="):
        inbox.snapshot("bare")(handle)
    with pytest.raises(SetupError, match="needs version="):
        inbox.snapshot("bare", resource=lambda _: "r")(handle)
    with pytest.raises(SetupError, match="needs version="):
        inbox.snapshot("unordered")(handle)
    inbox.snapshot("bare", resource=lambda _: "r", version=lambda _: 1)(handle)
    inbox.accumulate("bare", name="add")(handle)


@pytest.mark.parametrize("name", ["", " ", "-", "x" * 201, "a\x00b", "half \ud83d"])
def test_a_name_that_is_no_key_is_refused(inbox: Inbox, name: str) -> None:
    with pytest.raises(SetupError, match="cannot name a handler"):
        inbox.accumulate("shop", name=name)(handle)


@pytest.mark.parametrize("event_type", ["", None, 1, ["a"]])
def test_an_event_type_that_is_no_text_is_refused(inbox: Inbox, event_type: Any) -> None:
    with pytest.raises(SetupError, match="event type"):
        inbox.accumulate("shop", event_type)(handle)


@pytest.mark.parametrize("what", ["resource", "version", "deleted"])
def test_settings_that_are_no_function_are_refused(inbox: Inbox, what: str) -> None:
    with pytest.raises(SetupError, match=f"needs {what}= to be a function"):
        inbox.snapshot("shop", **{what: "data.id"})(handle)  # type: ignore[arg-type]


@pytest.mark.parametrize("register", [Inbox.snapshot, Inbox.accumulate])
def test_a_retry_that_is_no_policy_is_refused(inbox: Inbox, register: Callable[..., Any]) -> None:
    with pytest.raises(SetupError, match="no RetryPolicy, but int"):
        register(inbox, "shop", retry=5)(handle)


def test_settings_of_the_inbox_that_could_not_work_are_refused() -> None:
    with pytest.raises(SetupError, match="two sources are named 'shop'"):
        Inbox(shop(), shop())
    with pytest.raises(SetupError, match="not str"):
        Inbox("stripe")  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="no RetryPolicy"):
        Inbox(retry=3)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="future_tolerance"):
        Inbox(future_tolerance=timedelta(seconds=-1))
    for schema in ("", "x" * 64, "pg_mine", "a\x00b"):
        with pytest.raises(SetupError, match="schema name"):
            Inbox(schema=schema)


def test_the_policy_of_a_handler_goes_before_that_of_the_inbox() -> None:
    inbox = Inbox(shop(), retry=RetryPolicy(max_attempts=7))
    inbox.accumulate("shop", name="own", retry=RetryPolicy(max_attempts=2))(handle)
    inbox.accumulate("shop", name="common")(handle)
    assert inbox.retry_of(inbox.handlers["own"]).max_attempts == 2
    assert inbox.retry_of(inbox.handlers["common"]).max_attempts == 7
    assert Inbox().retry == RetryPolicy()


def test_the_sources_of_the_package_have_what_a_snapshot_needs() -> None:
    inbox = Inbox(stripe(secrets="whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"), github(secrets="k-test-1-long-enough"))
    inbox.snapshot("stripe", "customer.*", name="customers")(handle)
    inbox.accumulate("github", "push", name="pushes")(handle)


# The worker at its start.


def test_a_worker_needs_handlers() -> None:
    with pytest.raises(SetupError, match="no handlers"):
        Worker(Inbox(shop()), create_engine("postgresql+psycopg://"))


def test_asynchronous_handlers_need_an_asynchronous_engine(inbox: Inbox) -> None:
    async def fetch(delivery: Delivery, tx: AsyncConnection) -> None: ...

    inbox.accumulate("shop")(fetch)
    with pytest.raises(SetupError, match=r"'fetch' is asynchronous.*create_async_engine"):
        Worker(inbox, create_engine("postgresql+psycopg://"))


def test_another_database_is_refused(inbox: Inbox) -> None:
    inbox.accumulate("shop")(handle)
    with pytest.raises(SetupError, match=r"sqlite.*postgresql\+psycopg://"):
        Worker(inbox, create_engine("sqlite://"))


@pytest.mark.parametrize(
    "settings",
    [
        {"slots": 0},
        {"batch": 0},
        {"time_budget": 0},
        {"grace": -1},
        {"shortest_poll": 0},
        {"shortest_poll": 2, "longest_poll": 1},
        {"time_budget": float("nan")},
        {"grace": float("nan")},
        {"longest_poll": float("nan")},
    ],
)
def test_settings_of_the_worker_that_could_not_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SetupError):
        WorkerSettings(**settings)
