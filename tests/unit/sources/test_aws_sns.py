"""Amazon SNS: what is signed, which topics may send, and subscriptions that are confirmed."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256

from hookledger.errors import Cause, KeysUnavailable, NotVerified, SetupError, Unavailable
from hookledger.http import Headers, Request
from hookledger.sources import Source, aws_sns
from hookledger.sources.keys import LOADS_A_MINUTE
from tests.unit.sources.certificates_made import certificate, pem, rsa_key
from tests.unit.sources.fetched import SNS_CERTIFICATE
from tests.unit.sources.made import NOW

TOPIC = "arn:aws:sns:us-west-2:123456789012:MyTopic"
NOTIFICATION = {
    "Type": "Notification",
    "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
    "TopicArn": TOPIC,
    "Subject": "My First Message",
    "Message": "Hello world!\nZo\u00eb",
    "Timestamp": "2012-05-02T00:54:06.655Z",
    "SigningCertURL": SNS_CERTIFICATE,
    "UnsubscribeURL": "https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe",
}
# Written out here as the documentation lists them, for these are what the signature is made of.
# https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message-verify-message-signature.html
SIGNED = (
    "Message\nHello world!\nZo\u00eb\nMessageId\n22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324\nSubject\nMy First Message\n"
    f"Timestamp\n2012-05-02T00:54:06.655Z\nTopicArn\n{TOPIC}\nType\nNotification\n"
)
SIGNED_WITHOUT_SUBJECT = SIGNED.replace("Subject\nMy First Message\n", "")
SUBSCRIBE = f"https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=2336412f37"
CONFIRMATION = {
    "Type": "SubscriptionConfirmation",
    "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
    "Token": "2336412f37",
    "TopicArn": TOPIC,
    "Message": "You have chosen to subscribe",
    "SubscribeURL": SUBSCRIBE,
    "Timestamp": "2012-04-26T20:45:04.751Z",
    "SigningCertURL": SNS_CERTIFICATE,
}


def signed_confirmation(message: dict[str, Any]) -> str:
    return (
        f"Message\n{message['Message']}\nMessageId\n{message['MessageId']}\nSubscribeURL\n{message['SubscribeURL']}\n"
        f"Timestamp\n{message['Timestamp']}\nToken\n{message['Token']}\nTopicArn\n{message['TopicArn']}\n"
        f"Type\n{message['Type']}\n"
    )


class Amazon:
    """What is fetched of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.documents: dict[str, bytes | None] = {
            SNS_CERTIFICATE: pem(certificate("sns.amazonaws.com", "sns")),
            SUBSCRIBE: b"<ConfirmSubscriptionResponse/>",
        }
        self.away = False

    def __call__(self, url: str, body: bytes | None, headers: Sequence[tuple[str, str]]) -> bytes | None:
        self.asked.append(url)
        if self.away and url == SUBSCRIBE:
            raise TimeoutError
        return self.documents.get(url)


@pytest.fixture
def amazon() -> Amazon:
    return Amazon()


@pytest.fixture
def source(amazon: Amazon) -> Source:
    return aws_sns(topics=[TOPIC], fetch=amazon)


def sent(message: dict[str, Any], signed: str, version: str = "1", key: str = "sns") -> Request:
    signature = rsa_key(key).sign(signed.encode(), PKCS1v15(), SHA1() if version == "1" else SHA256())
    full = {"SignatureVersion": version, "Signature": base64.b64encode(signature).decode(), **message}
    return Request("aws-sns", "POST", Headers([("Content-Type", "text/plain")]), json.dumps(full).encode())


def confirmation(**changed: Any) -> Request:
    message = {**CONFIRMATION, **changed}
    return sent(message, signed_confirmation(message))


def refused(source: Source, request: Request) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        source.verifier.verify(request, NOW)
    return caught.value


@pytest.mark.parametrize("version", ["1", "2"])
def test_both_versions_of_the_signature_verify(source: Source, version: str) -> None:
    source.verifier.verify(sent(NOTIFICATION, SIGNED, version), NOW)
    for absent in ({}, {"Subject": None}):
        without = {**{name: value for name, value in NOTIFICATION.items() if name != "Subject"}, **absent}
        source.verifier.verify(sent(without, SIGNED_WITHOUT_SUBJECT, version), NOW)
    other = "2" if version == "1" else "1"
    swapped = sent({**NOTIFICATION, "SignatureVersion": other}, SIGNED, version)
    assert refused(source, swapped).cause is Cause.NO_MATCH


