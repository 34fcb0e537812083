"""Asana. https://developers.asana.com/docs/webhooks-guide"""

from __future__ import annotations

from collections.abc import Callable

from hookledger.sources.describe import Family, Option, Places, Provider, Scheme, joined
from hookledger.sources.handshakes import asana_hook_secret

asana = Provider(
    name="asana",
    title="Asana",
    documentation="https://developers.asana.com/docs/webhooks-guide",
    family=Family.BODY_HMAC,
    # The secret of each webhook comes while it is being made: give secrets= as a function that looks it up.
    schemes=Scheme((Places("X-Hook-Signature"),), separator=None),
    items="events",
    event_id=joined(
        "action",
        "resource.gid",
        "created_at",
        "parent.gid?",
        "user.gid?",
        "change.field?",
        "change.action?",
        "change.added_value.gid?",
        "change.removed_value.gid?",
    ),
    event_type=joined("resource.resource_type", "action", by="."),
    resource="resource.gid",
    version="created_at",
    unverified_handshake=asana_hook_secret,
    options=(
        Option(
            "on_secret",
            "a function of the request and the secret that keeps it and returns True if this webhook is being made",
            kind=Callable,
        ),
    ),
    survives="""No id is sent; the action, what it is about, by whom and when, and the field that it changed are the
    same when a request is sent again.""",
    cautions="""Anybody can send a secret: on_secret must return True only for the URL of a webhook that you are making
    right now, told apart by its query. No timestamp is signed. Events name what changed and do not hold it, and Asana
    delivers at most once: look for what was missed from time to time.""",
    unconfirmed=("A heartbeat without events every 8 hours.", "That an answer of 410 deletes the webhook."),
)
