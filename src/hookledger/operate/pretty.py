"""A body for people: JSON indented without a change of its spelling, text without control characters, bytes as hex.

JSON is not parsed but taken apart into its words, so that numbers, escapes, repeated names and any depth stay as the
sender wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

from hookledger.operate.masking import is_secret_member, mask

LONGEST_SHOWN = 64 * 1024
"""Bytes of a body that are shown; the exact bytes can always be had otherwise."""
MOST_LINES = 1000
DEEPEST_INDENT = 40
LONGEST_HEX = 512

_WORD = re.compile(r'\s*("(?:[^"\\\x00-\x1f]|\\.)*"|[\[\]{},:]|-?[0-9][0-9.eE+-]*|true|false|null|NaN|-?Infinity)')
_REST = re.compile(r"\s*\Z")
_PAIR = re.compile(r"(?<![^&])([^=&]*)=([^&]+)")


def shown_body(body: bytes, content_type: str = "") -> str:
    """The body as lines of text that move no cursor and hold no secret members.

    Args:
        body: exact.
        content_type: of the request; a form is masked by its names.
    """
    cut = body[:LONGEST_SHOWN]
    whole = len(cut) == len(body)
    text = _decoded(cut, whole=whole)
    if text is None:
        shown, missing = _hex(body), max(0, len(body) - LONGEST_HEX)
    else:
        shown = _indented(text, whole=whole) or printable_lines(masked_text(text, content_type))
        missing = len(body) - len(cut)
    lines = shown.split("\n")
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"... {len(lines) - MOST_LINES:,} lines more, which --raw shows"]
    if missing:
        lines.append(f"... {missing:,} bytes more, which --raw shows")
    return "\n".join(lines)


def masked_text(text: str, content_type: str = "") -> str:
    """The text of a body with its secret members masked, and no other change.

    Args:
        text: of the body.
        content_type: of the request.
    """
    if "x-www-form-urlencoded" in content_type.lower():
        return _PAIR.sub(
            lambda pair: f"{pair[1]}={mask(pair[2])}" if is_secret_member(unquote_plus(pair[1])) else pair[0], text
        )
    return "".join(_masked_json(text))


def printable_lines(text: str) -> str:
    """The text with U+FFFD for what would move the cursor, change the terminal or the direction of writing; lines and
    tabs stay."""
    if text.isprintable():
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(
        "".join(char if char.isprintable() or char == "\t" else "\ufffd" for char in line) for line in lines
    )


def _decoded(body: bytes, *, whole: bool) -> str | None:
    """The text, or None for bytes that are none."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        # A character that the cut went through is no fault.
        if whole or error.start < len(body) - 4:
            return None
        text = body[: error.start].decode("utf-8")
    return None if "\x00" in text else text


def _indented(text: str, *, whole: bool) -> str | None:
    """JSON, a member a line; None if it is none. What is not whole is indented as far as it goes."""
    lines: list[str] = [""]
    for word, depth, opens_line in _laid_out(text):
        if word is None:
            if whole or len(lines) == 1:
                return None
            break
        if opens_line:
            lines.append("  " * min(depth, DEEPEST_INDENT))
        lines[-1] += printable_lines(word)
    return "\n".join(line for line in lines if line.strip())


def _laid_out(text: str) -> Iterator[tuple[str | None, int, bool]]:
    """Each word, at which depth, and whether it opens a line."""
    depth = 0
    before = ""
    for word in _words(text):
        if word is None:
            yield None, 0, False
            return
        if word in "]}":
            depth = max(0, depth - 1)
            yield word, depth, before not in ("[", "{")
        elif word == ",":
            yield word, depth, False
        elif word == ":":
            yield ": ", depth, False
        else:
            yield word, depth, before in ("[", "{", ",")
            depth += word in "[{"
        before = word


def _words(text: str) -> Iterator[str | None]:
    """The words of a JSON object or array, secret values masked; None where there is something else."""
    if text.lstrip()[:1] not in ("{", "["):
        yield None
        return
    for _, word in _masked_words(text):
        yield word


def _masked_json(text: str) -> Iterator[str]:
    """A text as it is, but with the values of secret members masked where it is JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        yield text
        return
    for space, word in _masked_words(text):
        yield space
        if word is None:
            return
        yield word
    yield text[len(text.rstrip()) :]


def _masked_words(text: str) -> Iterator[tuple[str, str | None]]:
    """The space before each word, and the word; None for the word, and the rest as space, where it is no JSON."""
    position = 0
    containers: list[tuple[str, bool]] = []
    name_is_secret = False
    before = ""
    while not _REST.match(text, position):
        found = _WORD.match(text, position)
        if found is None:
            # Cut off within a word, or no JSON.
            yield "[masked]" if name_is_secret or (containers and containers[-1][1]) else text[position:], None
            return
        word, space = found[1], text[position : found.start(1)]
        position = found.end()
        inside, all_secret = containers[-1] if containers else ("", False)
        is_name = inside == "{" and before in ("{", ",")
        if word in "{[":
            containers.append((word, all_secret or name_is_secret))
        elif word in "]}":
            if containers:
                containers.pop()
        elif word in ",:":
            name_is_secret = name_is_secret and word == ":"
        elif is_name:
            name_is_secret = is_secret_member(_read(word))
        elif (name_is_secret or all_secret) and word not in ("null", "true", "false", '""'):
            word = f'"{mask(word.strip(chr(34)))}"'
        if word in "{[":
            name_is_secret = False
        before = found[1]
        yield space, word


def _read(word: str) -> str:
    """A name, with its escapes read."""
    try:
        return str(json.loads(word))
    except ValueError:
        return word


def _hex(body: bytes) -> str:
    """The beginning of binary bytes, as hexadecimal digits and text beside them."""
    lines = [f"binary, {len(body):,} bytes:"]
    for start in range(0, min(len(body), LONGEST_HEX), 16):
        part = body[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<47}  {text}")
    return "\n".join(lines)
