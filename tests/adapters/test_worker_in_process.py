"""The worker inside the web process: starts with it, works, and ends with it."""

from __future__ import annotations

import signal

import pytest
from sqlalchemy import text

from tests.adapters.conftest import Serve
from tests.adapters.kinds import ASGI
from tests.adapters.served import Served, event_id
from tests.processes import wait_until

STOPPED = "the worker in this process has stopped"
SERVED_WITH_A_WORKER = ["starlette", "starlette-async", "fastapi", "flask-gunicorn", "flask-waitress"]


def _outcomes(served: Served, event: str) -> list[tuple[str, str]]:
    query = text("SELECT handler, outcome FROM hookledger.effects WHERE event_id = :event")
    with served.engine.connect() as connection:
        return [(row.handler, row.outcome) for row in connection.execute(query, {"event": event})]


@pytest.mark.parametrize("kind", SERVED_WITH_A_WORKER)
def test_the_worker_lives_with_the_server(serve: Serve, kind: str) -> None:
    served = serve(kind, worker=True)
    event = event_id()
    assert served.post(b"{}", event).status == 200
    assert wait_until(lambda: _outcomes(served, event)) == [("work", "applied")]
    # waitress has no end of its own but that of Ctrl-C.
    served.child.signal(signal.SIGINT if kind == "flask-waitress" else signal.SIGTERM)
    served.child.wait_for_output(STOPPED)
    served.child.wait()
    assert "Traceback" not in served.child.output


@pytest.mark.parametrize("kind", SERVED_WITH_A_WORKER)
def test_a_database_that_is_not_ready_is_told_at_start(serve: Serve, kind: str, empty_database_url: str) -> None:
    served = serve(kind, worker=True, database_url=empty_database_url)
    assert served.child.wait() != 0
    assert "there is no schema 'hookledger'" in served.child.output
    assert "hookledger db upgrade" in served.child.output


@pytest.mark.parametrize("kind", ASGI)
def test_the_server_ends_without_a_worker_too(serve: Serve, kind: str) -> None:
    served = serve(kind)
    event = event_id()
    assert served.post(b"{}", event).status == 200
    served.child.signal(signal.SIGTERM)
    served.child.wait()
    assert "Traceback" not in served.child.output
    assert len(served.stored(event)) == 1
