"""A disk that is full for a while, under the handlers' table alone or under the ledger too (D1, D10)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from sqlalchemy import text

from hookledger.embedded import EmbeddedPostgres
from hookledger.embedded.account import server_account
from tests.faults.conftest import Deploy
from tests.outcomes import Ledger
from tests.processes import wait_until

SIZE = 24 * 1024 * 1024
"""Bytes of the small file system."""
TABLES = {
    "the handlers' table": ("entries",),
    "all tables": ("entries", "hookledger.deliveries", "hookledger.effects", "hookledger.pending"),
}


class Disk(Protocol):
    """Where tables are that can be filled."""

    def fill(self) -> None:
        """Let nothing fit any more."""

    def free(self) -> None:
        """Let there be room again."""


class RefusedByTriggers:
    """The server says that the disk is full, as long as a row says so. For machines on which no file system can be
    mounted."""

    def __init__(self, ledger: Ledger, tables: tuple[str, ...]) -> None:
        self._ledger = ledger
        ledger.execute("CREATE TABLE fullness (is_full boolean)")
        ledger.execute("INSERT INTO fullness VALUES (false)")
        ledger.execute(
            """
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT is_full FROM public.fullness) THEN
                    RAISE disk_full USING MESSAGE = 'No space left on device';
                END IF;
                RETURN NULL;
            END $$
            """
        )
        for table in tables:
            ledger.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
            )

    def fill(self) -> None:
        self._ledger.execute("UPDATE fullness SET is_full = true")

    def free(self) -> None:
        self._ledger.execute("UPDATE fullness SET is_full = false")


class SmallFileSystem:
    """A file system of a few megabytes, with a tablespace on it."""

    def __init__(self, ledger: Ledger, tables: tuple[str, ...], folder: Path) -> None:
        self._filler = folder / "filler"
        place = folder / "tablespace"
        place.mkdir()
        server_account().take(place)
        with ledger.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text(f"CREATE TABLESPACE small LOCATION '{place}'"))
            if len(tables) > 1:
                for kind in ("TABLE", "INDEX"):
                    connection.execute(text(f"ALTER {kind} ALL IN TABLESPACE pg_default SET TABLESPACE small"))
            else:
                connection.execute(text(f"ALTER TABLE {tables[0]} SET TABLESPACE small"))

    def fill(self) -> None:
        with self._filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while file.write(b"\0" * size):
                        pass
                except OSError:
                    pass

    def free(self) -> None:
        self._filler.unlink()


@pytest.fixture
def small_folder(open_folder: Path) -> Iterator[Path | None]:
    """A small file system of its own, that outlives the server; None if it cannot be mounted."""
    folder = open_folder / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        yield None
        return
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("tables", TABLES)
@pytest.mark.parametrize(("kind", "inbox"), [("triggers", "sync"), ("file system", "asynchronous")])
def test_a_full_disk(
    small_folder: Path | None,
    deploy: Deploy,
    own_server: EmbeddedPostgres,
    own_database_url: str,
    kind: str,
    tables: str,
    inbox: str,
) -> None:
    deployment = deploy(own_database_url, inbox=inbox)
    disk: Disk
    if kind == "triggers" or small_folder is None:
        disk = RefusedByTriggers(deployment.ledger, TABLES[tables])
    else:
        disk = SmallFileSystem(deployment.ledger, TABLES[tables], small_folder)
    deployment.start()

    def met() -> bool:
        return all("No space left" in process.output for process in deployment.processes[1:])

    with deployment.sending() as senders:
        senders.at(20, lambda: None)
        deployment.wait_for_progress(10)
        disk.fill()
        wait_until(met)
        if len(TABLES[tables]) > 1:
            refused = senders.refused
            wait_until(lambda: senders.refused > refused + 5)
        disk.free()
        senders.at(20, lambda: None)
        deployment.wait_for_progress(30)
    deployment.expect_balanced()
