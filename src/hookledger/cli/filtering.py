"""The options by which deliveries are chosen, the same for every command that takes a filter."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookledger.cli.captured import read_file
from hookledger.cli.errors import WrongUse

if TYPE_CHECKING:
    from hookledger.operate.filters import Filter

LARGEST_ID = 2**63 - 1
MOST_DIGITS = 30
_MOMENT = "3h, 2d, or 2031-05-04T13:58, which is UTC unless it names a zone."


def _options(
    *,
    source: Annotated[str | None, typer.Option("--source", metavar="NAME", help="Of this source.")] = None,
    event_type: Annotated[
        str | None, typer.Option("--type", metavar="PATTERN", help="Of this event type; * stands for anything.")
    ] = None,
    resource: Annotated[str | None, typer.Option("--resource", metavar="KEY", help="Of this resource.")] = None,
    ids: Annotated[
        list[int] | None, typer.Option("--id", metavar="ID", min=0, help="With this id; may be repeated.")
    ] = None,
    ids_from: Annotated[
        str | None,
        typer.Option("--ids-from", metavar="FILE", help="With one of the ids in a file, or - for standard input."),
    ] = None,
    event_id: Annotated[
        str | None, typer.Option("--event-id", metavar="ID", help="With this id of the sender's.")
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome", metavar="OUTCOME", help="With a handler's outcome applied, stale, superseded, ignored."
        ),
    ] = None,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="That are pending, dead or settled.")
    ] = None,
    received_since: Annotated[
        str | None, typer.Option("--received-since", "--since", metavar="TIME", help=f"Received since: {_MOMENT}")
    ] = None,
    received_until: Annotated[
        str | None, typer.Option("--received-until", "--until", metavar="TIME", help="Received before.")
    ] = None,
    settled_since: Annotated[
        str | None, typer.Option("--settled-since", metavar="TIME", help="With an outcome written since.")
    ] = None,
    settled_until: Annotated[
        str | None, typer.Option("--settled-until", metavar="TIME", help="With an outcome written before.")
    ] = None,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint", metavar="MARK", help="That failed or died with this error, see `hookledger dead`."
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="With this text in the body. Reads every body.")
    ] = None,
) -> None:
    """The options, as Typer reads them."""


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a filter; it is called with the filter as `wanted`, and its own options.

    The options come after the command's arguments and before its own options.
    """
    own, options = _parameters(command), _parameters(_options)
    arguments = [each for each in own.values() if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    rest = [each for each in own.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in options}
        command(wanted=filter_of(**chosen), **given)

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in [*arguments, *options.values(), *rest]
    ]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del called.__wrapped__
    return called


def _parameters(command: Callable[..., None]) -> dict[str, inspect.Parameter]:
    """The parameters of a command but the filter, whose class is not imported yet, with their annotations read."""
    return {
        name: parameter.replace(annotation=eval(parameter.annotation, command.__globals__))  # noqa: S307
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "wanted"
    }


def filter_of(
    *,
    ids: list[int] | None,
    ids_from: str | None,
    outcome: str | None,
    state: str | None,
    **others: str | None,
) -> Filter:
    """The filter that the options say.

    Raises:
        WrongUse: for an outcome, state or id that there is not.
        SetupError: for a time that cannot be read.
    """
    from hookledger.operate.filters import Filter, State
    from hookledger.operate.moments import read_moment
    from hookledger.worker.outcome import Outcome

    now = datetime.now(UTC)
    given: dict[str, Any] = {
        name: read_moment(value, now) if name.endswith(("_since", "_until")) and value is not None else value
        for name, value in others.items()
    }
    chosen = None if ids is None else list(ids)
    if ids_from is not None:
        chosen = [*(chosen or []), *read_ids(ids_from)]
    return Filter(
        ids=None if chosen is None else tuple(dict.fromkeys(chosen)),
        outcome=None if outcome is None else Outcome(_one_of("--outcome", outcome, [each.value for each in Outcome])),
        state=None if state is None else State(_one_of("--state", state, [each.value for each in State])),
        **given,
    )


def read_ids(file: str) -> list[int]:
    """The ids of a file, or of standard input if it is "-", between spaces, commas or line ends.

    Raises:
        WrongUse: if it cannot be read, or holds anything else.
    """
    raw = sys.stdin.buffer.read() if file == "-" else read_file(file)
    found: list[int] = []
    for word in raw.replace(b",", b" ").split():
        if not word.isdigit() or len(word) > MOST_DIGITS or int(word) > LARGEST_ID:
            shown = word[:40].decode("ascii", "backslashreplace")
            raise WrongUse(
                f"--ids-from takes ids of deliveries, as `hookledger deliveries -q` prints them, not {shown!r}"
            )
        found.append(int(word))
    return found


def _one_of(option: str, value: str, known: list[str]) -> str:
    if value.lower() not in known:
        raise WrongUse(f"{option} takes {', '.join(known[:-1])} or {known[-1]}, not {value!r}")
    return value.lower()
