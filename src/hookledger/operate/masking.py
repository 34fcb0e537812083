"""What is not shown: values of headers and members that hold secrets or signatures.

Everything that shows a request goes through here: tables, JSON, errors, the console.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

SHORTEST_SCRUBBED = 8
"""Characters of a secret that is looked for in other text; a shorter one would tear holes into harmless words."""

# Names of headers by their parts: X-Hub-Signature-256 has the part "signature".
_TELLING = re.compile(
    r"auth|authorization|verification|cookie|credentials?|signatures?|sig|sign|hmac|digest|tokens?|secrets?|keys?|apikey|password"
    r"|passwd|passphrase|pwd|jwt|bearer|csrf|xsrf|session|nonce|otp",
    re.IGNORECASE,
)
_JOINED = re.compile(
    r"authorization|signature|token|secret|passwor[dt]|passwd|passphrase|(api|access|private)[_-]?key|cookie|hmac|credential",
    re.IGNORECASE,
)
# The word "password" itself stands in our own examples of URLs.
_PASSWORD_IN_URL = re.compile(r"(://[^:/?#@\s]*:)(?!password@)\S+@")
_PASSWORD_IN_DSN = re.compile(r"(\bpassword\s*=\s*)('[^']*'|[^\s&]+)", re.IGNORECASE)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_BY_NAME = frozenset(["x-trello-webhook"])
"""Signature headers of providers that do not say so."""
# They name what is sent, and open nothing.
_HARMLESS = frozenset(["idempotency-key", "x-idempotency-key", "sec-websocket-key", "x-request-key", "content-digest"])


def is_secret(name: str) -> bool:
    """Whether the value of the header of this name is not shown."""
    if name.lower() in _HARMLESS:
        return False
    if name.lower() in _BY_NAME:
        return True
    return any(_TELLING.fullmatch(part) for part in _PART.findall(name)) or _JOINED.search(name) is not None


def is_secret_member(name: str) -> bool:
    """Whether the value under this name in a body is not shown; "key" alone names harmless things there."""
    return _JOINED.search(name) is not None


def mask(value: str) -> str:
    """What stands in place of a secret: it tells whether there was one, and how long."""
    return f"[masked, {len(value)} characters]"


def mask_headers(headers: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """The headers (name, value) in their order, with the values of secret ones masked."""
    return [(name, mask(value) if is_secret(name) else value) for name, value in headers]


def mask_members(document: Any) -> Any:
    """A JSON document with the texts and numbers under secret names masked, however deep."""
    # Without recursion: a sender chooses the depth.
    top = [document]
    open_parts: list[tuple[Any, bool]] = [(top, False)]
    while open_parts:
        part, masked = open_parts.pop()
        for place, value in part.items() if isinstance(part, dict) else enumerate(part):
            secret = is_secret_member(place) if isinstance(place, str) else masked
            if isinstance(value, dict | list):
                part[place] = value.copy()
                open_parts.append((part[place], secret))
            elif secret and value not in (None, True, False, ""):
                part[place] = mask(str(value))
    return top[0]


def secret_values(headers: Iterable[Sequence[str]]) -> list[str]:
    """The values of secret headers, and the parts that a scheme puts into one, the longest first."""
    found: set[str] = set()
    for name, value in headers:
        if is_secret(name):
            found.update([value, *re.split(r"[\s,;=]+", value), *re.split(r"[\s,;]+", value)])
    return sorted((value for value in found if len(value) >= SHORTEST_SCRUBBED), key=lambda value: (-len(value), value))


def scrub(text: str, values: Iterable[str]) -> str:
    """Text, such as that of an error, without the given secrets, and without passwords of URLs.

    Args:
        text: to be shown.
        values: of `secret_values`, or secrets that are known otherwise, the longest first.
    """
    for value in values:
        if value in text:
            text = text.replace(value, mask(value))
    return without_password(text)


def without_password(text: str) -> str:
    """The text with the passwords of URLs and connection strings left out."""
    return _PASSWORD_IN_DSN.sub(r"\1***", _PASSWORD_IN_URL.sub(r"\1***@", text))
