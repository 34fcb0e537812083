"""Discord: Webhook Events. https://docs.discord.com/developers/events/webhook-events"""

from __future__ import annotations

from hookledger.http import Response
from hookledger.sources.describe import Family, Places, Provider, Scheme, joined
from hookledger.sources.handshakes import discord_ping

discord = Provider(
    name="discord",
    title="Discord",
    documentation="https://docs.discord.com/developers/events/webhook-events",
    family=Family.PUBLIC_KEY,
    schemes=Scheme(
        (Places("X-Signature-Ed25519", "X-Signature-Timestamp"),),
        algorithm="ed25519",
        separator=None,
        signed="{timestamp}{body}",
        tolerance_past=None,
        tolerance_future=None,
        key_encoding="hex",
    ),
    event_id=(
        "id",
        joined("application_id", "event.type", "event.timestamp", "event.data.id?", "event.data.user.id?"),
    ),
    event_type=("event.type", "type"),
    resource=("event.data.id", "event.data.user.id"),
    version="event.timestamp",
    deleted=("*_DELETE",),
    handshake=discord_ping,
    accepted=Response(204),
    survives="""Webhook Events have no id; application, type, time and the object they are about tell them apart, and
    are the same at every attempt of the ten minutes. Interactions have an id and are not sent again.""",
    cautions="""The answer is 204, as Webhook Events want it; an interaction that needs an answer of its own within 3
    seconds is not for a queue.""",
)
