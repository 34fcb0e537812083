"""Paddle Billing. https://developer.paddle.com/webhooks/overview"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, SecretRules

FIVE_SECONDS = 5.0

paddle = Provider(
    name="paddle",
    title="Paddle",
    documentation="https://developer.paddle.com/webhooks/signature-verification",
    family=Family.TIMED_HMAC,
    # While a secret is changed there are several h1; other items are skipped.
    schemes=Scheme(
        (Places("Paddle-Signature"),),
        prefixes=("h1=",),
        separator=";",
        signed="{timestamp}:{body}",
        timestamp_item="ts=",
        tolerance_past=FIVE_SECONDS,
        tolerance_future=FIVE_SECONDS,
    ),
    secret=SecretRules(foreign_prefixes=("pdl_live_apikey_", "pdl_sdbx_apikey_")),
    event_id="event_id",
    event_type="event_type",
    resource="data.id",
    version="occurred_at",
    survives="""event_id names the event and is the same at every attempt, also when a notification is replayed;
    notification_id names the sending of it to one destination.""",
    cautions="""Paddle allows a signed time to be five seconds off. That is too little if anything stands between Paddle
    and this receiver, or if its clock is not kept: give tolerance= then.""",
    verified_by=("paddle-python-sdk V27, V28",),
    unconfirmed=("That a replay has a notification_id of its own.",),
)