@pytest.mark.parametrize("version", ["0", "3", "", 1, None, ["1"]])
def test_another_version_of_the_signature_is_refused(source: Source, version: Any) -> None:
    assert refused(source, sent({**NOTIFICATION, "SignatureVersion": version}, SIGNED)).cause is (
        Cause.SIGNATURE_MALFORMED
    )


@pytest.mark.parametrize("name", ["Message", "MessageId", "Subject", "Timestamp"])
def test_a_changed_field_is_refused(source: Source, name: str) -> None:
    for value in ("other", "", None, 5, ["x"]):
        refused(source, sent({**NOTIFICATION, name: value}, SIGNED))


def test_a_part_of_one_field_does_not_pass_for_another(source: Source, amazon: Amazon) -> None:
    """A line break in a field that has none would let a message be cut anew."""
    shifted = {**NOTIFICATION, "Message": "Hello world!", "MessageId": "fake\nMessageId\nreal"}
    text = SIGNED.replace("Hello world!\nZo\u00eb\nMessageId\n22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "{}")
    refused(source, sent(shifted, text.format("Hello world!\nMessageId\nfake\nMessageId\nreal")))
    assert amazon.asked == []


def test_a_message_of_another_topic_is_refused_before_anything_is_fetched(source: Source, amazon: Amazon) -> None:
    other = TOPIC.replace("123456789012", "210987654321")
    error = refused(source, sent({**NOTIFICATION, "TopicArn": other}, SIGNED.replace(TOPIC, other)))
    assert error.cause is Cause.UNKNOWN_ACCOUNT
    assert amazon.asked == []


def test_topics_may_leave_the_region_and_the_name_open() -> None:
    for topics in (TOPIC, [TOPIC], ("arn:aws:sns:*:123456789012:*",), ["arn:aws:sns:us-west-2:123456789012:My*"]):
        aws_sns(topics=topics, fetch=Amazon()).verifier.verify(sent(NOTIFICATION, SIGNED), NOW)
    for topics in (["arn:aws:sns:*:210987654321:*"], ["arn:aws:sns:*:123456789012:My"]):
        refused(aws_sns(topics=topics, fetch=Amazon()), sent(NOTIFICATION, SIGNED))


@pytest.mark.parametrize("topics", [[], "", ["*"], ["arn:aws:sns:us-west-2:*:MyTopic"], [None], ["arn:aws:sqs:x:1:y"]])
def test_topics_that_name_no_account_are_told_at_start(topics: Any) -> None:
    with pytest.raises(SetupError, match="topics="):
        aws_sns(topics=topics)


@pytest.mark.parametrize(
    "url",
    [
        "http://sns.us-west-2.amazonaws.com/a.pem",
        "https://sns.us-west-2.amazonaws.com.evil.example/a.pem",
        "https://evil.example/sns.us-west-2.amazonaws.com/a.pem",
        "https://evil.example#sns.us-west-2.amazonaws.com/a.pem",
        "https://sns.us-west-2.amazonaws.com@evil.example/a.pem",
        "https://snsxus-west-2.amazonaws.com/a.pem",
        "https://sns.us-west-2.amazonaws.com:8443/a.pem",
        "https://s3.us-west-2.amazonaws.com/a.pem",
        "https://sns.x.amazonaws.com/a.pem",
        "https://sns.us-west-2.amazonaws.com/a.pem?x",
        "https://sns.us-west-2.amazonaws.com/a",
        "https://sns.us-west-2.amazonaws.com/?Action=Subscribe&x=.pem",
        "",
        None,
        5,
        "file:///etc/passwd",
    ],
)
def test_a_certificate_of_another_host_is_not_fetched(source: Source, amazon: Amazon, url: Any) -> None:
    refused(source, sent({**NOTIFICATION, "SigningCertURL": url}, SIGNED))
    assert amazon.asked == []


def test_urls_that_are_never_fetched_use_up_nothing(source: Source) -> None:
    for number in range(LOADS_A_MINUTE + 1):
        foreign = f"https://evil.example/{number}.pem"
        refused(source, sent({**NOTIFICATION, "SigningCertURL": foreign}, SIGNED))
        refused(source, sent({**NOTIFICATION, "SigningCertURL": f"https://sns.x-1.amazonaws.com/{number}"}, SIGNED))
    source.verifier.verify(sent(NOTIFICATION, SIGNED), NOW)


def test_china_and_the_spelling_of_lambda_are_known(amazon: Amazon) -> None:
    china = "arn:aws-cn:sns:cn-north-1:123456789012:MyTopic"
    url = "https://sns.cn-north-1.amazonaws.com.cn/a.pem"
    amazon.documents[url] = amazon.documents[SNS_CERTIFICATE]
    message = {name: value for name, value in NOTIFICATION.items() if name != "SigningCertURL"}
    request = sent({**message, "TopicArn": china, "SigningCertUrl": url}, SIGNED.replace(TOPIC, china))
    aws_sns(topics=[china], fetch=amazon).verifier.verify(request, NOW)


def test_a_certificate_out_of_its_time_is_refused(source: Source) -> None:
    with pytest.raises(NotVerified, match="is not valid now"):
        source.verifier.verify(sent(NOTIFICATION, SIGNED), NOW + 30 * 365 * 86_400)


def test_raw_messages_are_not_signed_and_that_is_told(source: Source) -> None:
    raw = Request("aws-sns", "POST", Headers([("x-amz-sns-rawdelivery", "true")]), b'{"order": 17}')
    assert "switch it off" in str(refused(source, raw))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b'{"Type": []}', b'{"Type": "Notification"}', b"5"])
