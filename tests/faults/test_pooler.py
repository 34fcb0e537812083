"""A pooler in transaction mode in front of the server (D9, D13)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from hookledger.engine import create
from hookledger.errors import SetupError
from hookledger.ledger.ready import open_ready, open_ready_asynchronously
from tests.faults.conftest import Deploy
from tests.faults.pooler import pooler, program

EVENTS = 60


@pytest.fixture
def pooled_url(database_url: str, open_folder: Path) -> Iterator[str]:
    """The database of the test, through a pooler."""
    if program() is None:
        pytest.skip("pgbouncer is not installed here: `apt-get install pgbouncer`")
    with pooler(database_url, open_folder) as url:
        yield url


def with_the_setting(url: str) -> str:
    """As documented for such a pooler."""
    return make_url(url).update_query_dict({"prepare_threshold": "none"}).render_as_string(hide_password=False)


@pytest.mark.parametrize("inbox", ["sync", "asynchronous"])
def test_b041_it_works_with_the_documented_setting(
    deploy: Deploy, database_url: str, pooled_url: str, inbox: str
) -> None:
    deployment = deploy(database_url, with_the_setting(pooled_url), inbox=inbox)
    deployment.start(direct=False)
    with deployment.sending() as senders:
        senders.at(EVENTS, lambda: None)
    assert deployment.expect_balanced().unique >= EVENTS


def test_b041_without_it_the_check_at_the_start_names_the_cause(pooled_url: str) -> None:
    engine = create(pooled_url)
    with pytest.raises(SetupError, match="prepare_threshold=none"):
        open_ready(engine, "hookledger")
    engine.dispose()

    async def check() -> None:
        asynchronous = create(pooled_url, asynchronous=True)
        with pytest.raises(SetupError, match="prepare_threshold=none"):
            await open_ready_asynchronously(asynchronous, "hookledger")
        await asynchronous.dispose()

    asyncio.run(check())
    # It has left nothing behind that would be in the way of others.
    engine = create(with_the_setting(pooled_url))
    open_ready(engine, "hookledger")
    engine.dispose()
