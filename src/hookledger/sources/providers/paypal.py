"""PayPal: events of payments. https://developer.paypal.com/api/rest/webhooks/rest/"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from urllib.parse import urlsplit

from hookledger.errors import Cause, NotVerified
from hookledger.http import Request
from hookledger.sources.certificates import (
    SigningCertificate,
    read_authorities,
    read_certificates,
    system_authorities,
)
from hookledger.sources.describe import Family, Option, Provider, Settings
from hookledger.sources.fetching import OWN_FETCH, Fetch
from hookledger.sources.keys import FetchedKeys
from hookledger.sources.places import wire
from hookledger.sources.public_keys import require_cryptography
from hookledger.sources.source import Verified
from hookledger.sources.unverified import decoded, malformed

DOMAIN = "paypal.com"
CERTIFICATES = "/v1/notifications/certs/"
ALGORITHM = "SHA256withRSA"
ID, TIME, SIGNATURE, CERTIFICATE, ALGORITHM_NAME = (
    "PAYPAL-TRANSMISSION-ID",
    "PAYPAL-TRANSMISSION-TIME",
    "PAYPAL-TRANSMISSION-SIG",
    "PAYPAL-CERT-URL",
    "PAYPAL-AUTH-ALGO",
)
HEADERS = (ID, TIME, SIGNATURE, CERTIFICATE, ALGORITHM_NAME)


class PaypalVerifier:
    """An RSA signature over the transmission, the id of the webhook, and the CRC-32 of the body.

    https://developer.paypal.com/api/rest/webhooks/rest/#link-verifywebhooksignature

    Args:
        keys: none.
        settings: with `webhook_id`.
    """

    needs_network = True

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        require_cryptography("PayPal")
        options = settings.options
        self._webhook_id = str(options["webhook_id"]).encode()
        given = options.get("authorities")
        self._authorities = system_authorities() if given is None else read_authorities(given)
        self._fetch = Fetch((f"*.{DOMAIN}",), instead=options.get(OWN_FETCH.name))
        self._certificates = FetchedKeys(self._load)

    def verify(self, request: Request, now: float) -> Verified:
        """Return if PayPal signed the request for this webhook.

        Raises:
            NotVerified: with the reason.
            KeysUnavailable: if the certificate cannot be had.
        """
        given = {name: request.headers.get(name) for name in HEADERS}
        for name, value in given.items():
            if value is None:
                raise NotVerified(f"the header {name} is missing", Cause.SIGNATURE_MISSING, place=name)
        transmission, at, signature, url, algorithm = (given[name] or "" for name in HEADERS)
        if algorithm != ALGORITHM:
            raise malformed(f"the header {ALGORITHM_NAME} is not {ALGORITHM}")
        if "|" in transmission or "|" in at:
            raise malformed(f"the header {ID} or {TIME} holds what separates them")
        written = decoded(signature, f"the header {SIGNATURE}")
        self._fetch.check(url)
        if not urlsplit(url).path.startswith(CERTIFICATES):
            raise NotVerified("the request names what is no certificate of PayPal's webhooks", Cause.KEY_NOT_TRUSTED)
        certificate = self._certificates.get(url)
        certificate.require_valid(now)
        certificate.require_trusted(DOMAIN, self._authorities, now)
        if not certificate.signed(written, message(transmission, at, self._webhook_id, request.body), "SHA256"):
            raise NotVerified(
                "the signature does not match: webhook_id= is not that of the sender, or the body was changed",
                Cause.NO_MATCH,
                place=SIGNATURE,
            )
        return Verified()

    def _load(self, url: str) -> Mapping[str, SigningCertificate]:
        document = self._fetch(url)
        return {} if document is None else {url: SigningCertificate(read_certificates(document))}


def message(transmission: str, at: str, webhook_id: bytes, body: bytes) -> bytes:
    """What is signed.

    Args:
        transmission, at: the headers with the id and the time of the transmission.
        webhook_id: of the webhook.
        body: the exact bytes.
    """
    return b"|".join((wire(transmission), wire(at), webhook_id, str(zlib.crc32(body)).encode()))


paypal = Provider(
    name="paypal",
    title="PayPal",
    documentation="https://developer.paypal.com/api/rest/webhooks/rest/",
    family=Family.FETCHED_KEY,
    verifier=PaypalVerifier,
    takes_secrets=False,
    options=(
        Option("webhook_id", "the id of the webhook, as PayPal's dashboard shows it", required=True),
        Option("authorities", "the authorities to trust in place of this system's, as a PEM file's path or text"),
        OWN_FETCH,
    ),
    signature_headers=HEADERS,
    event_type="event_type",
    resource="resource.id",
    version=("resource.update_time", "create_time"),
    survives="""The id of the event (WH-...) is in the body, and the same when PayPal sends it again;
    PAYPAL-TRANSMISSION-ID is another one for every transmission.""",
    cautions="""The body is bound by its CRC-32 alone, for which another body is easily found by whoever has seen a
    transmission: where money depends on an event, read the resource anew from PayPal's API. Events that the simulator
    of the dashboard makes have the webhook id WEBHOOK_ID.""",
    unconfirmed=(
        "The published vector of PayPal's SDK (V39) cannot be checked: its certificate is no longer to be had. The "
        "message that it signs is a test.",
        "That the document at PAYPAL-CERT-URL holds the certificates between as well; if not, authorities= has to.",
    ),
)
