"""A pytest plugin that runs each test in one of its ways only: the first of those in which receivers are called, in
which workers run handlers, or in which handlers are written."""

from __future__ import annotations

from typing import Any

import pytest

from tests import receiving, ways
from tests.concurrency import workers

FIRST = {"way": (receiving.WAYS[0], ways.WAYS[0]), "inbox": (workers.INBOXES[0],)}


def is_first(parameters: dict[str, Any]) -> bool:
    """Whether the parameters of a test are those of the first way, or name no way."""
    return all(parameters[name] in first for name, first in FIRST.items() if name in parameters)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if is_first(getattr(getattr(item, "callspec", None), "params", {}))]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
