"""SendGrid Event Webhook. https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

HEADER = "X-Twilio-Email-Event-Webhook"

sendgrid = Provider(
    name="sendgrid",
    title="SendGrid",
    documentation="https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/"
    "getting-started-event-webhook-security-features",
    family=Family.PUBLIC_KEY,
    schemes=Scheme(
        (Places(f"{HEADER}-Signature", f"{HEADER}-Timestamp"),),
        algorithm="ecdsa-p256-sha256",
        encoding="base64",
        separator=None,
        signed="{timestamp}{body}",
        tolerance_past=None,
        tolerance_future=None,
        key_encoding="spki",
    ),
    items="",
    event_id="sg_event_id",
    event_type="event",
    resource="sg_message_id",
    version="timestamp",
    version_unit="seconds",
    survives="""Each item of the list has its own sg_event_id; the request has none, and overlapping lists are sent
    again.""",
    cautions="The line end behind the list is signed too.",
    verified_by=("sendgrid-python V20",),
    unconfirmed=("How long SendGrid waits for an answer: 10 seconds.",),
)
