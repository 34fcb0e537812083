"""Where an error was raised: file, line and function, without folders and without the values of variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any

from sqlalchemy.exc import StatementError

from hookledger import storable

OWN_PACKAGE = __name__.partition(".")[0]
LONGEST_NAME = 100  # characters
INSTALLED = frozenset({"site-packages", "dist-packages"})

_PLACE = re.compile(r"at .+:\d+ in .+")


@dataclass(frozen=True, slots=True)
class Place:
    """The last frame of the handler's code that an error went through, and the frame that raised it.

    Args:
        file: name of the file, without its folder.
        function: without the class or function that it stands in.
        line: within the file.
        raised_at: file, line and function that raised it, if that was code which the handler called.
    """

    file: str
    function: str
    line: int
    raised_at: str | None = None

    def __str__(self) -> str:
        """As it stands in the ledger and in the log."""
        at = f"at {self.file}:{self.line} in {self.function}"
        return at if self.raised_at is None else f"{at}, raised at {self.raised_at}"


def place_of(error: BaseException, function: Callable[..., Any]) -> Place | None:
    """Where an error came out of the code of a handler; None if it was not raised there.

    The handler's code is what lies in its package or beneath its folder, and is not installed there by a package
    manager: all else is a library to it.

    Args:
        error: with its traceback.
        function: the handler's.
    """
    module = str(getattr(function, "__module__", None) or "")
    file = PurePath(str(getattr(getattr(function, "__code__", None), "co_filename", "")))
    own: tuple[CodeType, int] | None = None
    last: tuple[CodeType, int] | None = None
    for frame, line in walk_tb(error.__traceback__):
        last = (frame.f_code, line)
        if _is_own(frame, module, file):
            own = last
    if own is None or last is None:
        return None
    raised_at = None if last == own else f"{_file(last[0])}:{last[1]} in {_function(last[0])}"
    return Place(_file(own[0]), _function(own[0]), own[1], raised_at)


def with_place(words: str, place: Place | None) -> str:
    """The text of an error for the ledger: its first line as it is, the place as the second, then the rest."""
    first, _, rest = words.partition("\n")
    return "\n".join([part for part in (first, None if place is None else str(place), rest) if part])


def parts(text: str) -> tuple[str, str | None, str]:
    """The first line of the text of an error in the ledger, the place if it has one, and the rest."""
    first, _, rest = text.partition("\n")
    second, _, others = rest.partition("\n")
    return (first, second, others) if _PLACE.fullmatch(second) else (first, None, rest)


def without_place(text: str) -> str:
    """The text of an error in the ledger as its class and message are."""
    first, _, rest = parts(text)
    return f"{first}\n{rest}" if rest else first


def without_parameters(error: BaseException) -> BaseException:
    """The same error and those behind it, whose texts now leave out the parameters of SQL statements."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, StatementError):
            one.hide_parameters = True
        left += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
    return error


def _is_own(frame: FrameType, module: str, file: PurePath) -> bool:
    name, package = str(frame.f_globals.get("__name__", "")), module.partition(".")[0]
    path = PurePath(frame.f_code.co_filename)
    if name == module or path == file:
        return True
    if OWN_PACKAGE in (name.partition(".")[0], package):
        return False
    if name.partition(".")[0] == package:
        return True
    folder = file.parent
    beneath = path.is_absolute() and folder.name not in INSTALLED and path.is_relative_to(folder)
    return beneath and INSTALLED.isdisjoint(path.relative_to(folder).parts)


def _file(code: CodeType) -> str:
    return _short(PurePath(code.co_filename).name)


def _function(code: CodeType) -> str:
    return _short(code.co_name)


def _short(name: str) -> str:
    return " ".join(storable.text(name[:LONGEST_NAME]).split())
