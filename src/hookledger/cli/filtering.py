"""The options that say which deliveries are meant, the same for every command that takes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hookledger.cli.errors import WrongUse

if TYPE_CHECKING:
    from datetime import datetime

    from hookledger.operate.filters import Filter

PANEL = "Which deliveries"
LONGEST_ID = 19
"""Digits; Python itself refuses to read some thousands of them."""
FINGERPRINT = re.compile("[0-9a-f]{16}")

IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Deliveries, by the ledger's number.", show_default=False)
]
IdsFrom = Annotated[
    str | None,
    typer.Option(
        "--ids-from", metavar="FILE", help="Read ids, one a line; - for standard input.", rich_help_panel=PANEL
    ),
]
SourceOption = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="Of this source.", rich_help_panel=PANEL)
]
TypeOption = Annotated[
    str | None,
    typer.Option("--type", metavar="PATTERN", help="Of this event type; * for anything.", rich_help_panel=PANEL),
]
ResourceOption = Annotated[
    str | None, typer.Option("--resource", metavar="KEY", help="About this resource.", rich_help_panel=PANEL)
]
EventIdOption = Annotated[
    str | None, typer.Option("--event-id", metavar="ID", help="With this id of the sender's.", rich_help_panel=PANEL)
]
OutcomeOption = Annotated[
    str | None,
    typer.Option(
        "--outcome",
        metavar="NAME",
        help="With this outcome: applied, stale, superseded, ignored.",
        rich_help_panel=PANEL,
    ),
]
StateOption = Annotated[
    str | None, typer.Option("--state", metavar="NAME", help="In this state: dead or settled.", rich_help_panel=PANEL)
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Received then or later: 3h, 2d, 2031-05-04T13:58 (UTC).", rich_help_panel=PANEL
    ),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Received before that time.", rich_help_panel=PANEL)
]
SettledSinceOption = Annotated[
    str | None, typer.Option("--settled-since", metavar="TIME", help="Settled then or later.", rich_help_panel=PANEL)
]
SettledUntilOption = Annotated[
    str | None, typer.Option("--settled-until", metavar="TIME", help="Settled before that time.", rich_help_panel=PANEL)
]
FingerprintOption = Annotated[
    str | None,
    typer.Option(
        "--fingerprint", metavar="HEX", help="Failed with this error, as `dead` shows it.", rich_help_panel=PANEL
    ),
]
TextOption = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="With this text in the body.", rich_help_panel=PANEL)
]


def read_ids(given: Sequence[str] | None, source: str | None) -> tuple[int, ...] | None:
    """Ids from arguments and from a file; None if neither was given.

    Raises:
        WrongUse: if one is no number, or the file cannot be read.
    """
    if not given and source is None:
        return None
    words = list(given or ())
    if source == "-":
        words += sys.stdin.read().split()
    elif source is not None:
        try:
            with open(source, encoding="utf-8") as file:
                words += file.read().split()
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUse(f"{source} cannot be read: {error}") from error
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) <= LONGEST_ID and int(word) < 2**63):
            raise WrongUse(
                f"{word[:40]!r} is no id of a delivery, which is a number; for the sender's id use --event-id"
            )
    return tuple(dict.fromkeys(int(word) for word in words))


def read_filter(
    *,
    ids: tuple[int, ...] | None = None,
    source: str | None = None,
    type: str | None = None,
    resource: str | None = None,
    event_id: str | None = None,
    outcome: str | None = None,
    state: str | None = None,
    since: str | None = None,
    until: str | None = None,
    settled_since: str | None = None,
    settled_until: str | None = None,
    fingerprint: str | None = None,
    text: str | None = None,
) -> Filter:
    """The filter that the options say.

    Raises:
        WrongUse: for a state or outcome that there is not, and for what is no fingerprint.
        SetupError: for what is no time.
    """
    from datetime import UTC, datetime

    from hookledger.operate.filters import Filter, State
    from hookledger.operate.moments import read_moment
    from hookledger.worker.outcome import Outcome

    now = datetime.now(UTC)

    def moment(written: str | None) -> datetime | None:
        return None if written is None else read_moment(written, now)

    return Filter(
        ids=ids,
        source=source,
        event_type=type,
        resource=resource,
        event_id=event_id,
        outcome=None if outcome is None else Outcome(_one_of(outcome, [one.value for one in Outcome], "outcome")),
        state=None if state is None else State(_one_of(state, [one.value for one in State], "state")),
        received_since=moment(since),
        received_until=moment(until),
        settled_since=moment(settled_since),
        settled_until=moment(settled_until),
        fingerprint=None if fingerprint is None else _fingerprint(fingerprint),
        text=text,
    )


def _fingerprint(given: str) -> str:
    mark = given.strip().lower()
    if FINGERPRINT.fullmatch(mark) is None:
        raise WrongUse(
            f"{given!r} is no fingerprint, which has sixteen hexadecimal digits: `hookledger dead` shows them"
        )
    return mark


def _one_of(given: str, known: Sequence[str], what: str) -> str:
    if given not in known:
        raise WrongUse(f"{given!r} is no {what}: write {', '.join(known[:-1])} or {known[-1]}")
    return given
