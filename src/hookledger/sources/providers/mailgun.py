"""Mailgun. https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

TWELVE_HOURS = 12 * 3600.0

mailgun = Provider(
    name="mailgun",
    title="Mailgun",
    documentation="https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
    family=Family.IN_BODY,
    schemes=Scheme(
        (Places("body:signature.signature", "body:signature.timestamp", "body:signature.token"),),
        separator=None,
        signed="{timestamp}{id}",
        # Mailgun tries for eight hours, and nothing says that it signs anew.
        tolerance_past=TWELVE_HOURS,
        covers_body=False,
    ),
    event_id="event-data.id",
    event_type="event-data.event",
    resource="event-data.message.headers.message-id",
    version="event-data.timestamp",
    version_unit="seconds",
    survives="event-data.id names the event; the token and the timestamp of the signature are made for a request.",
    cautions="""The signature covers a timestamp and a token, not the event: whoever sees one request can forge others
    until its timestamp is twelve hours old.""",
    verified_by=("mailgun-php V21",),
    unconfirmed=("Whether a retry has a new token and timestamp.",),
)
