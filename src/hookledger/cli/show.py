"""`hookledger show`: the whole story of one delivery."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.documents import story_document
from hookledger.cli.errors import WrongUse, one_line, say
from hookledger.cli.options import DatabaseUrl, Debug, Json, Schema
from hookledger.cli.output import print_json

if TYPE_CHECKING:
    from hookledger.operate.story import Story

LARGEST_ID = 2**63 - 1
SHOWN_ATTEMPTS = 20
LONGEST_ERROR = 2000


def show(
    which: Annotated[list[str], typer.Argument(metavar="ID | SOURCE EVENT_ID", help="Which delivery.")],
    raw: Annotated[bool, typer.Option("--raw", help="Print the exact bytes of the body, and nothing else.")] = False,
    json: Json = False,
    database_url: DatabaseUrl = None,
    schema: Schema = "hookledger",
    debug: Debug = False,
) -> None:
    """Tell the whole story of one delivery.

    Its request, what was sent again, each failed attempt, its outcomes, and why.
    Secret headers, and secret members of the body, are masked. Times are in UTC.
    """
    from hookledger.cli.database import bounded_engine_of
    from hookledger.operate.story import find_id, read_story

    source, name = _read(which)
    with bounded_engine_of(database_url, schema) as engine, engine.connect() as connection:
        one_moment = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        id = int(name) if source is None else find_id(one_moment, schema, source, name)
        story = None if id is None else read_story(one_moment, schema, id)
    if story is None:
        what = f"no delivery {name}" if source is None else f"no delivery of the source {source!r} with the id {name!r}"
        say(f"error: there is {one_line(what)}; `hookledger deliveries` lists what there is")
        raise typer.Exit(1)
    if raw:
        _print_raw(story)
    elif json:
        print_json(story_document(story))
    else:
        _print(story)


def _read(which: list[str]) -> tuple[str | None, str]:
    if len(which) == 2:
        return which[0], which[1]
    if len(which) != 1 or not which[0].isdecimal() or len(which[0]) > 19 or int(which[0]) > LARGEST_ID:
        raise WrongUse("give the id of a delivery, or a source and the sender's id of the event: show stripe evt_123")
    return None, which[0]


def _print_raw(story: Story) -> None:
    from hookledger.operate.pretty import printable_lines
    from hookledger.operate.words import body_in_words

    missing = body_in_words(story)
    if missing is not None or story.body is None:
        say(f"error: {one_line(missing or '')}")
        raise typer.Exit(1)
    if sys.stdout.isatty():
        # What a sender wrote must not drive the terminal.
        print(printable_lines(story.body.decode("utf-8", "replace")))
        say("control characters are replaced on a terminal; a pipe or a file gets the exact bytes")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(story.body)
    sys.stdout.buffer.flush()


def _print(story: Story) -> None:
    from hookledger.operate.moments import shown_moment
    from hookledger.operate.pretty import shown_body
    from hookledger.operate.words import (
        body_in_words,
        outcome_in_words,
        state_in_words,
        verification_in_words,
        version_in_words,
    )

    found = story.found
    _heading(f"delivery {found.id}")
    _fact("source", found.source)
    _fact("event", f"{found.event_id}  ({found.event_type})")
    if found.resource is not None:
        _fact("resource", found.resource)
    if story.version is not None:
        _fact("version", version_in_words(story.version))
    if story.position:
        _fact("position", f"item {story.position + 1} of its request")
    _fact("received", shown_moment(found.received_at))
    _fact("verified", verification_in_words(story))
    _fact("state", state_in_words(story))
    if found.error is not None:
        _error("error", "", found.error)
    for told in story.outcomes:
        _fact("outcome" if told.handler == "-" else f"by {told.handler}", outcome_in_words(told))
    for pause in story.pauses:
        reason = f": {pause.reason}" if pause.reason else ""
        _fact("paused", f"{pause.kind.value} {pause.name} since {shown_moment(pause.since)} by {pause.who}{reason}")
    for replay in story.replays:
        reason = f": {replay.reason}" if replay.reason else ""
        _fact("replay", f"{replay.id} ({replay.kind}) at {shown_moment(replay.started_at)} by {replay.who}{reason}")
    for copy in story.copies:
        differs = ", with other bytes, which were kept and not run" if copy.differs else ""
        _fact("sent again", f"{shown_moment(copy.received_at)}{differs}")
    _more(story.copies_in_all, len(story.copies))
    for attempt in story.attempts[:SHOWN_ATTEMPTS]:
        failed = f"{shown_moment(attempt.at)}  {attempt.handler} failed [{attempt.fingerprint}]: "
        _error(f"attempt {attempt.attempt}", failed, attempt.error)
    _more(story.attempts_in_all, min(len(story.attempts), SHOWN_ATTEMPTS))
    missing = body_in_words(story)
    if missing is None:
        _heading("headers")
        for header, value in story.headers:
            print(f"{one_line(header)}: {one_line(value)}")
        _heading(f"body, {len(story.body or b''):,} bytes")
        print(shown_body(story.body or b"", story.content_type))
    else:
        _heading(missing)


def _heading(text: str) -> None:
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        Console().print(Text(one_line(text), style="bold"))
    else:
        print(one_line(text))


def _fact(name: str, value: str) -> None:
    print(f"  {one_line(name):<11} {one_line(value)}")


def _error(name: str, before: str, error: str) -> None:
    """An error in up to three lines: what, where, and what else the database said."""
    from hookledger.worker.raised import parts

    first, place, rest = parts(error[:LONGEST_ERROR])
    _fact(name, before + first)
    for more in (place, rest):
        if more:
            _fact("", more)


def _more(in_all: int, shown: int) -> None:
    if in_all > shown:
        _fact("", f"... and {in_all - shown:,} earlier ones, which --json shows up to a bound")
