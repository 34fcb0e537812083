"""The commands of `hookledger`, and how the process ends.

What a command needs is imported when it runs, so that `hookledger --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Literal, cast

import typer

from hookledger.cli import (
    backfill,
    db,
    dead,
    deliveries,
    demo,
    dev,
    doctor,
    drain,
    erase,
    importing,
    pause,
    prune,
    quarantine,
    rebuild,
    replay,
    replays,
    send,
    show,
    sources,
    status,
    verify,
    worker,
)
from hookledger.cli.errors import FAILED, INTERRUPTED, report, report_usage
from hookledger.cli.options import Debug, LogLevelOption, chosen, help_if_alone

DESCRIPTION = """Receive webhooks without losing, doubling or misordering them.

A receiver in your web application records what comes in; a worker runs your handlers. PostgreSQL holds both together.

Try it: `hookledger demo`. Begin a project: write hooks.py with an inbox, then `hookledger dev hooks:inbox`.

Exit status: 0 done, 1 tried and failed, 2 called or set up wrongly, 3 nothing matched, 5 partly done, 6 unhealthy,
130 interrupted.
"""


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"hookledger {version('hookledger')}")
        raise typer.Exit


def _root(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    _debug: Debug = False,
    _log_level: LogLevelOption = None,
) -> None:
    help_if_alone(context)


def build(*, rich: bool) -> typer.Typer:
    """The whole command line.

    Args:
        rich: help in panels and colours, for a terminal; else plain text.
    """
    markup: Literal["rich"] | None = "rich" if rich else None
    app = typer.Typer(
        help=DESCRIPTION,
        invoke_without_command=True,
        add_completion=False,
        rich_markup_mode=markup,
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    app.command("demo")(demo.demo)
    app.command("dev")(dev.dev)
    app.command("worker")(worker.worker)
    app.command("status")(status.status)
    app.command("doctor")(doctor.doctor)
    app.command("deliveries")(deliveries.deliveries)
    app.command("show")(show.show)
    app.command("dead")(dead.dead)
    app.command("pause")(pause.pause)
    app.command("resume")(pause.resume)
    app.command("drain")(drain.drain)
    app.command("send")(send.send)
    app.command("sources")(sources.sources)
    app.command("verify")(verify.verify)
    app.add_typer(quarantine.build(markup), name="quarantine")
    app.command("import")(importing.import_file)
    app.command("prune")(prune.prune)
    app.command("erase")(erase.erase)
    app.command("replay")(replay.replay)
    app.command("backfill")(backfill.backfill)
    app.command("rebuild")(rebuild.rebuild)
    app.add_typer(replays.build(markup), name="replays")
    app.add_typer(db.build(markup), name="db")
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command and give the exit status of the process."""
    # A sender's text must never stop the output of a command, whatever the terminal can show.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    chosen.forget()
    command = typer.main.get_command(build(rich=sys.stdout.isatty()))
    try:
        ended = command.main(list(arguments), prog_name="hookledger", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone; what Python still holds of it must not be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        # Usage errors come from click, or from the copy of it inside newer releases of Typer.
        if isinstance(error, typer.BadParameter.__mro__[2]):
            return report_usage(cast("typer.BadParameter", error))
        return report(error)
    return ended if isinstance(ended, int) else 0
