"""WorkOS. https://workos.com/docs/events/data-syncing/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

THREE_MINUTES = 180.0

workos = Provider(
    name="workos",
    title="WorkOS",
    documentation="https://workos.com/docs/events/data-syncing/webhooks",
    family=Family.TIMED_HMAC,
    # https://github.com/workos/workos-python/blob/main/src/workos/webhooks/_verification.py
    schemes=Scheme(
        (Places("WorkOS-Signature"),),
        prefixes=("v1=",),
        signed="{timestamp}.{body}",
        timestamp_item="t=",
        timestamp_unit="milliseconds",
        tolerance_past=THREE_MINUTES,
        tolerance_future=THREE_MINUTES,
    ),
    event_id="id",
    event_type="event",
    resource="data.id",
    version=("created_at", "data.updated_at"),
    survives="id names the event and is the same at every attempt; the signed timestamp is not.",
    unconfirmed=("That every event has created_at.",),
)
