"""JSON Web Tokens of providers. Needs the extra `crypto`.

The algorithm is the one that the provider uses, and never the token's choice: a token that names another is refused
before any key is looked at. https://www.rfc-editor.org/rfc/rfc8725
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from hookledger.errors import Cause, KeysUnavailable, NotVerified, SetupError, UnreadableBody
from hookledger.sources.public_keys import SMALLEST_RSA, require_cryptography
from hookledger.sources.reading import read_json
from hookledger.sources.timestamps import check_age
from hookledger.sources.unverified import malformed

TokenAlgorithm = Literal["HS256", "RS256", "ES256"]
KEY_TYPES: Mapping[str, str] = {"RS256": "RSA", "ES256": "EC"}

LONGEST_TOKEN = 16 * 1024  # characters
MOST_KEYS_OF_A_SET = 50
SKEW = 60.0
"""Seconds that the clock of the one who made a token may differ from ours."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_KEY_ID = re.compile(r"[\x21-\x7e]{1,200}")


def require_pyjwt(what: str) -> None:
    """Tell at start if the packages for tokens are missing.

    Raises:
        SetupError: with the command that installs them.
    """
    require_cryptography(what)
    if find_spec("jwt") is None:
        raise SetupError(f"{what} needs the package PyJWT: pip install 'hookledger[crypto]'")


