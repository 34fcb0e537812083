"""Reading the secrets of a source at start: a wrong one is told then, not by a stream of 401 (D3)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Literal

from hookledger.errors import SecretError, SetupError

Secrets = str | bytes | Sequence[str | bytes]
"""One secret, or several while they are being rotated; the first one signs in `hookledger send`."""

KeyEncoding = Literal["utf-8", "base64", "hex", "whsec"]

STANDARD_PREFIX = "whsec_"
INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def read_secrets(
    source: str,
    secrets: Secrets,
    encoding: KeyEncoding = "utf-8",
    *,
    foreign_prefixes: Sequence[str] = (),
) -> tuple[bytes, ...]:
    """The keys of a source.

    Args:
        source: the name of the source, for the message.
        secrets: as the provider shows them.
        encoding: how the key is written in the secret: the text itself, base64, hex, or base64 after `whsec_`.
        foreign_prefixes: what a secret of this provider never begins with, because API keys do.

    Raises:
        SecretError: for a secret that cannot be the provider's. The message names the fault, not the secret.
    """
    if encoding not in ("utf-8", "base64", "hex", "whsec"):
        raise SetupError(
            f"the source {source!r}: secret_encoding={encoding!r} is not known: use utf-8, base64, hex or whsec"
        )
    several = not isinstance(secrets, str | bytes | bytearray)
    if several and (secrets is None or not isinstance(secrets, Sequence)):
        raise SecretError(f"the source {source!r}: {_not_text(secrets)}")
    given: list[object] = list(secrets) if several else [secrets]
    if not given:
        raise SecretError(f"the source {source!r}: secrets is an empty list; give it at least one secret")
    keys: list[bytes] = []
    for number, secret in enumerate(given, start=1):
        try:
            key = _key(secret, encoding, foreign_prefixes)
        except _Fault as fault:
            which = f"secret {number}" if several else "the secret"
            raise SecretError(f"the source {source!r}: {which} {fault}") from None
        if key not in keys:
            keys.append(key)
    return tuple(keys)


class _Fault(Exception):
    """What is wrong with a secret, as the end of a sentence."""


def _not_text(value: object) -> str:
    if value is None:
        return "secrets is None; the environment variable that should hold the secret is probably not set"
    return f"secrets must be text or a list of texts, not {type(value).__name__}"


def _key(secret: object, encoding: KeyEncoding, foreign_prefixes: Sequence[str]) -> bytes:
    if secret is None:
        raise _Fault("is None; the environment variable that should hold it is probably not set")
    if not isinstance(secret, str | bytes | bytearray):
        raise _Fault(f"must be text, not {type(secret).__name__}")
    if not isinstance(secret, str):
        raw = bytes(secret)
        if raw and not raw.isascii():
            if encoding != "utf-8":
                raise _Fault(f"must be written in {encoding}, but holds bytes that are no text")
            return raw  # the key itself, not the text of one
        secret = raw.decode("ascii")
    _check_spelling(secret, foreign_prefixes)
    if encoding == "utf-8":
        try:
            return secret.encode("utf-8", "surrogateescape")  # as it stood in the environment
        except UnicodeEncodeError:
            raise _Fault("holds half a surrogate pair, which no text has") from None
    if encoding == "hex":
        if not re.fullmatch(r"([0-9a-fA-F]{2})+", secret):
            raise _Fault("must be hex digits, two for each byte of the key")
        return bytes.fromhex(secret)
    return _from_whsec(secret) if encoding == "whsec" else _from_base64(secret)


def _check_spelling(secret: str, foreign_prefixes: Sequence[str]) -> None:
    if not secret:
        raise _Fault("is empty; anybody could sign with an empty secret")
    if not secret.strip(INVISIBLE).strip():
        raise _Fault("is blank: it holds white space only")
    if secret[-1] in "\r\n":
        raise _Fault("ends with a newline; read it with .strip() if it comes from a file")
    if secret != secret.strip():
        where = "begins" if secret[0].isspace() else "ends"
        raise _Fault(f"{where} with white space; remove it, because every signature would differ")
    if secret[0] in INVISIBLE or secret[-1] in INVISIBLE:
        raise _Fault("begins or ends with an invisible character, such as a byte order mark; remove it")
    if _CONTROL.search(secret):
        raise _Fault("holds a line break or another control character; give several secrets as a list")
    for prefix in foreign_prefixes:
        if secret.startswith(prefix):
            raise _Fault(f"begins with {prefix!r}, so it is an API key and not the secret of a webhook endpoint")


def _from_whsec(secret: str) -> bytes:
    if secret.startswith(("whpk_", "whsk_")):
        raise _Fault(
            f"begins with {secret[:5]!r}: it is a key of the asymmetric scheme v1a, not a {STANDARD_PREFIX} secret"
        )
    if not secret.startswith(STANDARD_PREFIX):
        if STANDARD_PREFIX in secret:
            raise _Fault(f"has something in front of {STANDARD_PREFIX!r}; it must begin with {STANDARD_PREFIX!r}")
        raise _Fault(f"must begin with {STANDARD_PREFIX!r}; if you have only the base64 part, put that in front")
    return _from_base64(secret.removeprefix(STANDARD_PREFIX))


def _from_base64(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        # Providers leave the padding out at times, and that loses nothing.
        key = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _Fault("is damaged: it is not base64; copy it again, whole") from None
    if not key:
        raise _Fault("holds a key of no bytes; copy it again, whole")
    return key
