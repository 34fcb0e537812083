"""A request that was captured into files: raw header lines, and the exact bytes of the body."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from hookledger.cli.errors import WrongUse
from hookledger.http import Headers

STANDARD_INPUT = "-"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_REQUEST_LINE = re.compile(rb"([A-Z]+) (\S+) HTTP/[0-9.]+")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Captured:
    """What a file of headers holds.

    Args:
        headers: in their order, repeats kept.
        method, target: those of the request line, if the file begins with one.
    """

    headers: Headers
    method: str | None = None
    target: str | None = None


def read_file(name: str, what: str = "file") -> bytes:
    """The bytes of a file, or of standard input if it is named `-`.

    Args:
        name: of the file.
        what: how an error names it.

    Raises:
        WrongUse: if it cannot be read.
    """
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        with open(name, "rb") as opened:
            return opened.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise WrongUse(f"the {what} {name} cannot be read: {reason}") from error


def read_headers(raw: bytes, name: str) -> Captured:
    """Headers from raw `Name: value` lines that end with CR LF or LF; a request line may stand before them.

    Args:
        raw: the bytes of the file.
        name: of the file, for errors.

    Raises:
        WrongUse: for a line that is no header, naming its number and not its content.
    """
    pairs: list[tuple[bytes, bytes]] = []
    method: str | None = None
    target: str | None = None
    lines = [line.removesuffix(b"\r") for line in raw.removeprefix(BYTE_ORDER_MARK).split(b"\n")]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            if any(each.strip() for each in lines[number:]) and pairs:
                raise WrongUse(
                    f"{name} goes on after the blank line {number}, where headers end: put the body into a file of its "
                    "own and give it with --body"
                )
            continue
        if not pairs and method is None and (request_line := _REQUEST_LINE.fullmatch(line.strip())):
            method, target = request_line[1].decode(), request_line[2].decode("latin-1")
            continue
        if line[:1] in b" \t" and pairs:
            # Folded: https://www.rfc-editor.org/rfc/rfc9112#section-5.2
            pairs[-1] = (pairs[-1][0], b" ".join([pairs[-1][1], line.strip()]).strip())
            continue
        written, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(written.strip()):
            raise WrongUse(f"line {number} of {name} is no header: write each as 'Name: value' on a line of its own")
        pairs.append((written.strip(), value.strip(b" \t")))
    return Captured(Headers.from_wire(pairs), method, target)
