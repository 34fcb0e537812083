"""The rule by which values from a sender's bytes become text that PostgreSQL can store (D2).

A text column holds neither NUL nor half a surrogate pair, and an index holds no value of unbounded length.
Keys must stay distinct, so a key that had to be changed carries the digest of the original.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

LONGEST_KEY = 512  # bytes of UTF-8; an index row of PostgreSQL holds about 2,700
LONGEST_LABEL = 255  # characters
LONGEST_ERROR = 4000  # characters
REPLACEMENT = "\ufffd"
SURROGATE = re.compile("[\ud800-\udfff]")


def text(value: str) -> str:
    """Text with NUL and half surrogate pairs replaced by U+FFFD."""
    if "\x00" in value:
        value = value.replace("\x00", REPLACEMENT)
    return value if value.isascii() else SURROGATE.sub(REPLACEMENT, value)


def key(name: str) -> str:
    """Text for a column that identifies something (event_id, resource): as it is where it can be stored,
    else its beginning, a tilde and the SHA-256 of the original, so that distinct keys stay distinct (a sender who
    sets out to can send the key of another of its events as an id, as it can send that id again)."""
    if len(name) <= LONGEST_KEY // 4 and name.isascii() and "\x00" not in name:
        return name
    clean = text(name)
    if clean == name and len(clean.encode()) <= LONGEST_KEY:
        return name
    return f"{clean[:64]}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def label(name: str) -> str:
    """Text for a column that names a kind (event_type): NUL and surrogates become U+FFFD, the end is cut."""
    return text(name)[:LONGEST_LABEL]


def message(error: str) -> str:
    """Text of an error for the ledger: made storable, the end cut with a note of how much is missing."""
    clean = text(error)
    if len(clean) > LONGEST_ERROR:
        return f"{clean[:LONGEST_ERROR]} ... ({len(clean) - LONGEST_ERROR} characters more)"
    return clean


def identifier(value: Any) -> str | None:
    """An id or resource as read from a document: a non-blank string or a non-zero integer, else None.

    Blank strings, 0, null, booleans and containers name nothing; taking one for a key would make all
    later events without a name duplicates of the first.
    """
    if isinstance(value, str):
        return key(value) if value.strip() else None
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        try:
            return key(str(int(value)))
        except ValueError:
            # More digits than Python converts; hexadecimal has no such limit.
            return key(hex(value))
    return None
