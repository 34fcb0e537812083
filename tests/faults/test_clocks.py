"""Machines whose clocks are wrong, and a server in another time zone: the database says what is due (D9)."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from tests.faults.books import Event
from tests.faults.conftest import Deploy
from tests.faults.hooks import FAILS_ONCE

HOUR = 3600.0


@pytest.mark.parametrize(("inbox", "receiver_ahead"), [("sync", HOUR), ("asynchronous", -HOUR)])
def test_clocks_that_are_an_hour_off(deploy: Deploy, database_url: str, inbox: str, receiver_ahead: float) -> None:
    deployment = deploy(database_url, inbox=inbox)
    database = make_url(database_url).database
    deployment.ledger.execute(f"ALTER DATABASE \"{database}\" SET TimeZone = 'Pacific/Chatham'")
    deployment.start_receiver(clock=receiver_ahead)
    deployment.start_worker(clock=-HOUR)
    deployment.start_worker(clock=HOUR)
    with deployment.sending() as senders:
        senders.at(60, lambda: None)
    # Both are tried again within a second, whoever of the workers did it the first time.
    deployment.send(*[Event(f"late-{number}", f"late-{number}", 1, FAILS_ONCE) for number in range(10)])
    deployment.expect_balanced(charged=True)
    off = deployment.ledger.value(
        "SELECT max(abs(extract(epoch FROM now() - received_at))) + max(abs(extract(epoch FROM now() - applied_at)))"
        " FROM hookledger.deliveries JOIN hookledger.effects USING (source, event_id)"
    )
    assert off < HOUR / 2
