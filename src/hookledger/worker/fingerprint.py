"""Errors in words, and a fingerprint that is the same for errors of one cause."""

from __future__ import annotations

import hashlib
import re

from sqlalchemy.exc import DBAPIError

from hookledger import storable

_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\(.*?\)|0x[0-9a-fA-F]+|\d+")


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


def fingerprint(handler: str, error: BaseException) -> str:
    """Sixteen hexadecimal digits, the same for errors of one handler that differ only in numbers and names."""
    first_line = in_words(error).partition("\n")[0]
    return hashlib.sha256(f"{handler}\n{_VARYING.sub('?', first_line)}".encode()).hexdigest()[:16]
