"""pgbouncer in transaction mode in front of a server. https://www.pgbouncer.org/config.html"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

from hookledger.embedded.account import server_account
from tests.processes import Child, wait_until

POOL_SIZE = 2


def program() -> str | None:
    """Where it is installed, as by Debian's package; None if it is not."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def pooler(url: str, folder: Path) -> Iterator[str]:
    """A pooler until the end of the block; the URL through it.

    Args:
        url: of a database.
        folder: for its settings, which every account can enter.
    """
    parsed = make_url(url)
    server = {
        "host": parsed.host or parsed.query["host"],
        "port": parsed.port or parsed.query.get("port", 5432),
        "dbname": parsed.database,
        "user": parsed.username,
        **({"password": parsed.password} if parsed.password else {}),
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    lines = [
        "[databases]",
        f"{parsed.database} = {' '.join(f'{name}={value}' for name, value in server.items())}",
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        f"listen_port = {port}",
        "unix_socket_dir =",
        "auth_type = any",
        "pool_mode = transaction",
        f"default_pool_size = {POOL_SIZE}",
    ]
    settings = folder / "pgbouncer.ini"
    settings.write_text("\n".join(lines) + "\n")
    found = program()
    assert found is not None
    options = {name: value for name, value in server_account().popen_arguments.items() if name != "cwd"}
    with Child(found, settings, cwd=Path("/"), **options) as child:

        def listens() -> bool:
            assert child.running, child.output
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens)
        through = parsed.difference_update_query(["host", "port"]).set(host="127.0.0.1", port=port)
        yield through.render_as_string(hide_password=False)
