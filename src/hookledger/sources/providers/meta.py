"""Meta: Graph API, WhatsApp, Messenger, Instagram. https://developers.facebook.com/docs/graph-api/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, OfItem, Option, Places, Provider, Scheme
from hookledger.sources.handshakes import meta_hub_challenge
from hookledger.sources.providers import meta_items

meta = Provider(
    name="meta",
    title="Meta (WhatsApp, Messenger, Instagram)",
    documentation="https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
    family=Family.BODY_HMAC,
    # Meta signs its JSON as it sends it, with lower-case \u escapes: no JSON that was written anew has the same bytes.
    schemes=Scheme((Places("X-Hub-Signature-256"),), prefixes=("sha256=",)),
    options=(Option("verify_token", "the text that was typed in at Meta beside the URL", required=True, secret=True),),
    items=meta_items.split,
    event_id=OfItem(meta_items.identity),
    event_type=OfItem(meta_items.kind),
    resource=OfItem(meta_items.subject),
    version=OfItem(meta_items.version),
    deleted=meta_items.is_deletion,
    probe=meta_hub_challenge,
    survives="""Meta sends no id of an event, and up to 1000 events in a request. A WhatsApp message is known by its id,
    a status by the id of its message with the status; a message of Messenger or Instagram by its mid and what happened
    to it, and what has no mid by its own content and time. Any other change is known by its content with the entry's id
    and time.""",
    cautions="""Each event is a delivery of its own, and its data is the body with that one event in it. secrets= are
    those of the app, not access tokens. WhatsApp's times have whole seconds; on equal ones a later status wins.""",
    unconfirmed=(
        "That the time of an entry, which is that of sending, is the same at every attempt.",
        "How long Meta tries: its pages say 36 hours, 7 days, and one hour until it ends the subscription.",
    ),
)
