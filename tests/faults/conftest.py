"""Fixtures: processes that are forked from one, and deployments of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.deployment import Deployment, Forking

ROOT = Path(__file__).parents[2]

Deploy = Callable[..., Deployment]


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
