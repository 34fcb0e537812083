"""Amazon SNS: notifications over https.

https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hookledger.errors import Cause, KeysUnavailable, NotVerified, SetupError, Unavailable, UnreadableBody
from hookledger.http import Request, Response
from hookledger.sources.certificates import SigningCertificate, read_certificates
from hookledger.sources.describe import Family, Option, Provider, Settings
from hookledger.sources.fetching import OWN_FETCH, Fetch
from hookledger.sources.keys import FetchedKeys
from hookledger.sources.public_keys import require_cryptography
from hookledger.sources.reading import read_json
from hookledger.sources.source import Verified
from hookledger.sources.unverified import decoded, malformed, unverified_object

HOSTS = (re.compile(r"sns\.[a-z0-9-]{3,}\.amazonaws\.com(\.cn)?"),)
CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
SIGNED: Mapping[str, tuple[str, ...]] = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": CONFIRMATION,
    "UnsubscribeConfirmation": CONFIRMATION,
}
OPTIONAL = ("Subject",)
FREE_TEXT = ("Message", "Subject")
DIGESTS = {"1": "SHA1", "2": "SHA256"}
SUBSCRIPTION = "SubscriptionConfirmation"


class Topics:
    """The topics that may send: the signature only says that some topic of some AWS account sent a message.

    Args:
        arns: each an ARN; a region or the name of a topic may be "*".

    Raises:
        SetupError: for what is none.
    """

    def __init__(self, arns: object) -> None:
        given = [arns] if isinstance(arns, str) else arns
        if not isinstance(given, Sequence) or not given:
            raise SetupError("topics= is empty: list the ARNs of the topics that may send")
        self._patterns = [self._pattern(each) for each in given]

    def __contains__(self, arn: str) -> bool:
        return any(pattern.fullmatch(arn) for pattern in self._patterns)

    @staticmethod
    def _pattern(arn: object) -> re.Pattern[str]:
        if not isinstance(arn, str) or not re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9*-]+:\d{12}:[A-Za-z0-9_.*-]+", arn):
            raise SetupError(
                f"topics= has {arn!r}, which is no ARN of a topic, as in 'arn:aws:sns:eu-west-1:123456789012:orders'"
            )
        return re.compile(re.escape(arn).replace(r"\*", "[A-Za-z0-9_.-]+"))


class SnsVerifier:
    """An RSA signature over some fields of the body, by a certificate that is fetched from Amazon.

    Args:
        keys: none.
        settings: with `topics`.
    """

    needs_network = True

    def __init__(self, keys: tuple[bytes, ...], settings: Settings) -> None:
        require_cryptography("Amazon SNS")
        self._topics = Topics(settings.options["topics"])
        self._fetch = fetch_from_amazon(settings)
        self._certificates = FetchedKeys(self._load)

    def verify(self, request: Request, now: float) -> Verified:
        """Return if Amazon signed the message, and it is of one of the topics.

        Raises:
            NotVerified: with the reason.
            KeysUnavailable: if the certificate cannot be had.
        """
        if request.headers.get("x-amz-sns-rawdelivery") == "true":
            raise NotVerified(
                "raw message delivery is switched on, and raw messages are not signed: switch it off",
                Cause.SIGNATURE_MISSING,
            )
        message = unverified_object(request.body)
        kind = message.get("Type")
        signed = canonical(message, SIGNED[kind]) if isinstance(kind, str) and kind in SIGNED else None
        if signed is None or "Signature" not in message:
            raise NotVerified("the body is no signed message of Amazon SNS", Cause.SIGNATURE_MISSING)
        if message["TopicArn"] not in self._topics:
            raise NotVerified(
                f"the message is of the topic {message['TopicArn'][:200]!r}, which topics= does not list",
                Cause.UNKNOWN_ACCOUNT,
            )
        version = message.get("SignatureVersion")
        digest = DIGESTS.get(version) if isinstance(version, str) else None
        if digest is None:
            raise malformed("the message is signed in a version other than 1 and 2")
        signature = decoded(message["Signature"], "the field Signature")
        url = message.get("SigningCertURL", message.get("SigningCertUrl"))
        if not isinstance(url, str):
            raise malformed("the message does not name its certificate")
        self._fetch.check(url)
        if not urlsplit(url).path.endswith(".pem") or "?" in url:
            raise NotVerified("the message names what is no certificate of Amazon SNS", Cause.KEY_NOT_TRUSTED)
        certificate = self._certificates.get(url)
        certificate.require_valid(now)
        if not certificate.signed(signature, signed, digest):  # type: ignore[arg-type]
            raise NotVerified("the signature is not that of the message: it was changed on the way", Cause.NO_MATCH)
        return Verified()

    def _load(self, url: str) -> Mapping[str, SigningCertificate]:
        document = self._fetch(url)
        return {} if document is None else {url: SigningCertificate(read_certificates(document))}


def fetch_from_amazon(settings: Settings) -> Fetch:
    """What fetches certificates and confirms subscriptions."""
    return Fetch(HOSTS, instead=settings.options.get(OWN_FETCH.name))


def canonical(message: Mapping[str, Any], fields: Sequence[str]) -> bytes:
    """What is signed of a message: the name and the value of each field, a line each.

    Args:
        message: the parsed body.
        fields: in the order that they are signed.

    Raises:
        NotVerified: if one is missing, or is no text that could stand there.
    """
    lines: list[str] = []
    for name in fields:
        value = message.get(name)
        if value is None and name in OPTIONAL:
            continue
        # A line break would let a part of one field pass for another.
        if not isinstance(value, str) or ("\n" in value and name not in FREE_TEXT):
            raise malformed(f"the message has no field {name} that could have been signed")
        lines += (name, value)
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def sns_subscription(request: Request, settings: Settings) -> Response | None:
    """Verified: `SubscribeURL` is fetched from Amazon, which confirms the subscription of a topic that may send.

    https://docs.aws.amazon.com/sns/latest/dg/SendMessageToHttp.prepare.html
    """
    if SUBSCRIPTION.encode() not in request.body:
        return None
    try:
        message = read_json(request.body)
    except UnreadableBody:
        return None
    if not isinstance(message, dict) or message.get("Type") != SUBSCRIPTION:
        return None
    url = message.get("SubscribeURL")
    if not isinstance(url, str) or parse_qs(urlsplit(url).query).get("Action") != ["ConfirmSubscription"]:
        return Response(400)
    try:
        if fetch_from_amazon(settings)(url) is None:
            return Response(400)
    except KeysUnavailable as error:
        raise Unavailable(f"the subscription could not be confirmed: {error}") from None
    return Response(200)


aws_sns = Provider(
    name="aws-sns",
    title="Amazon SNS",
    documentation="https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html",
    family=Family.FETCHED_KEY,
    verifier=SnsVerifier,
    takes_secrets=False,
    covers_body=False,
    options=(
        Option("topics", "the ARNs of the topics that may send, as a list", required=True, kind=(str, list, tuple)),
        OWN_FETCH,
    ),
    event_id="MessageId",
    event_type="Type",
    handshake=sns_subscription,
    deleted=(),
    survives="MessageId is signed, and the same when SNS tries again.",
    cautions="""Only the fields of the message are signed: whoever sees one request can send it again with another
    UnsubscribeURL. Let no topic use raw message delivery, as raw messages are not signed. Signature version 1 uses
    SHA-1; set SignatureVersion=2 for the topic. The certificate is trusted because it comes from
    sns.REGION.amazonaws.com; its chain is not checked, as Amazon publishes it without the certificates between. A
    SubscriptionConfirmation of a topic in topics= is confirmed at once; an UnsubscribeConfirmation is an event.""",
    unconfirmed=("SNS waits 15 seconds for an answer, and takes 4xx other than 429 for a permanent failure.",),
)
