"""The entries of a HAR file one by one: the file is one JSON document, and may be larger than memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any

from hookledger.errors import UnreadableBody

CHUNK = 256 * 1024
LARGEST_ENTRY = 128 * 1024 * 1024
"""Characters of one entry, with the response that belongs to it."""

# Within a string the quotes would be escaped.
_BEGIN = re.compile(r'(?<!\\)"entries"\s*:\s*\[')
_OVERLAP = 64
_BETWEEN = " \t\r\n,"


def entries(file: IO[bytes]) -> Iterator[Any]:
    """What stands in `log.entries`.

    Args:
        file: opened for reading bytes.

    Raises:
        UnreadableBody: if there are no entries, or the document is broken.
    """
    text = _Text(file)
    if not text.skip_behind(_BEGIN):
        raise UnreadableBody("the file is no HAR: it has no entries")
    decoder = json.JSONDecoder()
    while True:
        text.skip(_BETWEEN)
        if text.held[:1] == "]":
            return
        try:
            entry, end = decoder.raw_decode(text.held)
        except (ValueError, RecursionError) as error:
            if isinstance(error, RecursionError) or len(text.held) > LARGEST_ENTRY or not text.more():
                raise UnreadableBody("the HAR file is broken, or cut off in the middle of an entry") from None
            continue
        text.held = text.held[end:]
        yield entry


class _Text:
    """The text of a file, as much of it as is needed at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self.held = ""
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")

    def more(self) -> bool:
        """Read on, by as much again as is held, so that a large entry is not tried for every chunk of it."""
        raw = self._file.read(max(CHUNK, len(self.held)))
        if raw:
            self.held += self._decoder.decode(raw)
        return bool(raw)

    def skip_behind(self, pattern: re.Pattern[str]) -> bool:
        """Go behind the first match; whether there is one."""
        while (found := pattern.search(self.held)) is None:
            self.held = self.held[-_OVERLAP:]
            if not self.more():
                return False
        self.held = self.held[found.end() :]
        return True

    def skip(self, characters: str) -> None:
        """Go behind these."""
        while not (kept := self.held.lstrip(characters)) and self.more():
            pass
        self.held = kept or self.held.lstrip(characters)
