"""Requests that came to the source of one provider and bear the signature of another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hookledger.errors import Cause, NotVerified, SetupError
from hookledger.http import Request
from hookledger.sources.checks import HMACS
from hookledger.sources.provider import Provider
from hookledger.sources.scheme_verifier import SchemeVerifier
from hookledger.sources.source import Source

EVERYBODYS = frozenset({"authorization", "content-type", "user-agent", "accept"})
"""Headers that say nothing of who the sender is."""


class OtherProviders:
    """Tells whose signature a request bears.

    Args:
        providers: all that are known.
    """

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._providers = {provider.name: provider for provider in providers}

    def by_headers(self, source: Source, request: Request) -> NotVerified | None:
        """The refusal of a request whose headers are those of another provider; None if they are not.

        Args:
            source: it came to, where its signature is missing or malformed.
            request: as it was verified.
        """
        own = self._providers.get(source.provider)
        if own is not None and (_has(request, own.signature_places) or _has(request, _marks(own))):
            return None  # it is the right one, and something else is wrong with it
        scores = {
            provider: 1 + _has(request, _marks(provider))
            for provider in self._providers.values()
            if provider is not own and _has(request, provider.signature_places)
        }
        if not scores:
            return None
        most = max(scores.values())
        return _refusal(source, " or ".join([each.title for each, score in scores.items() if score == most]))

    def by_scheme(self, source: Source, verifier: Any, request: Request, now: float) -> NotVerified | None:
        """The refusal of a request that was signed with a secret of the source, as another provider does.

        Args:
            source: it came to.
            verifier: with the keys of that source.
            request, now: as they were verified.
        """
        keys = getattr(verifier, "keys", ())
        for provider in self._providers.values():
            for scheme in provider.scheme_list:
                tried = scheme.algorithm in HMACS and scheme.key_encoding == "utf-8" and not scheme.signs_url
                carriers = [places.signature for places in scheme.places if places.at.header]
                if not keys or not tried or provider.name == source.provider or not _has(request, carriers):
                    continue
                try:
                    SchemeVerifier(scheme, keys).verify(request, now)
                except NotVerified as error:
                    if error.cause is not Cause.CLOCK:
                        continue
                return _refusal(source, provider.title)
        return None


def _refusal(source: Source, named: str) -> NotVerified:
    return NotVerified(
        f"the request bears the signature of {named}: the URL of the source {source.name!r} was given to that provider",
        Cause.OTHER_PROVIDER,
        provider=named,
    )


def _has(request: Request, names: Iterable[str]) -> int:
    """How many of these headers the request has."""
    return sum(name in request.headers for name in names if name.lower() not in EVERYBODYS)


def _marks(provider: Provider) -> list[str]:
    """Headers that a provider sends besides its signature."""
    try:
        return [name for name, _ in provider.example().headers]
    except SetupError:
        return []