def test_what_is_no_message_is_refused(source: Source, body: bytes) -> None:
    refused(source, Request("aws-sns", "POST", Headers(), body))


# Subscriptions


def test_the_subscription_of_an_allowed_topic_is_confirmed(source: Source, amazon: Amazon) -> None:
    request = confirmation()
    source.verifier.verify(request, NOW)
    answer = source.handshake(request)
    assert answer is not None
    assert answer.status == 200
    assert amazon.asked == [SNS_CERTIFICATE, SUBSCRIBE]


def test_a_forged_confirmation_is_refused(source: Source, amazon: Amazon) -> None:
    for name in ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token"):
        forged = sent({**CONFIRMATION, name: "other"}, signed_confirmation(CONFIRMATION))
        assert refused(source, forged).cause is Cause.NO_MATCH
    other = {**CONFIRMATION, "TopicArn": TOPIC.replace("MyTopic", "Other")}
    assert refused(source, sent(other, signed_confirmation(other))).cause is Cause.UNKNOWN_ACCOUNT
    assert SUBSCRIBE not in amazon.asked


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/?Action=ConfirmSubscription",
        "http://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription",
        "https://sns.us-west-2.amazonaws.com.evil.example/?Action=ConfirmSubscription",
    ],
)
def test_a_confirmation_that_leads_elsewhere_is_not_fetched(source: Source, amazon: Amazon, url: str) -> None:
    request = confirmation(SubscribeURL=url)
    source.verifier.verify(request, NOW)
    with pytest.raises(NotVerified):
        source.handshake(request)
    assert amazon.asked == [SNS_CERTIFICATE]


def test_a_confirmation_that_asks_for_another_action_is_not_fetched(source: Source, amazon: Amazon) -> None:
    answer = source.handshake(confirmation(SubscribeURL=SUBSCRIBE.replace("Confirm", "Delete")))
    assert answer is not None
    assert answer.status == 400
    assert amazon.asked == []


def test_a_confirmation_that_cannot_be_made_now_is_sent_again(source: Source, amazon: Amazon) -> None:
    amazon.away = True
    with pytest.raises(Unavailable, match="could not be confirmed") as caught:
        source.handshake(confirmation())
    assert not isinstance(caught.value, KeysUnavailable)
    amazon.away, amazon.documents[SUBSCRIBE] = False, None
    answer = source.handshake(confirmation())
    assert answer is not None
    assert answer.status == 400


def test_the_end_of_a_subscription_is_an_event_and_is_not_undone(source: Source, amazon: Amazon) -> None:
    request = confirmation(Type="UnsubscribeConfirmation")
    source.verifier.verify(request, NOW)
    assert source.handshake(request) is None
    assert [event.event_type for event in source.read(request)] == ["UnsubscribeConfirmation"]
    assert amazon.asked == [SNS_CERTIFICATE]


def test_a_notification_that_speaks_of_confirmations_is_none(source: Source, amazon: Amazon) -> None:
    message = {**NOTIFICATION, "Message": "SubscriptionConfirmation"}
    assert source.handshake(sent(message, SIGNED)) is None
    for body in (b"SubscriptionConfirmation", b'["SubscriptionConfirmation"]', b'{"a": "SubscriptionConfirmation"}'):
        assert source.handshake(Request("aws-sns", "POST", Headers(), body)) is None
    assert amazon.asked == []
