"""A few seconds of fuzzing: no 500, no hang, and every 2xx is committed with its bytes (D1, D2)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookledger import Source
from hookledger.errors import NotVerified
from hookledger.http import Headers
from hookledger.receive.accept import Accepted
from tests.databases import Databases
from tests.fuzz.attempts import Attempt, attempts, header_values, odd_bodies
from tests.fuzz.in_process import InProcess
from tests.fuzz.oracle import expected
from tests.fuzz.over_sockets import KINDS, OverSockets, Sent, sent, served_for_fuzzing
from tests.fuzz.schemes import sources
from tests.fuzz.senders import every

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


@pytest.fixture(scope="module", params=["threads", "loop-async"])
def in_process(request: pytest.FixtureRequest, databases: Databases) -> Iterator[InProcess]:
    url = databases.create(databases.template)
    target = InProcess(request.param, url)
    yield target
    target.close()
    databases.drop(url)
    assert target.answers[200] > 20, "too few were let in to show anything"


@pytest.fixture(scope="module", params=KINDS)
def over_sockets(request: pytest.FixtureRequest, databases: Databases) -> Iterator[OverSockets]:
    url = databases.create(databases.template)
    with served_for_fuzzing(request.param, url) as target:
        yield target
    databases.drop(url)
    assert target.answers[200] > 10, "too few were let in to show anything"


@settings(QUICK, max_examples=30)
@given(together=st.lists(attempts(every()), min_size=1, max_size=5))
def test_whatever_is_sent_is_answered_rightly(in_process: InProcess, together: list[Attempt]) -> None:
    in_process.send(together)


@settings(QUICK, max_examples=100)
@given(sent=sent())
def test_whatever_is_put_on_the_wire_is_answered_rightly(over_sockets: OverSockets, sent: Sent) -> None:
    over_sockets.send(sent)


@settings(QUICK, max_examples=150)
@given(source=sources(), body=odd_bodies, place=st.integers(0, 9), value=header_values)
def test_any_scheme_takes_what_it_signed_and_refuses_the_rest(
    source: Source, body: bytes, place: int, value: str
) -> None:
    signed = source.signed(body, time.time())
    found = expected(source, signed)
    assert isinstance(found, Accepted)
    assert all(event.event_id and len(event.digest) == 32 for event in found.events)
    lines = list(signed.headers)
    name, right = lines[place % len(lines)]
    lines[place % len(lines)] = (name, value)
    changed = expected(source, replace(signed, headers=Headers(lines)))
    assert isinstance(changed, NotVerified) or value.strip() == right
