"""Slack: events, commands and interactivity. https://docs.slack.dev/apis/events-api"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined
from hookledger.sources.handshakes import slack_url_verification

slack = Provider(
    name="slack",
    title="Slack",
    documentation="https://docs.slack.dev/authentication/verifying-requests-from-slack",
    family=Family.TIMED_HMAC,
    schemes=Scheme(
        (Places("X-Slack-Signature", "X-Slack-Request-Timestamp"),), prefixes=("v0=",), signed="v0:{timestamp}:{body}"
    ),
    format="json-or-form",
    event_id=("event_id", "trigger_id"),
    event_type=(joined("event.type", "event.subtype?", by="."), "command", "type"),
    resource=(
        joined("team_id", "event.channel", "event.deleted_ts"),
        joined("team_id", "event.channel", "event.message.ts"),
        joined("team_id", "event.channel", "event.ts"),
    ),
    version=("event.event_ts", "event_time"),
    version_unit="seconds",
    deleted=("message.message_deleted",),
    handshake=slack_url_verification,
    survives="""event_id is unique across workspaces and the same at each of the three retries. Commands and
    interactivity have a trigger_id, one for each time that a user does something.""",
    cautions="Commands and interactivity that want an answer of their own within 3 seconds are not for a queue.",
    verified_by=("python-slack-sdk V13", "webhookx V37"),
    unconfirmed=(
        "That commands and interactivity are never sent again.",
        "That an old secret signs nothing any more as soon as a new one is made.",
    ),
)
