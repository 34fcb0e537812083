"""A pgbouncer between a test and its database."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from hookledger.embedded.account import server_account
from tests.processes import Child, wait_until

CONFIGURATION = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def bouncer(database_url: str, mode: str, folder: Path) -> Iterator[str]:
    """A pgbouncer in front of the database; the URL that leads through it.

    Args:
        database_url: of the database, on a server that trusts us.
        mode: session or transaction.
        folder: for its configuration, which every account can enter.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    url = make_url(database_url)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    host, server_port = url.query.get("host") or url.host, url.query.get("port") or url.port
    server = f"host={host} user={url.username}" + (f" port={server_port}" if server_port else "")
    server += f" password={url.password}" if url.password else ""
    file = folder / f"pgbouncer-{port}.ini"
    file.write_text(CONFIGURATION.format(server=server, port=port, mode=mode))
    file.chmod(0o644)
    through = url.set(drivername="postgresql", host="127.0.0.1", port=port, query={}).render_as_string(False)

    def answers() -> bool:
        try:
            psycopg.connect(through).close()
        except psycopg.OperationalError:
            assert child.running, child.output
            return False
        return True

    with Child(program, str(file), **server_account().popen_arguments) as child:
        wait_until(answers)
        yield through
