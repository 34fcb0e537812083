"""A source of any provider with keys of our own, and requests that its provider would send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from hookledger.delivery import Delivery
from hookledger.errors import Refused
from hookledger.http import Headers, Request
from hookledger.sources.catalogue import names
from hookledger.sources.checks import PUBLIC_KEYS
from hookledger.sources.content_coding import as_read, as_signed
from hookledger.sources.provider import Provider
from hookledger.sources.sample import Sample
from hookledger.sources.scheme import Scheme
from hookledger.sources.scheme_signer import SchemeSigner
from hookledger.sources.source import Source
from hookledger.version import read_version
from tests.unit.sources.fetched import FETCHED
from tests.unit.sources.key_pairs import key_pair

NOW = 1_700_000_000
EXPIRING = ("google-pubsub", "jira-connect")
"""Those whose tokens say themselves when they end."""
EVERY = names()
"""The providers that tests run over."""

OWN: dict[str, Callable[[Provider], Made]] = {
    "mollie-classic": lambda provider: _with_token_in_query(provider),
}
"""For a provider whose requests neither its secret nor a key pair of ours can sign: what makes them."""


@dataclass(frozen=True)
class Made:
    """A source and how its provider signs.

    Args:
        provider: which one.
        source: made with `secret`.
        secret: one of the right spelling.
        sample: the provider's own.
        sign: a body at a time, with an id where headers carry it.
    """

    provider: Provider
    source: Source
    secret: Any
    sample: Sample
    sign: Callable[[bytes, float, str | None], Request]

    @property
    def signed_headers(self) -> set[str]:
        """The headers that are covered by the signature, and its own, in lower case."""
        names = {each.lower() for each in self.provider.signature_headers}
        for scheme in self.provider.scheme_list:
            for places in scheme.places:
                names |= {str(each).lower() for each in (places.signature, places.timestamp, places.identifier)}
        return names

    @property
    def covers_body(self) -> bool:
        """Whether a changed body is noticed."""
        schemes = self.provider.scheme_list[:1]
        return self.provider.covers_body and all(each.covers_body and each.algorithm != "token" for each in schemes)

    @property
    def timestamped(self) -> bool:
        """Whether the time of a request is checked."""
        schemes = self.provider.scheme_list
        expires = self.provider.takes_tolerance or self.provider.name in EXPIRING
        return expires or any(each.timestamped and each.tolerance_past for each in schemes)

    def request(self, now: float = NOW, body: bytes | None = None, method: str = "POST") -> Request:
        """The sample, or another body with its headers, as the provider would send it."""
        identifier = self.sample.events[0].event.event_id if self.sample.events else None
        signed = self.sign(self.sample.body if body is None else body, now, identifier)
        return replace(signed, method=method, headers=self._with_the_samples(signed.headers))

    def _with_the_samples(self, signed: Headers) -> Headers:
        names = {name.lower() for name, _ in signed}
        return Headers([*signed, *(pair for pair in self.sample.headers if pair[0].lower() not in names)])


def own_settings(provider: Provider) -> dict[str, Any]:
    """What makes a source fetch keys of ours."""
    return FETCHED[provider.name](0).settings if provider.name in FETCHED else {}


def configured(provider: Provider, secret: Any, **settings: Any) -> Source:
    """A source with the settings of the sample."""
    sample = provider.example()
    known = {"url": sample.url, **sample.settings, **own_settings(provider), **settings}
    return provider(secrets=secret, **known) if provider.takes_secrets else provider(**known)


def make(provider: Provider, seed: int = 0) -> Made:
    """A source of a provider, the same for the same seed."""
    if provider.name in OWN:
        return OWN[provider.name](provider)
    sample = provider.example()
    if provider.name in FETCHED:
        signer = FETCHED[provider.name](seed)
        source = configured(provider, f"no secret {seed}", **signer.settings)
        return Made(
            provider, source, f"no secret {seed}", sample, lambda body, now, _: signer.sign(source.name, body, now)
        )
    scheme = provider.scheme_list[0] if provider.scheme_list else None
    if scheme is not None and scheme.algorithm in PUBLIC_KEYS:
        return _with_key_pair(provider, scheme, sample, seed)
    secret = _other(sample.secret, seed)
    source = configured(provider, secret)
    assert source.sign is not None, f"say in OWN how requests of {provider.name} are signed"
    return Made(
        provider,
        source,
        secret,
        sample,
        lambda body, now, identifier: source.signed(body, now, **({"identifier": identifier} if identifier else {})),
    )


def _with_key_pair(provider: Provider, scheme: Scheme, sample: Sample, seed: int) -> Made:
    pair = key_pair(scheme.algorithm, scheme.key_encoding, scheme.encoding, seed)
    source = configured(provider, scheme.key_prefix + pair.public)
    signer = SchemeSigner(scheme, b"", url=sample.url, signer=pair.sign)

    def sign(body: bytes, now: float, identifier: str | None) -> Request:
        return Request(source.name, "POST", signer.sign(body, now, identifier=identifier), body)

    return Made(provider, source, scheme.key_prefix + pair.public, sample, sign)


def _with_token_in_query(provider: Provider) -> Made:
    sample = provider.example()
    source = configured(provider, sample.secret)
    name = provider.scheme_list[0].places[0].signature.removeprefix("query:")

    def sign(body: bytes, now: float, identifier: str | None) -> Request:
        return Request(source.name, "POST", Headers(), body, query=urlencode({name: sample.secret}))

    return Made(provider, source, sample.secret, sample, sign)


def _other(secret: str, seed: int) -> str:
    """Another secret of the same spelling."""
    if seed == 0:
        return secret
    middle = len(secret) // 2 + 1
    return secret[:middle] + ("1" if secret[middle] != "1" else "2") + secret[middle + 1 :]


def verifies(source: Source, request: Request, now: float = NOW) -> bool:
    try:
        source.verifier.verify(as_signed(source.content_encoding, request, 10**6), now)
    except Refused:
        return False
    return True


def deliveries(source: Source, request: Request) -> list[Delivery]:
    read = as_read(source.content_encoding, as_signed(source.content_encoding, request, 10**6), 10**6)
    return [
        Delivery(
            id=position + 1,
            source=source.name,
            event_id=event.event_id or "digest",
            event_type=event.event_type,
            resource=event.resource,
            version=read_version(event.version),
            received_at=datetime(2023, 11, 14, tzinfo=UTC),
            position=position,
            attempt=1,
            body=request.body,
            headers_json=request.headers.to_json(),
            read_document=source.document,
            is_deleted=source.deleted,
        )
        for position, event in enumerate(source.read(read))
    ]
