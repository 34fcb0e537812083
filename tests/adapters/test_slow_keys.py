"""A key server that does not answer holds up the requests of its own source, and nobody else's (D3)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.adapters.conftest import Serve
from tests.adapters.hub import KEY
from tests.adapters.kinds import ASGI, WSGI
from tests.adapters.served import Served, event_id
from tests.adapters.wire import Wire, head, signed
from tests.processes import wait_until
from tests.unit.sources.https_server import Authority, KeyServer, document

MANY = 12
"""More than there are threads in the servers of these tests."""


class SlowKeyServer:
    """A key server that answers only once it is told to."""

    def __init__(self, folder: Path) -> None:
        self.answers = threading.Event()
        self._authority = Authority(folder)
        give = document(KEY)

        def answer(handler: BaseHTTPRequestHandler) -> None:
            self.answers.wait()
            give(handler)

        self.server = KeyServer(self._authority, answer)

    @property
    def option(self) -> tuple[str, str]:
        return self.server.host, str(self._authority.authority)


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[SlowKeyServer]:
    """It answers when the test ends, at the latest."""
    keys = SlowKeyServer(tmp_path)
    with keys.server:
        yield keys
        keys.answers.set()


def ask(served: Served, stack: ExitStack, event: str) -> Wire:
    """A request to the source with fetched keys, whose answer is not waited for."""
    wire = stack.enter_context(served.connect())
    wire.send(head("POST", served.path("keyed"), [("Content-Length", "2"), *signed(b"{}", event)]) + b"{}")
    return wire


@pytest.mark.parametrize("kind", [*ASGI, *WSGI])
def test_other_sources_are_answered_meanwhile(serve: Serve, keys: SlowKeyServer, kind: str) -> None:
    served = serve(kind, key_server=keys.option)
    with ExitStack() as stack:
        wires = [ask(served, stack, event_id()) for _ in range(MANY)]
        wait_until(lambda: keys.server.requests)
        for _ in range(5):
            event = event_id()
            assert served.post(b"{}", event).status == 200
            assert len(served.stored(event)) == 1
        assert not keys.answers.is_set()
        keys.answers.set()
        answers = [wire.answer() for wire in wires]
    # A threaded server has no threads for those that would only wait.
    assert {answer.status for answer in answers} in ({200}, {200, 503})
    assert all(answer.header("retry-after") for answer in answers if answer.status == 503)
    late = event_id()
    assert served.post(b"{}", late, path=served.path("keyed")).status == 200
    assert len(served.stored(late)) == 1


@pytest.mark.parametrize("kind", ["starlette", "starlette-async", "flask-gunicorn"])
def test_a_key_server_that_is_too_slow_is_503_and_nothing_is_recorded(
    serve: Serve, keys: SlowKeyServer, kind: str
) -> None:
    served = serve(kind, key_server=keys.option, answer_within=1.0)
    told = served.mark()
    with ExitStack() as stack:
        events = [event_id() for _ in range(3)]
        answers = [wire.answer() for wire in [ask(served, stack, event) for event in events]]
    assert [answer.status for answer in answers] == [503] * 3
    assert {answer.header("retry-after") for answer in answers} == {"5"}
    assert not keys.answers.is_set()
    wait_until(lambda: "could not be verified in time" in told())
    keys.answers.set()
    # Nobody waits for them any more: their sender has been told to come again.
    again = event_id()
    assert wait_until(lambda: served.post(b"{}", again, path=served.path("keyed")).status == 200)
    assert [len(served.stored(event)) for event in [*events, again]] == [0, 0, 0, 1]
