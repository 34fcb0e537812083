"""The defaults that the help shows are those of the library."""

from __future__ import annotations

import inspect

import pytest

from hookledger.cli.dev import dev
from hookledger.cli.status import status
from hookledger.cli.worker import worker
from hookledger.inbox import DEFAULT_SCHEMA
from hookledger.worker import WorkerSettings


@pytest.mark.parametrize("name", ["slots", "batch", "grace"])
def test_worker_settings(name: str) -> None:
    assert inspect.signature(worker).parameters[name].default == getattr(WorkerSettings(), name)


def test_dev_and_status() -> None:
    assert inspect.signature(dev).parameters["slots"].default == WorkerSettings().slots
    assert inspect.signature(status).parameters["schema"].default == DEFAULT_SCHEMA
