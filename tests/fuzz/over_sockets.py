"""Attempts sent over sockets to a server in a process of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from hypothesis import strategies as st

from hookledger.http import Headers, Request
from hookledger.receive.accept import Accepted
from tests.adapters.served import Served, serving
from tests.fuzz.attempts import Attempt, attempts
from tests.fuzz.framing import Framed, exchange, framed
from tests.fuzz.oracle import expected, not_committed
from tests.fuzz.senders import shared
from tests.ledger import Ledger

ERROR = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)$", re.MULTILINE)
OF_THE_SERVER = ("h11._util.LocalProtocolError:", "h11._util.RemoteProtocolError:")
"""uvicorn refuses chunks that are none or break off, whether the application has answered already or is about to; h11
takes no second answer from either, and nothing catches that. It may be logged after the next request was sent."""

KINDS = ("starlette", "starlette-async", "flask-gunicorn")
"""uvicorn with httptools, uvicorn with h11, gunicorn with threads."""


@dataclass(frozen=True)
class Sent:
    """An attempt, and how it is put on the wire."""

    attempt: Attempt
    framed: Framed


def sent() -> st.SearchStrategy[Sent]:
    """Attempts on the wire."""
    return st.builds(Sent, attempts(shared()), framed)


class OverSockets:
    """A server with the providers whose secret it shares with us.

    Args:
        served: the server.
    """

    def __init__(self, served: Served) -> None:
        self.name = served.kind
        self.answers: Counter[int] = Counter()
        self._served = served
        self._ledger = Ledger(served.engine.url)
        self._mark = served.mark()

    def send(self, sent: Sent) -> None:
        """Send one, and see that the answer is right.

        Raises:
            AssertionError: it is not.
        """
        attempt, how = sent.attempt, sent.framed
        made = shared()[attempt.source]
        request = attempt.request(made)
        pieces = how.wire(request, self._served.path(attempt.source))
        heard = exchange(self._served.port, pieces, is_right=how.is_right)
        self.answers.update(heard.statuses or [0])
        assert not heard.hangs, f"neither answered nor closed: {sent}"
        assert not {500, 502, 503} & {*heard.statuses}, f"{heard.statuses} to {sent}"
        errors = [error for error in ERROR.findall(self._mark()) if not error.startswith(OF_THE_SERVER)]
        assert not errors, f"{errors}: {self.trouble()} after {sent}"
        if not how.is_right:
            return
        (status,) = heard.statuses
        accepted = made.source.accepted.status
        found = expected(made.source, _as_received(request))
        if attempt.is_genuine and isinstance(found, Accepted):
            assert status == accepted, f"{status} to {sent}"
        if status == accepted and isinstance(found, Accepted) and request.method == "POST":
            assert not_committed(self._ledger, found) == [], f"acknowledged and not committed: {sent}"

    def memory(self) -> int:
        """What the processes of the server have in memory now, in bytes."""
        server = psutil.Process(self._served.child.pid)
        return sum(each.memory_info().rss for each in (server, *server.children(recursive=True)))

    def trouble(self) -> str:
        """What the server has logged of an error that nobody caught."""
        logged = self._mark()
        return logged[logged.find("Traceback") :][:4000] if "Traceback" in logged else ""


@contextmanager
def served_for_fuzzing(kind: str, url: str) -> Iterator[OverSockets]:
    """A server until the end of the block."""
    with serving(kind, url, more="tests.fuzz.senders:sources", cut_after=30.0) as served:
        yield OverSockets(served)


def _as_received(request: Request) -> Request:
    """The request with its headers as a server hands them on."""
    lines = [
        (name, value.encode("latin-1", "replace").decode("latin-1").strip(" \t")) for name, value in request.headers
    ]
    return Request(request.source, request.method, Headers(lines), request.body, query=request.query)
