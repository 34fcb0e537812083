"""monday.com. https://developer.monday.com/apps/docs/webhooks"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Sequence
from typing import Any

from hookledger.errors import Cause, NotVerified
from hookledger.http import Headers, Request
from hookledger.sources.describe import Family, Provider, Settings, joined
from hookledger.sources.handshakes import monday_challenge
from hookledger.sources.source import Verified
from hookledger.sources.timestamps import DEFAULT_TOLERANCE

HEADER = "Authorization"
LONGEST_TOKEN = 8192  # characters
LATEST = 10.0**12
"""Unix time in seconds beyond which a token has no end that we take for one."""
LASTS = 300
"""Seconds for which a token of monday.com holds."""
LEEWAY = 60.0
"""Seconds that our clock may be off when a token ends."""


class TokenVerifier:
    """Checks the JSON Web Token (HS256) that monday.com sends, and from when to when it holds.

    https://developer.monday.com/apps/docs/advanced-concepts

    Args:
        keys: signing secrets of the app.
        tolerance: how far the time of the token may be off our clock, in seconds.
    """

    def __init__(self, keys: Sequence[bytes], tolerance: float = DEFAULT_TOLERANCE) -> None:
        self._keys = tuple(keys)
        self._tolerance = tolerance

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys, the one that signs first."""
        return self._keys

    def verify(self, request: Request, now: float) -> Verified:
        """Return if one of the keys signed the token, and the token has not ended.

        Raises:
            NotVerified: with the reason for the log.
        """
        token = request.headers.get(HEADER)
        if token is None:
            raise NotVerified(f"the header {HEADER} is missing", Cause.SIGNATURE_MISSING, place=HEADER)
        number, claims = self._match(token.strip().removeprefix("Bearer "))
        made, ends = _time(claims, "iat"), _time(claims, "exp")
        if ends is None:
            raise NotVerified("the token does not say until when it holds", Cause.TIMESTAMP_MALFORMED)
        age, late = (0.0 if made is None else now - made), now - ends
        if abs(age) > self._tolerance:
            side = "old" if age > 0 else "in the future"
            said = f"the token is {abs(age):.0f} seconds {side}, {self._tolerance:g} are allowed"
            raise NotVerified(said, Cause.CLOCK, clock_offset=age, tolerance=self._tolerance)
        if late > LEEWAY:
            said = f"the token ended {late:.0f} seconds ago, {LEEWAY:g} are allowed"
            raise NotVerified(said, Cause.CLOCK, clock_offset=late, tolerance=LEEWAY)
        return Verified(number)

    def sign(self, body: bytes, now: float, *, identifier: str | None = None) -> Headers:
        """A token as monday.com makes it; it says nothing of the body."""
        head = _encoded({"alg": "HS256", "typ": "JWT"})
        claims = _encoded({"iat": int(now), "exp": int(now) + LASTS})
        signature = hmac.digest(self._keys[0], head + b"." + claims, "sha256")
        return Headers([(HEADER, b".".join([head, claims, _unpadded(signature)]).decode())])

    def _match(self, token: str) -> tuple[int, dict[str, Any]]:
        malformed = NotVerified(f"the header {HEADER} holds no JSON Web Token", Cause.SIGNATURE_MALFORMED, place=HEADER)
        parts = token.split(".")
        if len(token) > LONGEST_TOKEN or len(parts) != 3 or not token.isascii():
            raise malformed
        head = _decoded(parts[0])
        if head is None or head.get("alg") != "HS256":
            raise malformed
        message, given = f"{parts[0]}.{parts[1]}".encode(), parts[2].encode()
        for number, key in enumerate(self._keys):
            if hmac.compare_digest(_unpadded(hmac.digest(key, message, "sha256")), given):
                claims = _decoded(parts[1])
                if claims is None:
                    raise malformed
                return number, claims
        raise NotVerified(
            f"no secret signed the token in the header {HEADER}: the secret is not the sender's, or it was changed",
            Cause.NO_MATCH,
            place=HEADER,
        )


def _unpadded(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def _encoded(part: dict[str, Any]) -> bytes:
    return _unpadded(json.dumps(part, separators=(",", ":")).encode())


def _decoded(part: str) -> dict[str, Any] | None:
    try:
        document = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _time(claims: dict[str, Any], name: str) -> float | None:
    found = claims.get(name)
    number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if number and 0 < found < LATEST else None  # type: ignore[arg-type, operator]


def _verifier(keys: tuple[bytes, ...], settings: Settings) -> TokenVerifier:
    return TokenVerifier(keys, DEFAULT_TOLERANCE if settings.tolerance is None else settings.tolerance)


monday = Provider(
    name="monday",
    title="monday.com",
    documentation="https://developer.monday.com/apps/docs/webhooks",
    family=Family.TOKEN,
    verifier=_verifier,
    signature_headers=(HEADER,),
    takes_tolerance=True,
    covers_body=False,
    event_id="event.triggerUuid",
    event_type="event.type",
    resource=(joined("event.boardId", "event.pulseId"), joined("event.boardId", "event.itemId"), "event.boardId"),
    version="event.triggerTime",
    deleted=("delete_pulse", "item_deleted"),
    unverified_handshake=monday_challenge,
    survives="event.triggerUuid names what set the webhook off, and is the same when it is sent again.",
    cautions="""The token says nothing of the event: whoever sees one request can send others until its token ends.
    Webhooks that were made in the user interface or with a personal token carry none, and are refused: make them with
    an app, and give its signing secret.""",
    unconfirmed=("That event.triggerUuid is the same at every attempt.",),
)
