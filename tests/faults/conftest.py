"""Fixtures: processes that are forked from one, and deployments of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.deployment import Deployment, Forking

EVERY_STEP = os.environ.get("HOOKLEDGER_EVERY_STEP") == "1"
"""Whether walks go over all steps in all ways, which takes some minutes. Else each walk is made in one way, and
kills are walked around the beginning and the end of transactions, where they change what becomes of one."""

ROOT = Path(__file__).parents[2]

Deploy = Callable[..., Deployment]


def one_of(*ways: Any) -> list[Any]:
    """The first of the ways, or all of them if every step is to be walked."""
    return list(ways if EVERY_STEP else ways[:1])


@pytest.fixture(scope="session")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    """The program that forks the processes of all tests."""
    forking = Forking(tmp_path_factory.mktemp("processes"), ROOT)
    yield forking
    forking.close()


@pytest.fixture
def deploy(forking: Forking) -> Iterator[Deploy]:
    """Makes deployments, with nothing started yet; ended after the test."""
    made: list[Deployment] = []

    def make(owner_url: str, url: str | None = None, *, inbox: str = "sync") -> Deployment:
        made.append(Deployment(forking, owner_url, url, inbox=inbox))
        return made[-1]

    yield make
    for deployment in made:
        deployment.close()
