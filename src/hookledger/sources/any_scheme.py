"""A provider with more than one signature scheme."""

from __future__ import annotations

from collections.abc import Sequence

from hookledger.errors import Cause, NotVerified
from hookledger.http import Request
from hookledger.sources.places import Parcel, missing
from hookledger.sources.scheme_verifier import SchemeVerifier
from hookledger.sources.source import Verified


class AnyScheme:
    """Executes several schemes. The first one whose signature a request bears decides.

    A later scheme gets its turn only if its signature is in the same place, so that a request with a wrong signature
    of the better scheme never passes by the weaker one.

    Args:
        verifiers: the better scheme first.
    """

    def __init__(self, verifiers: Sequence[SchemeVerifier]) -> None:
        self._verifiers = tuple(verifiers)

    def verify(self, request: Request, now: float) -> Verified:
        """Return if the request verifies under the scheme that it uses.

        Raises:
            NotVerified: with the reason of the scheme that came nearest.
        """
        refusals: list[NotVerified] = []
        for verifier in self._used(request):
            try:
                return verifier.verify(request, now)
            except NotVerified as error:
                refusals.append(error)
        malformed = Cause.SIGNATURE_MALFORMED
        raise next((error for error in refusals if error.cause is not malformed), refusals[0])

    @property
    def first(self) -> SchemeVerifier:
        """That of the better scheme."""
        return self._verifiers[0]

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys of the better scheme."""
        return self.first.keys

    def key_of(self, request: Request) -> bytes:
        """The key that signed a verified request."""
        for verifier in self._used(request):
            try:
                return verifier.key_of(request)
            except NotVerified:
                continue
        return self.first.keys[0]

    def with_url(self, url: str) -> AnyScheme:
        """The same for another public URL."""
        return AnyScheme([each.with_url(url) for each in self._verifiers])

    def _used(self, request: Request) -> list[SchemeVerifier]:
        decided: str | None = None
        used: list[SchemeVerifier] = []
        for verifier in self._verifiers:
            places = verifier.scheme.spelling(Parcel(request, verifier.scheme.body_format))
            if places is not None and decided in (None, places.signature):
                decided = places.signature
                used.append(verifier)
        if not used:
            raise missing([places.at for each in self._verifiers for places in each.scheme.places])
        return used
