"""From a provider and the settings of one source to the source."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

from hookledger.errors import NotVerified, SecretError, SetupError
from hookledger.http import Headers, Request, Response
from hookledger.sources.accounts import AccountVerifier, SecretsOf
from hookledger.sources.any_scheme import AnyScheme
from hookledger.sources.checks import HMACS
from hookledger.sources.content_coding import ContentEncoding
from hookledger.sources.event_reader import EventReader, deletion
from hookledger.sources.fields import HEADER, SIGNED_ID, Joined, ProviderField
from hookledger.sources.provider import NOT_GIVEN, Provider, Reads
from hookledger.sources.scheme import Scheme, require_tolerance
from hookledger.sources.scheme_signer import SchemeSigner
from hookledger.sources.scheme_verifier import SchemeVerifier
from hookledger.sources.secrets import Secrets, list_of, read_secrets
from hookledger.sources.settings import Handshake, Settings, read_options, read_url
from hookledger.sources.source import Source, Verifier, never

FORM = "application/x-www-form-urlencoded"


def configure(
    provider: Provider,
    name: str,
    *,
    secrets: Secrets | SecretsOf,
    url: str | None,
    tolerance: float | None,
    content_encoding: ContentEncoding,
    options: Mapping[str, Any],
) -> Source:
    """The source; see `Provider.__call__`."""
    try:
        return _Configuration(provider, name, url, tolerance, options).source(secrets, content_encoding)
    except SetupError as error:
        if str(error).startswith("the source "):
            raise
        raise type(error)(f"the source {name!r}: {error}") from None


def signs(provider: Provider) -> bool:
    """Whether a source of the provider with a secret of its own can sign."""
    try:
        sample = provider.example()
        secrets: Any = sample.secret if provider.takes_secrets else NOT_GIVEN
        return provider(secrets=secrets, url=sample.url, **sample.settings).sign is not None
    except SetupError:
        # A public key is no part of a sample, and a plugin may have none.
        return hasattr(provider.verifier, "sign") or any(each.algorithm in HMACS for each in provider.scheme_list[:1])


def _takes(provider: Provider) -> str:
    """The settings of a source of the provider, for messages."""
    timestamped = provider.takes_tolerance or any(scheme.timestamped for scheme in provider.scheme_list)
    usual = {"secrets=": provider.takes_secrets, "url=": provider.signs_url, "tolerance=": timestamped}
    own = [f"{option.name}=" for option in provider.options]
    return f"it takes {', '.join([*[name for name, taken in usual.items() if taken], *own, 'content_encoding='])}"


class _Configuration:
    def __init__(
        self, provider: Provider, name: str, url: str | None, tolerance: float | None, options: Mapping[str, Any]
    ) -> None:
        self._provider = provider
        self._name = name
        self._schemes = provider.scheme_list if tolerance is None else self._tolerant(tolerance)
        if url is not None:
            url = read_url(name, url)
            if not provider.signs_url:
                raise SetupError(f"url= is not used: {provider.title} does not sign the URL; {_takes(provider)}")
        elif provider.signs_url:
            raise SetupError(
                f"url=... is needed, the public URL exactly as {provider.title} has it, because the URL is signed"
            )
        self._url = url
        self._verifier: Verifier
        known = read_options(name, provider.options, options)
        self.settings = Settings(name, url, tolerance, known, self._key_of)

    def source(self, secrets: Secrets | SecretsOf, content_encoding: ContentEncoding) -> Source:
        provider = self._provider
        self._verifier = self._verifier_with(secrets)
        reads = provider.reads or self._reads()
        sign, sign_body, sign_query = self._signing()
        return Source(
            name=self._name,
            provider=provider.name,
            verifier=self._verifier,
            read=reads.read,
            document=reads.document,
            deleted=deletion(provider.deleted),
            handshake=self._bound(provider.handshake),
            sign=sign,
            accepted=provider.accepted,
            has_resource=provider.resource is not None,
            has_version=provider.version is not None,
            sign_body=sign_body,
            sign_query=sign_query,
            probe=self._bound(provider.probe),
            unverified_handshake=self._bound(provider.unverified_handshake),
            refused_status=provider.refused_status,
            content_encoding=content_encoding,
        )

    def _tolerant(self, tolerance: float) -> tuple[Scheme, ...]:
        require_tolerance(tolerance)
        if not self._provider.takes_tolerance and not any(scheme.timestamped for scheme in self._provider.scheme_list):
            raise SetupError(
                f"tolerance= is not used: {self._provider.title} signs no timestamp; {_takes(self._provider)}"
            )
        return tuple(
            [
                replace(scheme, tolerance_past=tolerance, tolerance_future=tolerance) if scheme.timestamped else scheme
                for scheme in self._provider.scheme_list
            ]
        )

    def _verifier_with(self, secrets: Secrets | SecretsOf) -> Verifier:
        provider = self._provider
        if not provider.takes_secrets:
            if secrets is not NOT_GIVEN:
                raise SecretError(f"secrets= is not used: {provider.title} shares no secret")
            return self._own(())
        if secrets is NOT_GIVEN:
            raise SecretError(f"secrets=... is needed, as {provider.title} shows them")
        if callable(secrets):
            return AccountVerifier(self._name, secrets, self._shared)
        return self._shared(secrets)

    def _shared(self, secrets: Secrets) -> Verifier:
        """The verifier with these secrets."""
        provider, name = self._provider, self._name
        if provider.verifier is not None:
            return self._own(read_secrets(name, secrets, provider.key_encoding, provider.secret))
        if len(self._schemes) == 1:
            return SchemeVerifier(self._schemes[0], self._keys(self._schemes[0], secrets), url=self._url)
        shares = _shares(self._schemes, list_of(name, secrets))
        verifiers = [
            SchemeVerifier(
                scheme,
                [self._keys(scheme, secret)[0] for _, secret in share],
                url=self._url,
                numbers=[number for number, _ in share],
            )
            for scheme, share in zip(self._schemes, shares, strict=True)
            if share
        ]
        return verifiers[0] if len(verifiers) == 1 else AnyScheme(verifiers)

    def _keys(self, scheme: Scheme, secrets: Secrets) -> tuple[bytes, ...]:
        rules = replace(self._provider.secret, prefix=scheme.key_prefix)
        return read_secrets(self._name, secrets, scheme.key_encoding, rules, scheme.require_key)

    def _own(self, keys: tuple[bytes, ...]) -> Verifier:
        make = self._provider.verifier
        if make is None:
            raise SetupError(f"the provider {self._provider.name!r} has schemes, so it needs secrets")
        return make(keys, self.settings)

    def _key_of(self, request: Request) -> bytes:
        verifier: Any = self._verifier
        if isinstance(verifier, AccountVerifier):
            verifier = verifier.verifier_of(request)[1]
        try:
            key: bytes = verifier.key_of(request)
        except (NotVerified, AttributeError):
            key = verifier.keys[0]
        return key

    def _reads(self) -> Reads:
        provider = self._provider
        reader = EventReader(
            provider.format,
            event_id=self._signed_id if provider.event_id == SIGNED_ID else provider.event_id,
            event_type=provider.event_type,
            resource=provider.resource,
            version=provider.version,
            version_unit=provider.version_unit,
            items=provider.items,
            objects=provider.format == "json",
        )
        return Reads(reader.read, reader.document)

    def _signed_id(self, request: Request) -> str | None:
        # Read by the same choice of headers that was verified, else an unsigned id could take its place.
        for scheme in self._schemes:
            found = scheme.identifier(request)
            if found is not None:
                return found
        return None

    def _bound(self, handshake: Handshake | None) -> Callable[[Request], Response | None]:
        return never if handshake is None else partial(_answer, handshake, self.settings)

    def _signing(self) -> tuple[Callable[..., Headers] | None, Callable[[bytes, float], bytes] | None, str]:
        verifier: Any = self._verifier
        if isinstance(verifier, AccountVerifier):
            return None, None, ""
        signer: Any = verifier
        if isinstance(verifier, SchemeVerifier | AnyScheme):
            first = verifier if isinstance(verifier, SchemeVerifier) else verifier.first
            try:
                signer = SchemeSigner(first.scheme, first.keys[0], url=self._url)
            except SetupError:
                return None, None, ""
        elif not hasattr(verifier, "sign"):
            return None, None, ""
        in_body = getattr(signer, "signs_body", hasattr(signer, "sign_body"))
        sign = _Signing(self._provider, signer.sign).sign
        return sign, signer.sign_body if in_body else None, getattr(signer, "query", "")


class _Signing:
    """Signing with the headers that describe an event as well: they are what the source reads."""

    def __init__(self, provider: Provider, sign: Callable[..., Headers]) -> None:
        self._provider = provider
        self._sign = sign

    def sign(self, body: bytes, now: float, *, identifier: str | None = None, event_type: str | None = None) -> Headers:
        """Headers as the provider would send them with this body.

        Args:
            body: the exact bytes.
            now: Unix time in seconds.
            identifier, event_type: where headers carry them; by default the type is guessed, or that of the
                provider's sample, and the id is made of the type and the body.
        """
        signed = list(self._sign(body, now, identifier=identifier))
        names = {name.lower() for name, _ in signed}
        usual = self._usual_headers()
        event_id = self._provider.event_id
        whole = event_id is not None and not isinstance(event_id, Joined)
        id_header = _header_in(event_id, usual) if whole else None
        # An id that is put together from several headers is that of the sample as far as they go.
        id_parts = [] if whole else [name for name in _headers_in(event_id) if name in usual]
        type_header = _header_in(self._provider.event_type, usual)
        described: list[tuple[str, str]] = []
        chosen_type = ""
        if type_header is not None:
            guess = self._provider.guess_type
            chosen_type = event_type or (usual.get(type_header) or "" if guess is None else guess(body))
        if id_header is not None:
            made = sha256(b"%s\n%s" % (chosen_type.encode(), body)).digest()
            described.append((id_header, identifier or str(uuid.UUID(bytes=made[:16]))))
        if type_header is not None:
            described.append((type_header, chosen_type))
        described += [(name, usual.get(name) or "") for name in id_parts if name != type_header]
        content_type = self._content_type(body, usual)
        if content_type is not None:
            described.append(("Content-Type", content_type))
        return Headers([*signed, *(pair for pair in described if pair[0].lower() not in names)])

    def _content_type(self, body: bytes, usual: Headers) -> str | None:
        """That of a body, where it is not simply JSON; None otherwise."""
        if body.strip()[:1] not in (b"{", b"["):
            return FORM if self._provider.format in ("form", "json-or-form") else None
        kind = usual.get("Content-Type") or ""
        return None if kind.partition(";")[0].strip().lower() in ("", FORM, "application/json") else kind

    def _usual_headers(self) -> Headers:
        try:
            return Headers(self._provider.example().headers)
        except SetupError:
            return Headers()


def _answer(handshake: Handshake, settings: Settings, request: Request) -> Response | None:
    return handshake(request, settings)


def _headers_in(field: ProviderField | None) -> list[str]:
    """The headers that a field is read from."""
    if isinstance(field, tuple | Joined):
        return [name for part in (field.fields if isinstance(field, Joined) else field) for name in _headers_in(part)]
    if isinstance(field, str) and field.startswith(HEADER):
        return [field.removeprefix(HEADER).removesuffix("?").strip()]
    return []


def _header_in(field: ProviderField | None, usual: Headers) -> str | None:
    """The header that a field is usually read from."""
    names = _headers_in(field)
    return next((name for name in names if name in usual), names[0] if names else None)


def _shares(schemes: tuple[Scheme, ...], secrets: list[str | bytes]) -> list[list[tuple[int, str | bytes]]]:
    """Which of the secrets, with their numbers, are for which scheme."""
    shares: list[list[tuple[int, str | bytes]]] = [[] for _ in schemes]
    unprefixed = [number for number, scheme in enumerate(schemes) if not scheme.secret_prefix]
    for number, secret in enumerate(secrets):
        text = secret.decode("latin-1") if isinstance(secret, bytes | bytearray) else str(secret)
        claimed = [
            which
            for which, scheme in enumerate(schemes)
            if scheme.secret_prefix and text.startswith(scheme.secret_prefix)
        ]
        # One that fits no scheme goes to the first, which then says what is wrong with it.
        for which in claimed or unprefixed or [0]:
            shares[which].append((number, secret))
    return shares
