"""Receivers without a web server in front, called in each of the three ways that adapters call them; and senders."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from hookledger.delivery import Delivery, Event
from hookledger.http import Headers, Request, Response
from hookledger.inbox import Inbox
from hookledger.receive import Intake, IntakeSettings
from hookledger.sources import Source, hmac_source
from hookledger.sources.reading import read_json
from hookledger.storable import identifier

WAYS = ("threads", "loop", "loop-async")
"""A threaded server; an event loop with a synchronous engine; an event loop with an asynchronous one."""

KEY = "k-test-1"
THREADS = 256


def shop(name: str = "shop", **options: Any) -> Source:
    """A sender with one event a request, known by the id in the body."""
    fields = {"event_id": "id", "event_type": "type", "resource": "resource", "version": "version"}
    return hmac_source(name, header="X-Sig", **{"secrets": KEY, **fields, **options})


def many(name: str = "many") -> Source:
    """A sender with a list of events in each request; an item that is no object is unreadable."""
    single = shop(name)

    def read(request: Request) -> Sequence[Event]:
        document = read_json(request.body)
        return [_item(item) for item in document]

    def document(delivery: Delivery) -> Any:
        return read_json(delivery.body)[delivery.position]

    return Source(name, "many", single.verifier, read, document, lambda delivery: False, sign=single.sign)


def _item(item: Any) -> Event:
    content = json.dumps(item).encode()
    if not isinstance(item, dict):
        return Event(None, "", unreadable="the item is no object", content=content)
    return Event(identifier(item.get("id")), str(item.get("type", "")), content=content)


def inbox() -> Inbox:
    """Both senders."""
    return Inbox(shop(), many())


def signed(source: Source, body: bytes | Any, headers: Sequence[tuple[str, str]] = ()) -> Request:
    """A request as the sender makes it; a body that is not bytes is written as JSON."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    assert source.sign is not None
    return Request(source.name, "POST", Headers([*source.sign(body, time.time()), *headers]), body)


def event(event_id: str, **fields: Any) -> Request:
    """A request of the shop."""
    return signed(shop(), {"id": event_id, "type": "order.paid", **fields})


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def start(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Any) -> Any:
        return self.start(coroutine).result()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Receiving:
    """A receiver that is called in one of the ways.

    Args:
        way: one of WAYS.
        url: of the database with the ledger.
        settings: of the intake.
        inbox: what may be sent; `inbox()` if none is given.
        options: of the engine.
    """

    def __init__(
        self,
        way: str,
        url: str,
        *,
        settings: IntakeSettings | None = None,
        inbox: Inbox | None = None,
        **options: Any,
    ) -> None:
        self.way = way
        self._loop = Loop()
        self._threads = ThreadPoolExecutor(THREADS)
        self.engine: Engine | AsyncEngine
        if way == "loop-async":
            self.engine = create_async_engine(url, **options)
        else:
            self.engine = create_engine(url, **options)
        self.intake = Intake(inbox or _both(), self.engine, settings)

    def start(self, request: Request) -> Future[Response]:
        """Send a request, and do not wait for its answer."""
        if self.way == "threads":
            return self._threads.submit(self.intake.receive_blocking, request)
        return self._loop.start(self.intake.receive(request))

    def post(self, request: Request) -> Response:
        """Send a request, and wait for its answer."""
        return self.start(request).result()

    def post_all(self, requests: Sequence[Request]) -> list[Response]:
        """Send requests, all at once; their answers in the same order."""
        futures = [self.start(request) for request in requests]
        return [future.result() for future in futures]

    def start_closing(self) -> Future[None]:
        """Close the intake, and do not wait for that."""
        if self.way == "threads":
            return self._threads.submit(self.intake.close)
        return self._loop.start(self.intake.aclose())

    def close(self) -> None:
        if isinstance(self.engine, AsyncEngine):
            self._loop.run(self.intake.aclose())
            self._loop.run(self.engine.dispose())
        else:
            self.intake.close()
            self.engine.dispose()
        self._loop.close()
        self._threads.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_both = inbox
