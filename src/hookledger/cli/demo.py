"""`hookledger demo`: the main job, with crashes, in one command."""

from __future__ import annotations

from typing import Annotated

import typer

from hookledger.cli.errors import FAILED, one_line, say
from hookledger.cli.options import Debug, Json
from hookledger.cli.output import print_json
from hookledger.demo.framework import Framework

FAULTS_TOLD = 10


def demo(
    deliveries: Annotated[
        int,
        typer.Option("--deliveries", min=1, metavar="N", help="How many different events to send; copies come on top."),
    ] = 10_000,
    workers: Annotated[int, typer.Option("--workers", min=1, metavar="N", help="How many worker processes.")] = 2,
    framework: Annotated[
        Framework,
        typer.Option(
            "--framework", help="What receives: Starlette in uvicorn, or Flask in gunicorn.", show_choices=True
        ),
    ] = Framework.STARLETTE,
    kill: Annotated[
        bool,
        typer.Option("--kill/--no-kill", help="Kill a worker and the receiver with SIGKILL on the way."),
    ] = True,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """See the main job done, with crashes.

    Starts a PostgreSQL of its own, the receiver in a real HTTP server and worker processes, and sends signed
    events of Stripe and GitHub, out of order, a fifth of them twice. Midway it kills a worker and the receiver.
    In the end it checks the database against what must come out: nothing lost, doubled or misordered. Ctrl-C
    stops it; nothing is left behind.

    Exit status: 0 all is right, 1 something was lost, doubled or misordered, or the demo broke off, 2 something that
    it needs is missing, 130 interrupted.
    """
    from hookledger.demo.framework import require_installed

    require_installed(framework)

    from hookledger.demo.progress import progress_for_terminal
    from hookledger.demo.report import as_document, as_table
    from hookledger.demo.run import Demo, Options

    with progress_for_terminal() as progress:
        running = Demo(Options(deliveries, workers, framework, kill), progress)
        result = running.run()
    if json:
        print_json(as_document(result))
    else:
        print(as_table(result), flush=True)
    for fault in running.verdict.faults[:FAULTS_TOLD]:
        say(one_line(fault))
    if not result.right:
        say(f"error: {result.lost} lost, {result.doubled} doubled, {result.misordered} misordered")
        raise typer.Exit(FAILED)
    say("nothing lost, nothing doubled, nothing misordered")
