"""Sources with code of their own, through the receiver into the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from hookledger import Inbox
from hookledger.http import Headers, Request
from hookledger.sources import adyen, aws_sns
from hookledger.sources.catalogue import provider
from tests.integration.receive.conftest import MakeReceiving
from tests.ledger import Ledger
from tests.unit.sources.certificates_made import certificate, pem
from tests.unit.sources.fetched import SNS_CERTIFICATE, sns_body

TOPIC = "arn:aws:sns:us-west-2:123456789012:MyTopic"
SUBSCRIBE = "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=t"
CONFIRMATION = {
    "Type": "SubscriptionConfirmation",
    "MessageId": "m-1",
    "Token": "t",
    "TopicArn": TOPIC,
    "Message": "You have chosen to subscribe",
    "SubscribeURL": SUBSCRIBE,
    "Timestamp": "2026-03-02T09:16:00.123Z",
}


class Amazon:
    """What is fetched of it; it may be away."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.away = False

    def __call__(self, url: str, body: bytes | None, headers: Sequence[tuple[str, str]]) -> bytes | None:
        self.asked.append(url)
        if self.away:
            raise TimeoutError
        return {SNS_CERTIFICATE: pem(certificate("sns.amazonaws.com", "sns")), SUBSCRIBE: b"<Confirmed/>"}.get(url)


def sns(document: Any, key: str = "sns") -> Request:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Request("aws-sns", "POST", Headers([("Content-Type", "text/plain")]), sns_body(body, key, version="2"))


@pytest.fixture
def amazon() -> Amazon:
    return Amazon()


def test_a_notification_is_stored_and_a_repeated_one_is_the_same(
    make_receiving: MakeReceiving, ledger: Ledger, amazon: Amazon
) -> None:
    receiving = make_receiving(inbox=Inbox(aws_sns(topics=[TOPIC], fetch=amazon)))
    sent = sns(provider("aws-sns").example().body)
    assert [receiving.post(sent).status for _ in range(2)] == [200, 200]
    assert receiving.post(sns(provider("aws-sns").example().body, "another key")).status == 401
    assert ledger.count("deliveries") == 1
    assert amazon.asked == [SNS_CERTIFICATE]


def test_a_notification_comes_again_while_amazon_is_away(
    make_receiving: MakeReceiving, ledger: Ledger, amazon: Amazon
) -> None:
    receiving = make_receiving(inbox=Inbox(aws_sns(topics=[TOPIC], fetch=amazon)))
    amazon.away = True
    answer = receiving.post(sns(provider("aws-sns").example().body))
    assert answer.status == 503
    assert Headers(answer.headers).get("retry-after")
    assert ledger.count("payloads") == 0


def test_a_subscription_is_confirmed_and_nothing_is_stored(
    make_receiving: MakeReceiving, ledger: Ledger, amazon: Amazon
) -> None:
    receiving = make_receiving(inbox=Inbox(aws_sns(topics=[TOPIC], fetch=amazon)))
    assert receiving.post(sns(CONFIRMATION)).status == 200
    assert amazon.asked == [SNS_CERTIFICATE, SUBSCRIBE]
    other = {**CONFIRMATION, "TopicArn": TOPIC.replace("MyTopic", "Other")}
    assert receiving.post(sns(other)).status == 401
    elsewhere = {**CONFIRMATION, "SubscribeURL": SUBSCRIBE.replace("amazonaws.com", "evil.example")}
    assert receiving.post(sns(elsewhere)).status == 401
    amazon.away = True
    assert receiving.post(sns(CONFIRMATION)).status == 503
    assert ledger.count("payloads") == 0


def test_notifications_of_adyen_are_deliveries_and_are_accepted_in_its_words(
    make_receiving: MakeReceiving, ledger: Ledger
) -> None:
    sample = provider("adyen").example()
    source = adyen(secrets=sample.secret)
    receiving = make_receiving(inbox=Inbox(source))
    answer = receiving.post(source.signed(sample.body, 0))
    assert (answer.status, answer.body) == (200, b"[accepted]")
    assert ledger.count("deliveries") == 2
    assert receiving.post(Request("adyen", "POST", Headers(), sample.body)).status == 401
    assert ledger.count("payloads") == 1
