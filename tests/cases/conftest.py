"""The receivers of the cases: one of each adapter, emptied before each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.adapters.conftest import serve as serve
from tests.adapters.served import serving
from tests.cases.receiver import CaseReceiver
from tests.databases import Databases

BOTH = ("starlette", "flask-gunicorn")


@pytest.fixture(scope="session")
def receivers(databases: Databases) -> Iterator[Callable[[str], CaseReceiver]]:
    """A receiver of a kind, started when it is first asked for."""
    started: dict[str, CaseReceiver] = {}
    with ExitStack() as stack:

        def receiver(kind: str) -> CaseReceiver:
            if kind not in started:
                url = databases.create(databases.template)
                stack.callback(databases.drop, url)
                started[kind] = CaseReceiver(
                    stack.enter_context(serving(kind, url, more="tests.cases.sources:sources"))
                )
            return started[kind]

        yield receiver


@pytest.fixture(params=BOTH)
def receiver(request: pytest.FixtureRequest, receivers: Callable[[str], CaseReceiver]) -> CaseReceiver:
    """A receiver with an empty ledger; the test runs over both adapters."""
    found = receivers(request.param)
    found.empty()
    return found
