"""Errors in words, and a fingerprint that is the same for errors of one cause."""

from __future__ import annotations

import hashlib
import re

from sqlalchemy.exc import DBAPIError

from hookledger import storable
from hookledger.worker.raised import Place

_PART = re.compile(
    r"(?<!\w)[bBrRuU]{0,2}'(?P<single>[^']*)'"
    r'|"(?P<double>[^"]*)"'
    r"|\((?P<round>[^()]*)\)"
    r"|[\w.+-]{1,64}@[\w.-]+"
    r"|(?P<token>(?:(?<!\w)[-+](?=\d))?\w+(?:-+\w+|[.,:]\d\w*)*)"
)
"""What may vary: quotes, brackets, an address, a number or moment, and words, with the parts that hyphens join."""

_PLAIN = re.compile(r"[^\W\d]{1,40}")
_HEXADECIMAL = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
_SYLLABLES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

SHORTEST_RANDOM, SHORTEST_SYLLABLE = 10, 3.0
SHORTEST_PREFIXED, SHORTEST_PREFIXED_SYLLABLE = 8, 4.0
"""Letters of a word, and letters between its capitals on average, below which it is random and no name in mixed case;
and those of what follows a prefix, as in cus_NffrFeUfNVHib."""


def in_words(error: BaseException) -> str:
    """The class and message of an error. Statements and their parameters, which may hold a sender's data or a
    secret, are left out."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    name = type(error).__name__
    try:
        text = str(error).strip()
    except BaseException as broken:  # a handler's own class may raise anything, and must not stop the worker
        text = f"its text could not be made, that raised {type(broken).__name__}"
    return storable.message(f"{name}: {text}" if text else name)


def fingerprint(handler: str, error: BaseException, place: Place | None = None) -> str:
    """Sixteen hexadecimal digits, the same for errors of one handler that differ only in what changes with each
    delivery: numbers, ids, and quoted texts that are more than a plain word. The line is no part of it, so that an
    edit elsewhere in the file makes no new group.

    Args:
        handler: its name.
        error: what it raised.
        place: where, if that is known.
    """
    name, colon, text = in_words(error).partition("\n")[0].partition(": ")
    at = "" if place is None else f"\n{place.file} {place.function}"
    return hashlib.sha256(f"{handler}\n{name}{colon}{_PART.sub(_kept, text)}{at}".encode()).hexdigest()[:16]


def _kept(found: re.Match[str]) -> str:
    """What of a part of the message goes into the fingerprint: all of it, or that it was there."""
    token = found["token"]
    if token is not None:
        return "?" if any(_is_id(part) for part in token.split("-")) else token
    for kind in ("single", "double", "round"):
        inner = found[kind]
        if inner is not None and _PLAIN.fullmatch(inner) and not _is_id(inner):
            return inner
    return "?"


def _is_id(word: str) -> bool:
    """Whether a word looks like the name of one thing among many."""
    if any(char.isdigit() for char in word) or _HEXADECIMAL.fullmatch(word):
        return True
    first, *others = word.split("_")
    return _is_random(first, SHORTEST_RANDOM, SHORTEST_SYLLABLE) or any(
        _is_random(part, SHORTEST_PREFIXED, SHORTEST_PREFIXED_SYLLABLE) for part in others
    )


def _is_random(letters: str, shortest: int, syllable: float) -> bool:
    return len(letters) >= shortest and len(letters) < syllable * len(_SYLLABLES.findall(letters))
