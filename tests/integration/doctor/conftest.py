"""Fixtures for the doctor: a role as receivers and workers have one, and what is found with it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import URL, Engine, make_url, text

from hookledger import Delivery, Inbox, migrate
from hookledger import engine as engines
from hookledger.doctor import Finding, examine
from tests.outcomes import SHOP, inbox_of_shop

MakeEngine = Callable[..., Engine]
Examine = Callable[..., Sequence[Finding]]


class Role:
    """A role that may receive and work, and nothing else.

    Args:
        owner: of the ledger, a superuser.
    """

    def __init__(self, owner: Engine) -> None:
        self._owner = owner
        self.name = f"hookledger_test_{secrets.token_hex(4)}"
        self.password = secrets.token_hex(8)
        self.url: URL = make_url(owner.url).set(username=self.name, password=self.password)
        self.run(f"CREATE ROLE {self.name} LOGIN PASSWORD '{self.password}'", migrate.grants("hookledger", self.name))

    def run(self, *statements: str) -> None:
        """Run statements as the owner."""
        with self._owner.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def drop(self) -> None:
        """Remove it."""
        self.run(f"DROP OWNED BY {self.name} CASCADE", f"DROP ROLE {self.name}")


@pytest.fixture
def role(engine: Engine) -> Iterator[Role]:
    """A role with all rights that are needed, on a fresh database."""
    role = Role(engine)
    yield role
    role.drop()


@pytest.fixture
def make_engine() -> Iterator[MakeEngine]:
    """Makes engines whose sessions begin with the given settings."""
    made: list[Engine] = []

    def make(url: str | URL, **settings: str) -> Engine:
        given = make_url(url)
        if settings:
            options = " ".join(f"-c {name}={value}" for name, value in settings.items())
            given = given.update_query_dict({"options": options})
        made.append(engines.create(given, pool_size=1))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


@pytest.fixture
def inbox() -> Inbox:
    """An inbox in order."""
    inbox = inbox_of_shop()

    @inbox.accumulate(SHOP)
    def add(delivery: Delivery, tx: Any) -> None:
        pass

    return inbox


@pytest.fixture
def found(role: Role, make_engine: MakeEngine, inbox: Inbox) -> Examine:
    """What is found with that role: what one check found, or all."""

    def examined(check: str | None = None, settings: dict[str, str] | None = None, **given: Any) -> Sequence[Finding]:
        if check is not None:
            given["only"] = [check]
        engine = make_engine(role.url, **(settings or {}))
        try:
            return examine(given.pop("inbox", inbox), engine, **given)
        finally:
            engine.dispose()

    return examined
