"""What can be shown without a server: where the name is in the path, and what is told at start."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from hookledger import Inbox, SetupError
from hookledger_flask import receiver, run_worker
from hookledger_starlette import Receiver, worker_lifespan
from hookledger_starlette.receiver import source_name
from tests.adapters.hub import hub

URL = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"


@pytest.mark.parametrize(
    ("root_path", "path", "name"),
    [
        ("", "/hub", "hub"),
        ("", "/hub/", "hub"),
        ("", "/", ""),
        ("", "", ""),
        ("/webhooks", "/webhooks/hub", "hub"),
        ("/webhooks", "/webhooks/hub/", "hub"),
        ("/webhooks", "/webhooks/", ""),
        ("/webhooks", "/webhooks", ""),
        ("/webhooks/", "/webhooks/hub", "hub"),
        ("/proxy/webhooks", "/proxy/webhooks/hub", "hub"),
        # A proxy took the prefix off, or the framework gives the rest of the path only.
        ("/proxy", "/hub", "hub"),
        ("/hub", "/hub/hub", "hub"),
        ("/hub", "/hub/", ""),
        ("/web", "/webhooks", "webhooks"),
        ("", "/anything/before/hub", "hub"),
    ],
)
def test_the_name_is_the_last_part_below_the_mount_point(root_path: str, path: str, name: str) -> None:
    assert source_name({"root_path": root_path, "path": path}) == name


def test_a_websocket_is_turned_away() -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(Receiver(Inbox(hub()), create_engine(URL))({"type": "websocket", "path": "/hub"}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_flask_needs_a_synchronous_engine() -> None:
    with pytest.raises(SetupError, match="create_engine"):
        receiver(Inbox(hub()), create_async_engine(URL))  # type: ignore[arg-type]


def test_an_inbox_without_sources_is_told() -> None:
    for make in (Receiver, receiver):
        with pytest.raises(SetupError, match="no sources"):
            make(Inbox(), create_engine(URL))


def test_a_worker_without_handlers_is_told() -> None:
    for make in (worker_lifespan, run_worker):
        with pytest.raises(SetupError, match="no handlers"):
            make(Inbox(hub()), create_engine(URL))
