"""Other forms of a body: what the sender may have signed, if something on the way changed it into what came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hookledger.errors import Cause, UnreadableBody
from hookledger.sources.reading import read_json


def other_bodies(body: bytes, *, indented: bool) -> Iterator[tuple[Cause, str, bytes]]:
    """Each other form with its cause and with words for what happened.

    Args:
        body: the one that came.
        indented: whether to write it as indented JSON too, which is slow.
    """
    for how, other in (
        ("a newline at the end was lost", body + b"\n"),
        ("a CR LF at the end was lost", body + b"\r\n"),
        ("a line end was added", body.rstrip(b"\r\n")),
        ("CR LF became LF", body.replace(b"\n", b"\r\n")),
        ("LF became CR LF", body.replace(b"\r\n", b"\n")),
    ):
        yield Cause.LINE_END_CHANGED, how, other
    for how, other in _other_encodings(body):
        yield Cause.BODY_RESERIALISED, how, other
    try:
        document = read_json(body)
    except UnreadableBody:
        return
    for how, text in _serialised(document, indented=indented):
        encoded = text.encode("utf-8", "surrogatepass")
        yield Cause.BODY_RESERIALISED, how, encoded
        yield Cause.BODY_RESERIALISED, f"{how}, with a newline at the end", encoded + b"\n"


def _other_encodings(body: bytes) -> Iterator[tuple[str, bytes]]:
    yield "a byte order mark was lost", b"\xef\xbb\xbf" + body
    try:
        text = body.decode("utf-8")
        yield "bytes that were no UTF-8 were taken for Latin-1", text.encode("latin-1")
    except UnicodeError:
        pass


def _serialised(document: Any, *, indented: bool) -> Iterator[tuple[str, str]]:
    """The JSON of a document as other serialisers write it."""
    forms: list[tuple[str, dict[str, Any]]] = [
        ("compact JSON", {"separators": (",", ":")}),
        ("spaced JSON", {"separators": (", ", ": ")}),
    ]
    if indented:
        forms += [("JSON indented by two", {"indent": 2}), ("JSON indented by four", {"indent": 4})]
    try:
        for how, form in forms:
            for order in ("", ", its keys sorted"):
                text = json.dumps(document, ensure_ascii=False, sort_keys=bool(order), **form)
                yield how + order, text
                yield f"{how}{order}, with slashes escaped", text.replace("/", "\\/")
                yield f"{how}{order}, with <, > and & escaped", _escaped_html(text)
                escaped = json.dumps(document, sort_keys=bool(order), **form)
                if escaped != text:
                    yield f"{how}{order}, with escapes as \\u00e4", escaped
                    yield f"{how}{order}, with escapes as \\u00E4", _upper_escapes(escaped)
                    yield f"{how}{order}, with escapes as \\u00e4 and slashes escaped", escaped.replace("/", "\\/")
    except (RecursionError, ValueError):
        return


def _escaped_html(text: str) -> str:
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _upper_escapes(text: str) -> str:
    pieces = text.split("\\u")
    return pieces[0] + "".join("\\u" + piece[:4].upper() + piece[4:] for piece in pieces[1:])
