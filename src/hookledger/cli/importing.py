"""`hookledger import`: let in requests that were captured elsewhere."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from hookledger.cli.captured import STANDARD_INPUT
from hookledger.cli.confirm import confirm
from hookledger.cli.errors import FAILED, INTERRUPTED, PARTLY, WrongUse, one_line, say
from hookledger.cli.going import Going
from hookledger.cli.options import DatabaseUrl, Debug, InboxArgument, Json
from hookledger.cli.output import counted, print_json

FORMS = ("ndjson", "har")
MOST_COMPLAINTS = 100
"""Lines that are told one by one; the others are counted."""


def import_file(
    inbox: InboxArgument,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="One JSON object a line with method, url, headers, body (base64) and received_at; or a HAR file. "
            "- reads standard input.",
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Whose they are; else the last part of each URL tells."),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORM", help="ndjson or har; else the name of the file tells.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Verify and look up, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    debug: Debug = False,
) -> None:
    """Let in captured requests with their original times.

    They are marked as imported, and verified with the present and the previous secrets of the inbox, however old they
    are. What the ledger has already stays as it is, so that a file can be imported again, or to its end after an
    interruption.

    Exit status: 0 done, 1 failed or nothing could be imported, 2 wrong use, 5 some lines were left out.

    Example: hookledger import hooks:inbox captured.ndjson --dry-run
    """
    from dataclasses import asdict

    from hookledger.cli.database import engine_of
    from hookledger.cli.load import load_inbox
    from hookledger.ledger.ready import open_ready
    from hookledger.operate.importing import Imported, import_requests
    from hookledger.operate.importing.captured import read_har, read_lines

    if form is not None and form not in FORMS:
        raise WrongUse(f"--format must be one of {', '.join(FORMS)}")
    is_har = form == "har" or (form is None and file.lower().endswith(".har"))
    loaded = load_inbox(inbox)
    if source is not None and source not in loaded.sources:
        raise WrongUse(f"--source {source!r} is none of the inbox, which has {', '.join(sorted(loaded.sources))}")
    complaints = 0

    def complain(number: int, reason: str) -> None:
        nonlocal complaints
        complaints += 1
        if complaints <= MOST_COMPLAINTS:
            going.say(one_line(f"{'entry' if is_har else 'line'} {number}: {reason}"))

    def progress(imported: Imported) -> None:
        going.tell(f"{imported.read:,} read, {imported.recorded:,} recorded, {imported.known:,} known")

    with ExitStack() as stack:
        opened = sys.stdin.buffer if file == STANDARD_INPUT else None
        if opened is None:
            try:
                opened = stack.enter_context(open(file, "rb"))
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise WrongUse(f"the file {file} cannot be read: {reason}") from error
        if not dry_run:
            confirm(f"Import the requests of {file} into the schema {loaded.schema}", yes=yes)
        engine = stack.enter_context(engine_of(database_url))
        open_ready(engine, loaded.schema)
        going = stack.enter_context(Going())
        requests = read_har(opened, source) if is_har else read_lines(opened, source)
        origin = "standard input" if file == STANDARD_INPUT else file
        imported = import_requests(
            engine,
            loaded,
            requests,
            origin=origin,
            dry_run=dry_run,
            complain=complain,
            progress=progress,
            stopping=going.stopping,
        )
    if complaints > MOST_COMPLAINTS:
        say(f"{complaints - MOST_COMPLAINTS:,} more were left out")
    if json:
        print_json({**asdict(imported), "dry_run": dry_run})
    else:
        verb = "would be recorded" if dry_run else "recorded"
        differing = f" ({imported.differing:,} with other bytes)" if imported.differing else ""
        print(
            f"{imported.read:,} read: {counted(imported.recorded, 'delivery', 'deliveries')} {verb}, "
            f"{imported.known:,} known{differing}, "
            f"{imported.empty:,} without an event, {imported.bad:,} left out"
        )
    if going.interrupted:
        say("stopped; run the same command again to go on: what is recorded is known then")
        raise typer.Exit(INTERRUPTED)
    if imported.bad:
        raise typer.Exit(PARTLY if imported.bad < imported.read else FAILED)
