"""`hookledger dev`: database, receiver and worker in one terminal."""

from __future__ import annotations

import logging
import os
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.errors import say
from hookledger.cli.load import load_inbox_with_handlers, locate
from hookledger.cli.logs import set_up_logging
from hookledger.cli.options import Debug, InboxArgument, LogFormat, LogFormatOption, LogLevel, LogLevelOption, chosen
from hookledger.cli.process import Stopping, leave, run_to_end
from hookledger.cli.send import DEFAULT_URL
from hookledger.cli.serve import PREFIX, HttpServer, NotServing, listen, require_server
from hookledger.cli.worker import dispose, engine_for

if TYPE_CHECKING:
    from sqlalchemy import URL

    from hookledger.inbox import Inbox
    from hookledger.worker import Worker

DATA_FOLDER = Path(".hookledger/postgres")


def dev(
    inbox: InboxArgument,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="N", help="Where to listen; 0 takes any free port.")
    ] = 8000,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="The address to listen at; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    data_folder: Annotated[
        Path,
        typer.Option("--data-folder", metavar="FOLDER", help="Where the embedded PostgreSQL keeps its data."),
    ] = DATA_FOLDER,
    database_url: Annotated[
        str | None,
        typer.Option(
            "--database-url",
            metavar="URL",
            help="Use this PostgreSQL instead of an embedded one, and migrate it. DATABASE_URL is not read here.",
        ),
    ] = None,
    slots: Annotated[
        int,
        typer.Option(
            "--slots", min=1, metavar="N", help="How many batches are worked on at the same time, at the most."
        ),
    ] = 4,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each event.")] = False,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = LogFormat.PLAIN,
    debug: Debug = False,
) -> None:
    """Run database, receiver and worker in one terminal.

    Starts a PostgreSQL that needs no installation, makes its tables, listens at
    http://127.0.0.1:8000/webhooks/SOURCE, runs the worker, and prints every delivery as it goes through. Your
    module finds the database in DATABASE_URL. Ctrl-C stops all of it; the data stays in .hookledger/postgres.

    Example: hookledger dev hooks:inbox
    """
    set_up_logging(chosen.log_level or LogLevel.WARNING, log_format)
    if chosen.log_level is None:
        _leave_out_what_is_printed()
    locate(inbox)
    require_server()
    with listen(host, port) as listening, _database(database_url, data_folder) as url:
        # For modules that make an engine of their own, as an application does.
        os.environ["DATABASE_URL"] = url.set(drivername="postgresql").render_as_string(hide_password=False)
        loaded = load_inbox_with_handlers(inbox)
        _migrate(url, loaded.schema)
        stuck = _run(inbox, loaded, url, listening, slots=slots, as_json=json)
    leave(stuck=stuck)


def _leave_out_what_is_printed() -> None:
    from hookledger.cli.passing import TOLD_HERE

    for name in TOLD_HERE:
        logging.getLogger(name).setLevel(logging.ERROR)


@contextmanager
def _database(database_url: str | None, data_folder: Path) -> Iterator[URL]:
    from hookledger.engine import database_url as read_url

    if database_url is not None:
        yield read_url(database_url)
        return
    from hookledger.embedded import EmbeddedPostgres

    _keep_out_of_git(data_folder)
    with EmbeddedPostgres(data_folder) as server:
        yield read_url(server.url)


def _keep_out_of_git(data_folder: Path) -> None:
    if data_folder == DATA_FOLDER:
        data_folder.parent.mkdir(exist_ok=True)
        (data_folder.parent / ".gitignore").write_text("*\n")


def _migrate(url: URL, schema: str) -> None:
    from hookledger import migrate
    from hookledger.engine import create

    engine = create(url, pool_size=1)
    try:
        migrate.upgrade(engine, schema=schema)
    finally:
        engine.dispose()


class _Both:
    """The receiver and the worker, stopped together."""

    def __init__(self, server: HttpServer, worker: Worker) -> None:
        self._server = server
        self._worker = worker

    def stop(self, *, now: bool = False) -> None:
        self._server.stop()
        self._worker.stop(now=now)


def _run(target: str, inbox: Inbox, url: URL, listening: socket.socket, *, slots: int, as_json: bool) -> bool:
    import asyncio

    from hookledger.cli.passing import Passing
    from hookledger.engine import create
    from hookledger.receive import Intake
    from hookledger.worker import Worker, WorkerSettings
    from hookledger_starlette import Receiver

    passing = Passing(as_json=as_json)
    receiving = create(url, application_name="hookledger dev")
    working = engine_for(inbox, url, slots)
    receiver = Receiver(inbox, receiving)
    receiver.intake = Intake(inbox, receiving, observer=passing)
    worker = Worker(inbox, working, WorkerSettings(slots=slots), observe=passing.settled)
    server = HttpServer(receiver, listening, on_end=worker.stop)
    Stopping(_Both(server, worker)).install()

    async def main() -> None:
        server.start()
        try:
            while not server.started:
                if server.ended:
                    raise NotServing("the receiver did not start; --log-level info tells more")
                await asyncio.sleep(0.01)
            _welcome(target, inbox, url, listening)
            await worker.run()
        finally:
            server.stop()
            await asyncio.to_thread(server.join)
            await receiver.aclose()
            await dispose(working)
            receiving.dispose()

    run_to_end(main)
    return worker.stuck


def _welcome(target: str, inbox: Inbox, url: URL, listening: socket.socket) -> None:
    host, port = listening.getsockname()[:2]
    shown = "127.0.0.1" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host  # noqa: S104
    base = f"http://{shown}:{port}{PREFIX}"
    sources = list(inbox.sources)
    database = url.set(drivername="postgresql").render_as_string()
    say(f"database  {database}")
    if not url.password:
        say(f"elsewhere export DATABASE_URL={shlex.quote(database)}")
    for source in sources:
        say(f"receiver  {base}/{source}")
    say(f"handlers  {', '.join(inbox.handlers)}")
    elsewhere = [] if base == DEFAULT_URL else ["--url", base]
    say("send one  " + shlex.join(["hookledger", "send", target, sources[0], "event.json", *elsewhere]))
    say("ready; Ctrl-C stops everything")
