"""Captured requests, one after the other from a file that may be larger than memory.

Two forms are read: one JSON object a line (https://github.com/ndjson/ndjson-spec) with method, url, headers, body in
base64 and received_at, and HAR (http://www.softwareishard.com/blog/har-12-spec/) as browsers and proxies write it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from hookledger.http import Headers, Request
from hookledger.operate.importing.har import entries

MEBIBYTE = 1024 * 1024
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""What is earlier is the zero of some program. In a zone west of Greenwich the year 1 would be one that Python cannot
read, and so would hold up the workers."""
LONGEST_LINE = 64 * MEBIBYTE
"""Bytes of a line: a body of 25 MiB in base64, with room."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A request as it was captured.

    Args:
        number: of its line, or of its entry in a HAR file, from 1.
        request: with the exact bytes; its source is the last part of the URL's path, unless the line names another.
        received_at: when it came.
    """

    number: int
    request: Request
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that is no captured request.

    Args:
        number: of the line or entry, from 1.
        reason: why, in words; it repeats nothing of the line but names.
    """

    number: int
    reason: str


class _Unfit(Exception):
    """The document is no captured request."""


def read_lines(file: IO[bytes], source: str | None = None) -> Iterator[Captured | Bad]:
    """The requests of a file with one JSON object a line.

    Args:
        file: opened for reading bytes.
        source: whose they are; else each line names it, or its URL does.
    """
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield Bad(number, f"the line is longer than {LONGEST_LINE // MEBIBYTE} MiB")
        elif line.strip():
            yield _read(number, line, source)


def read_har(file: IO[bytes], source: str | None = None) -> Iterator[Captured | Bad]:
    """The requests of a HAR file, entry by entry.

    Args:
        file: opened for reading bytes.
        source: whose they are; else the last part of each URL.

    Raises:
        UnreadableBody: if the file is no HAR, or broken in the middle.
    """
    for number, entry in enumerate(entries(file), 1):
        try:
            yield _captured(number, _as_line(entry), source)
        except _Unfit as error:
            yield Bad(number, str(error))


def _read(number: int, line: bytes, source: str | None) -> Captured | Bad:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return Bad(number, "the line is no JSON")
    if not isinstance(document, dict):
        return Bad(number, "the line is no JSON object")
    try:
        return _captured(number, document, source)
    except _Unfit as error:
        return Bad(number, str(error))


def _captured(number: int, document: dict[str, Any], source: str | None) -> Captured:
    url = document.get("url", "")
    if not isinstance(url, str):
        raise _Unfit("its url is no text")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _Unfit("its url cannot be read") from None
    name = source or document.get("source") or unquote(parts.path.rstrip("/").rpartition("/")[2])
    if not isinstance(name, str) or not name:
        raise _Unfit("it names no source: give it a url that ends with the source's name, or use --source")
    method = document.get("method", "POST")
    if not isinstance(method, str):
        raise _Unfit("its method is no text")
    request = Request(name, method.upper(), _headers(document.get("headers")), _body(document), url, parts.query)
    return Captured(number, request, _moment(document.get("received_at")))


def _headers(given: Any) -> Headers:
    if isinstance(given, dict):
        pairs = [
            (name, value)
            for name, values in given.items()
            for value in (values if isinstance(values, list) else [values])
        ]
    elif isinstance(given, list):
        pairs = [tuple(each) if isinstance(each, list) else (None, None) for each in given]
    else:
        raise _Unfit("it has no headers: they are an object, or a list of [name, value]")
    if not all(len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str) for pair in pairs):
        raise _Unfit("its headers are no texts: they are an object, or a list of [name, value]")
    return Headers(pairs)


def _body(document: dict[str, Any]) -> bytes:
    given = document.get("body")
    if not isinstance(given, str):
        raise _Unfit("it has no body: that is a text in base64, empty for no body")
    try:
        return base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        raise _Unfit("its body is not base64") from None


def _moment(given: Any) -> datetime:
    try:
        moment = None
        if isinstance(given, int | float) and not isinstance(given, bool):
            moment = datetime.fromtimestamp(given, UTC)
        if isinstance(given, str):
            moment = datetime.fromisoformat(given)
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        moment = None
    if moment is not None and moment >= EARLIEST:
        return moment
    raise _Unfit("its received_at is no time: write ISO 8601 (UTC unless it names another zone) or Unix seconds")


def _as_line(entry: Any) -> dict[str, Any]:
    """An entry of a HAR as a line would have it."""
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict):
        raise _Unfit("the entry has no request")
    headers = request.get("headers")
    if not isinstance(headers, list) or not all(isinstance(each, dict) for each in headers):
        raise _Unfit("the entry has no headers")
    posted = request.get("postData")
    text = posted.get("text", "") if isinstance(posted, dict) else ""
    if not isinstance(text, str):
        raise _Unfit("its postData is no text")
    if isinstance(posted, dict) and posted.get("encoding") == "base64":
        body = text
    else:
        # HAR keeps text, so the bytes are those of UTF-8; a body that was anything else will not verify.
        body = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
    return {
        "method": request.get("method", "POST"),
        "url": request.get("url", ""),
        "headers": [[each.get("name"), each.get("value")] for each in headers],
        "body": body,
        "received_at": entry.get("startedDateTime"),
    }