class Token:
    """A signed token that nobody has verified yet.

    Args:
        text: as it was sent.
        algorithm: that the provider signs with.

    Raises:
        NotVerified: for what is no such token, or names another algorithm.
    """

    def __init__(self, text: str, algorithm: TokenAlgorithm) -> None:
        from jwt import PyJWS
        from jwt.exceptions import PyJWTError

        if len(text) > LONGEST_TOKEN or not _TOKEN.fullmatch(text):
            raise malformed("the token is none: it has not three parts in base64url")
        try:
            parts = PyJWS(algorithms=[algorithm]).decode_complete(text, options={"verify_signature": False})
        except (PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise malformed(f"the token cannot be read: {type(error).__name__}") from None
        self._algorithm = algorithm
        self._header: Mapping[str, Any] = parts["header"]
        self._payload: bytes = parts["payload"]
        self._signature: bytes = parts["signature"]
        signed, _, written = text.rpartition(".")
        self._signed = signed.encode()
        if self._header.get("alg") != algorithm:
            raise malformed(f"the token is not signed with {algorithm}, which is all that the provider uses")
        if "crit" in self._header or "b64" in self._header:
            raise malformed("the token has extensions that the provider does not use")
        if _encoded(self._signature).decode() != written:
            raise malformed("the signature of the token is written in a way that nobody writes it")

    @property
    def key_id(self) -> str:
        """The id of the key that it claims to be signed with.

        Raises:
            NotVerified: if it names none.
        """
        found = self._header.get("kid")
        if not isinstance(found, str) or not _KEY_ID.fullmatch(found):
            raise malformed("the token does not name the key that signed it")
        return found

    def claims(self, key: Any) -> Mapping[str, Any]:
        """What it claims, once its signature is found to be that of the key.

        Args:
            key: bytes for HS256; for the others one of those that `read_key` gives.

        Raises:
            NotVerified: if it was signed with another key.
        """
        from jwt.exceptions import PyJWTError

        try:
            matches = _algorithm(self._algorithm).verify(self._signed, key, self._signature)
        except (PyJWTError, ValueError, TypeError):
            matches = False
        if not matches:
            raise NotVerified("the token was signed with another key, or changed", Cause.NO_MATCH)
        return self.unverified_claims()

    def claims_of_one(self, keys: Sequence[bytes]) -> tuple[int, Mapping[str, Any]]:
        """Which of several secrets signed it, counted from 0, and what it claims.

        Raises:
            NotVerified: if none did.
        """
        for number, key in enumerate(keys):
            try:
                return number, self.claims(key)
            except NotVerified as error:
                if error.cause is not Cause.NO_MATCH:
                    raise
        raise NotVerified("none of the secrets signed the token, or it was changed", Cause.NO_MATCH)

    def unverified_claims(self) -> Mapping[str, Any]:
        """What it claims, whoever made it: to look up whose key should have signed it.

        Raises:
            NotVerified: if that is no JSON object.
        """
        try:
            claims = read_json(self._payload)
        except UnreadableBody:
            claims = None
        if not isinstance(claims, dict):
            raise malformed("the token claims nothing: its middle part is no JSON object")
        return claims


@cache
def _algorithm(name: TokenAlgorithm) -> Any:
    # Used by themselves, so that short keys, which are the provider's affair, are no warning at every request.
    from jwt.algorithms import ECAlgorithm, HMACAlgorithm, RSAAlgorithm

    if name == "HS256":
        return HMACAlgorithm(HMACAlgorithm.SHA256)
    return RSAAlgorithm(RSAAlgorithm.SHA256) if name == "RS256" else ECAlgorithm(ECAlgorithm.SHA256)


def sign_token(claims: Mapping[str, object], key: bytes) -> str:
    """A token (HS256) that claims these, as a provider makes it."""
    parts = b".".join(_encoded(json.dumps(each).encode()) for each in ({"alg": "HS256", "typ": "JWT"}, claims))
    return (parts + b"." + _encoded(_algorithm("HS256").sign(parts, key))).decode()


def _encoded(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


def check_times(claims: Mapping[str, Any], now: float) -> None:
    """Refuse a token that has expired, or is not valid yet; one without an end is no token that providers make.

    Args:
        claims: of a token whose signature was checked.
        now: Unix time in seconds.

    Raises:
        NotVerified: with the number of seconds.
    """
    expires = time_in(claims, "exp")
    if now > expires + SKEW:
        age = now - (time_in(claims, "iat") if "iat" in claims else expires)
        raise NotVerified(
            f"the token is {age:.0f} seconds old, and expired {now - expires:.0f} seconds ago",
            Cause.CLOCK,
            clock_offset=now - expires,
        )
    for name in ("nbf", "iat"):
        if name in claims:
            check_age(time_in(claims, name), now, past=None, future=SKEW, what="the token")


def time_in(claims: Mapping[str, Any], name: str) -> float:
    """A time that a token claims, in Unix time.

    Raises:
        NotVerified: if it claims none.
    """
    found = claims.get(name)
    usable = isinstance(found, int | float) and not isinstance(found, bool)
    if not usable or not abs(found) < 1e12:  # type: ignore[arg-type]
        raise NotVerified(f"the token has no time {name!r}", Cause.TIMESTAMP_MALFORMED)
    return float(found)  # type: ignore[arg-type]


def read_key(document: object, algorithm: TokenAlgorithm) -> tuple[str, Any] | None:
    """A JSON Web Key with its id; None for one that is of another kind, or too weak to be used.

    Args:
        document: the parsed key. https://www.rfc-editor.org/rfc/rfc7517
        algorithm: that it is to check.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from jwt.exceptions import PyJWTError

    if not isinstance(document, dict) or document.get("kty") != KEY_TYPES.get(algorithm):
        return None
    key_id = document.get("kid")
    if not isinstance(key_id, str) or not _KEY_ID.fullmatch(key_id):
        return None
    if document.get("use", "sig") != "sig" or document.get("alg", algorithm) != algorithm:
        return None
    try:
        key = _algorithm(algorithm).from_jwk(document)
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError):
        return None
    usable = (isinstance(key, rsa.RSAPublicKey) and key.key_size >= SMALLEST_RSA) or (
        isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)
    )
    return (key_id, key) if usable else None


def read_key_set(document: bytes | None, algorithm: TokenAlgorithm) -> dict[str, Any]:
    """The keys of a JSON Web Key Set by their ids.

    Raises:
        KeysUnavailable: for what is no such set: something else answered in the key server's place.
    """
    try:
        found = read_json(document or b"")
    except UnreadableBody:
        found = None
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise KeysUnavailable("the key server sent what is no set of keys")
    return dict(filter(None, (read_key(each, algorithm) for each in keys[:MOST_KEYS_OF_A_SET])))
