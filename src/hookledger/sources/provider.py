"""Providers as data: how one kind of sender signs, and where it says what; `provider(secrets=...)` makes a source."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hookledger.delivery import Delivery, Event
from hookledger.errors import SetupError
from hookledger.http import Request, Response
from hookledger.sources.accounts import SecretsOf
from hookledger.sources.content_coding import ContentEncoding
from hookledger.sources.event_reader import Deleted
from hookledger.sources.fields import Format, ProviderField, in_words
from hookledger.sources.items import Split
from hookledger.sources.reading import VersionUnit
from hookledger.sources.sample import Sample, read_sample
from hookledger.sources.scheme import Scheme
from hookledger.sources.secrets import PLAIN, KeyEncoding, SecretRules, Secrets
from hookledger.sources.settings import Handshake, Option, Settings
from hookledger.sources.source import ACCEPTED, REFUSED_STATUS, Source, Verifier

_PROVIDER_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
NOT_GIVEN: Any = object()
"""The secrets of a source that was given none; None is what a missing environment variable gives."""


class Family(enum.Enum):
    """How a provider shows that it is the sender."""

    BODY_HMAC = "HMAC over the body"
    TIMED_HMAC = "HMAC over a timestamp and the body"
    STANDARD_WEBHOOKS = "Standard Webhooks"
    URL_HMAC = "HMAC over the public URL and the body"
    PUBLIC_KEY = "signature checked with a public key"
    FETCHED_KEY = "signature checked with a key that is fetched"
    TOKEN = "shared token"  # noqa: S105
    IN_BODY = "signature in the body"
    CANONICAL_REQUEST = "HMAC over a canonical form of the request"


class Reads(NamedTuple):
    """Reading by code of a provider's own.

    Args:
        read: gives the events of a verified request; raises UnreadableBody if it cannot.
        document: gives the document of one delivery.
    """

    read: Callable[[Request], Sequence[Event]]
    document: Callable[[Delivery], Any]


MakeVerifier = Callable[[tuple[bytes, ...], Settings], Verifier]
"""Makes the verifier of a source from its keys and settings. If it has a method
`sign(body, now, *, identifier=None)`, requests can be signed with it, and with `sign_body(body, now)` their bodies."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Provider:
    """One kind of sender.

    A signature that `schemes` can describe needs no code; fields that a path can describe need none either.

    Args:
        name: in lower case with hyphens; it is also the usual name of a source.
        title: as the provider writes it.
        documentation: the https address of the page that describes its webhooks.
        family: how it shows that it is the sender.
        survives: what stays the same when it sends an event again, and hence why the event id is what it is.
        schemes: how it signs; if several, the better one first. A scheme whose secrets begin with a prefix takes
            those; the others take the rest.
        verifier: or code of its own; with `key_encoding` for its secrets.
        secret: how its secrets are spelled.
        takes_secrets: False for a provider whose keys are fetched and which shares nothing secret.
        needs_url: True if `verifier` signs the public URL of the source.
        takes_tolerance: True if `verifier` checks a timestamp by `settings.tolerance`.
        covers_body: False if `verifier` leaves parts of the body unsigned; `cautions` then says which, and what that
            means.
        options: settings that only this provider has.
        format, event_id, event_type, resource, version, version_unit: what the body is, and where the fields of an
            event are; None where the provider gives none.
        deleted: which events say that a resource is gone.
        items: where the list of events is, for requests that carry many, or a function of the parsed body that gives
            them; fields then lead into an item.
        reads: or code of its own; the fields are then for people to read.
        probe, handshake, unverified_handshake: what it asks of a URL; see `Source`.
        accepted, refused_status, content_encoding: see `Source`.
        signature_headers: the headers that tell its requests, if `verifier` is code of its own.
        guess_type: the event type of a body that we sign ourselves, where a header carries the type.
        cautions: what the signature does not cover, and other things to know before relying on it.
        verified_by: whose test vectors it was verified with; empty if from documentation alone.
        unconfirmed: statements that no source confirmed.
        sample: a request; a built-in provider has it in `samples/NAME.json`.

    Raises:
        SetupError: for a description that is not complete.
    """

    name: str
    title: str
    documentation: str
    family: Family
    survives: str
    schemes: Scheme | tuple[Scheme, ...] = ()
    verifier: MakeVerifier | None = None
    key_encoding: KeyEncoding = "utf-8"
    secret: SecretRules = PLAIN
    takes_secrets: bool = True
    needs_url: bool = False
    takes_tolerance: bool = False
    covers_body: bool = True
    options: tuple[Option, ...] = ()
    format: Format = "json"
    event_id: ProviderField | None = "id"
    event_type: ProviderField | None = "type"
    resource: ProviderField | None = None
    version: ProviderField | None = None
    version_unit: VersionUnit | None = None
    deleted: Deleted = ("*.deleted",)
    items: str | tuple[str, ...] | Split | None = None
    reads: Reads | None = None
    probe: Handshake | None = None
    handshake: Handshake | None = None
    unverified_handshake: Handshake | None = None
    accepted: Response = ACCEPTED
    refused_status: int = REFUSED_STATUS
    content_encoding: ContentEncoding = "none"
    signature_headers: tuple[str, ...] = ()
    guess_type: Callable[[bytes], str] | None = None
    cautions: str = ""
    verified_by: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    sample: Sample | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.schemes, Scheme):
            object.__setattr__(self, "schemes", (self.schemes,))
        for prose in ("survives", "cautions"):
            object.__setattr__(self, prose, " ".join(getattr(self, prose).split()))
        if not _PROVIDER_NAME.fullmatch(self.name):
            raise SetupError(f"the provider name {self.name!r} must be lower-case words with hyphens, as in 'acme-pay'")
        if bool(self.schemes) == (self.verifier is not None):
            raise SetupError(f"the provider {self.name!r} needs schemes=, or a verifier= of its own, and not both")
        for what in ("title", "documentation", "survives"):
            if not getattr(self, what).strip():
                raise SetupError(f"the provider {self.name!r} needs {what}=, for those who rely on it")
        if not self.documentation.startswith("https://"):
            raise SetupError(f"the provider {self.name!r}: documentation= must be an https address")

    def __call__(
        self,
        name: str | None = None,
        *,
        secrets: Secrets | SecretsOf = NOT_GIVEN,
        url: str | None = None,
        tolerance: float | None = None,
        content_encoding: ContentEncoding | None = None,
        **options: Any,
    ) -> Source:
        """A source of this provider.

        Args:
            name: of the source; the provider's if not given.
            secrets: one, several while they are changed, or a function of the request (see `accounts`).
            url: the public URL of the source, exactly as the provider has it, where it is signed.
            tolerance: how far a signed timestamp may be off our clock, either way, in seconds; the provider's
                own limit if not given.
            content_encoding: what a Content-Encoding means, if not what the provider is known to do.
            options: the provider's own settings.

        Raises:
            SecretError: for a secret that cannot be the provider's.
            SetupError: for another setting that could not work.
        """
        from hookledger.sources.configure import configure

        return configure(
            self,
            self.name if name is None else name,
            secrets=secrets,
            url=url,
            tolerance=tolerance,
            content_encoding=content_encoding or self.content_encoding,
            options=options,
        )

    source = __call__

    @property
    def scheme_list(self) -> tuple[Scheme, ...]:
        """The schemes as a tuple."""
        return (self.schemes,) if isinstance(self.schemes, Scheme) else self.schemes

    @property
    def signs_url(self) -> bool:
        """Whether a source needs `url=`."""
        return self.needs_url or any(scheme.signs_url for scheme in self.scheme_list)

    @property
    def signature_places(self) -> tuple[str, ...]:
        """The names of the headers that tell a request of this provider."""
        shown = [places.at for scheme in self.scheme_list for places in scheme.places]
        return tuple(dict.fromkeys([each.header for each in shown if each.header] + list(self.signature_headers)))

    @property
    def can_be_sent(self) -> bool:
        """Whether requests can be signed with a secret that is shared with the provider."""
        from hookledger.sources.configure import signs

        return signs(self)

    def example(self) -> Sample:
        """Its sample.

        Raises:
            SetupError: if it has none.
        """
        if self.sample is not None:
            return self.sample
        try:
            return read_sample(self.name)
        except FileNotFoundError:
            raise SetupError(f"the provider {self.name!r} has no sample: give it sample=Sample(...)") from None

    def described(self) -> dict[str, str]:
        """The provider in words, for `hookledger sources` and the table in the documentation."""
        handshakes = [each for each in (self.probe, self.handshake, self.unverified_handshake) if each is not None]
        return {
            "name": self.name,
            "title": self.title,
            "documentation": self.documentation,
            "family": self.family.value,
            "event_id": in_words(self.event_id),
            "survives": self.survives,
            "event_type": in_words(self.event_type),
            "resource": in_words(self.resource),
            "version": in_words(self.version),
            "batch": "yes" if self.items is not None else "",
            "handshakes": ", ".join(_name_of(each) for each in handshakes),
            "verified_by": ", ".join(self.verified_by) or "documentation only",
            "unconfirmed": " ".join(self.unconfirmed),
            "cautions": self.cautions,
        }


def _name_of(handshake: Handshake) -> str:
    """A handshake as people read it."""
    function = getattr(handshake, "func", handshake)
    return str(getattr(function, "__name__", type(function).__name__)).strip("_").replace("_", " ")
