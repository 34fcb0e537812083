"""`hookledger worker`: run the handlers of an inbox."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.load import load_inbox_with_handlers
from hookledger.cli.logs import set_up_logging
from hookledger.cli.options import (
    DatabaseUrl,
    Debug,
    InboxArgument,
    LogFormat,
    LogFormatOption,
    LogLevel,
    LogLevelOption,
    chosen,
)
from hookledger.cli.process import Stopping, freeze_what_is_loaded, leave, run_to_end
from hookledger.cli.prune import NEVER, retention

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

    from hookledger.inbox import Inbox

SPARE_CONNECTIONS = 2
"""Besides one connection a slot: for the upkeep and for giving work back."""

logger = logging.getLogger(__name__)


def worker(
    inbox: InboxArgument,
    slots: Annotated[
        int,
        typer.Option(
            "--slots", min=1, metavar="N", help="How many batches are worked on at the same time, at the most."
        ),
    ] = 4,
    batch: Annotated[
        int,
        typer.Option("--batch", min=1, metavar="N", help="How many deliveries a slot takes at once."),
    ] = 200,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            min=0,
            metavar="SECONDS",
            help="How long handlers may still run after SIGTERM or Ctrl-C; the rest is given back.",
        ),
    ] = 30.0,
    revive_ignored: Annotated[
        str,
        typer.Option(
            "--revive-ignored",
            metavar="SPAN",
            help="Run what was ignored within this span and has a handler now: 1d, 12h, or 0 for nothing.",
        ),
    ] = "1d",
    prune_payloads: Annotated[
        str,
        typer.Option(
            "--prune-payloads", metavar="SPAN", help="Prune payloads beside the work, as `hookledger prune`: 30d."
        ),
    ] = NEVER,
    prune_deliveries: Annotated[
        str, typer.Option("--prune-deliveries", metavar="SPAN", help="The same for deliveries.")
    ] = NEVER,
    prune_effects: Annotated[
        str, typer.Option("--prune-effects", metavar="SPAN", help="The same for effects.")
    ] = NEVER,
    prune_quarantine: Annotated[
        str, typer.Option("--prune-quarantine", metavar="SPAN", help="The same for refused requests.")
    ] = NEVER,
    database_url: DatabaseUrl = None,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = LogFormat.PLAIN,
    debug: Debug = False,
) -> None:
    """Run the handlers of an inbox, until stopped.

    It takes what the receiver has recorded. Start as many as you like, on as many machines: they need
    no coordination. SIGTERM or Ctrl-C ends it after the deliveries in work; a second one gives them up, and they
    are tried again later.

    Example: hookledger worker hooks:inbox --slots 4
    """
    set_up_logging(chosen.log_level or LogLevel.INFO, log_format)
    loaded = load_inbox_with_handlers(inbox)

    from hookledger.engine import database_url as read_url
    from hookledger.worker import Worker, WorkerSettings

    url = read_url(database_url)
    engine = engine_for(loaded, url, slots)
    kept = retention(prune_payloads, prune_deliveries, prune_effects, prune_quarantine, force=False)
    settings = WorkerSettings(
        slots=slots,
        batch=batch,
        grace=grace,
        retention=kept if any(kept.named.values()) else None,
        revive_ignored=seconds_of(revive_ignored),
    )
    running = Worker(loaded, engine, settings)
    Stopping(running).install()

    async def main() -> None:
        await check(loaded, engine)
        announce(loaded, url, slots)
        freeze_what_is_loaded()
        try:
            await running.run()
        finally:
            await dispose(engine)

    run_to_end(main)
    leave(stuck=running.stuck)


def seconds_of(span: str) -> float:
    """A span of time as somebody wrote it, in seconds; 0 for none.

    Raises:
        SetupError: if it is none.
    """
    from hookledger.operate.spans import read_span

    read = None if span.strip() == "0" else read_span(span)
    return 0.0 if read is None else read.total_seconds()


def engine_for(inbox: Inbox, url: URL, slots: int) -> Engine | AsyncEngine:
    """An asynchronous engine if any handler is asynchronous, with a connection for each slot."""
    from hookledger.engine import create

    size = slots + SPARE_CONNECTIONS
    if any(handler.is_async for handler in inbox.handlers.values()):
        return create(url, asynchronous=True, pool_size=size, application_name="hookledger worker")
    return create(url, pool_size=size, application_name="hookledger worker")


async def check(inbox: Inbox, engine: Engine | AsyncEngine) -> None:
    """See that the ledger can be worked with, before anything says that it is."""
    from sqlalchemy.ext.asyncio import AsyncEngine

    from hookledger.ledger.ready import open_ready, open_ready_asynchronously

    if isinstance(engine, AsyncEngine):
        await open_ready_asynchronously(engine, inbox.schema)
    else:
        open_ready(engine, inbox.schema)


def announce(inbox: Inbox, url: URL, slots: int) -> None:
    """Log what is at work on what."""
    from hookledger.engine import describe

    handlers = len(inbox.handlers)
    logger.info(
        "worker ready: %d %s, %d %s, %s, schema %s",
        slots,
        "slot" if slots == 1 else "slots",
        handlers,
        "handler" if handlers == 1 else "handlers",
        describe(url),
        inbox.schema,
    )


async def dispose(engine: Engine | AsyncEngine) -> None:
    """Close the connections."""
    from sqlalchemy.ext.asyncio import AsyncEngine

    if isinstance(engine, AsyncEngine):
        await engine.dispose()
    else:
        engine.dispose()
