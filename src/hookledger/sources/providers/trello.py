"""Trello. https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme

trello = Provider(
    name="trello",
    title="Trello",
    documentation="https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/",
    family=Family.URL_HMAC,
    # The key is the OAuth secret of the app.
    schemes=Scheme(
        (Places("X-Trello-Webhook"),), algorithm="hmac-sha1", encoding="base64", separator=None, signed="{body}{url}"
    ),
    event_id="action.id",
    event_type="action.type",
    resource=("action.data.card.id", "action.data.list.id", "model.id"),
    version="action.date",
    deleted=("deleteCard",),
    survives="action.id names the action and is the same at every attempt.",
    cautions="""No timestamp is signed, and SHA-1 is all that Trello offers. `url` is the callbackURL exactly as the
    webhook was made with it.""",
    unconfirmed=("When and how often Trello tries again.",),
)
