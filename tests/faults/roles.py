"""A role as applications have one: it may receive and work, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import make_url

from hookledger.ledger.rights import grants
from tests.outcomes import Ledger

PASSWORD = "only-in-tests"


class Role:
    """A role of the server, which owns nothing.

    Args:
        ledger: in the database that it is for, as the owner.
        owner_url: of that database.
    """

    def __init__(self, ledger: Ledger, owner_url: str) -> None:
        self._ledger = ledger
        url = make_url(owner_url)
        self.name = f"{url.database}_app"
        self.url = url.set(username=self.name, password=PASSWORD).render_as_string(hide_password=False)
        ledger.execute(f"CREATE ROLE \"{self.name}\" LOGIN PASSWORD '{PASSWORD}'")

    def allow(self) -> None:
        """Grant it the rights that `hookledger db grants` prints, and the handlers' table."""
        for statement in grants("hookledger", self.name).splitlines():
            self._ledger.execute(statement)
        self._ledger.execute(f'GRANT SELECT, INSERT ON entries TO "{self.name}"')
        self._ledger.execute(f'GRANT USAGE ON SEQUENCE entries_place_seq TO "{self.name}"')

    def alter(self, what: str) -> None:
        """ALTER ROLE."""
        self._ledger.execute(f'ALTER ROLE "{self.name}" {what}')

    def connections(self) -> int:
        """How many it has."""
        found = self._ledger.value("SELECT count(*) FROM pg_stat_activity WHERE usename = :name", name=self.name)
        return int(found)

    def end_sessions(self) -> None:
        """Have the server end all its connections."""
        self._ledger.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = :name", name=self.name
        )

    def drop(self) -> None:
        """Remove it, with its connections."""
        self.alter("CONNECTION LIMIT 0")
        self.end_sessions()
        self._ledger.execute(f'DROP OWNED BY "{self.name}"')
        self._ledger.execute(f'DROP ROLE "{self.name}"')


@contextmanager
def role_for(ledger: Ledger, owner_url: str) -> Iterator[Role]:
    """A role that is there until the end of the block."""
    role = Role(ledger, owner_url)
    try:
        yield role
    finally:
        role.drop()
