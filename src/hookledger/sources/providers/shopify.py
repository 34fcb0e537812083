"""Shopify. https://shopify.dev/docs/apps/build/webhooks"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined

shopify = Provider(
    name="shopify",
    title="Shopify",
    documentation="https://shopify.dev/docs/apps/build/webhooks/subscribe/https",
    family=Family.BODY_HMAC,
    # The newer Events deliveries have the same headers without X-.
    schemes=Scheme((Places("X-Shopify-Hmac-SHA256"), Places("shopify-hmac-sha256")), encoding="base64"),
    event_id=("header:X-Shopify-Webhook-Id", "header:shopify-webhook-id"),
    event_type=("header:X-Shopify-Topic", joined("header:shopify-topic", "header:shopify-action?")),
    resource="id",
    version=("updated_at", "header:X-Shopify-Triggered-At"),
    deleted=("*/delete",),
    survives="""X-Shopify-Webhook-Id stays the same over the attempts of one delivery. X-Shopify-Event-Id is shared by
    the deliveries of several subscriptions, and Shopify is dropping it.""",
    cautions="""Only the body is signed. Topic, shop and id are headers: do not take the shop from them without checking
    that it is one that installed your app. For a day after the client secret is changed give both secrets. What is sent
    by hand from a shop's notification settings is signed with the shop's own secret, and refused.""",
    unconfirmed=("The format of shopify-topic and shopify-action of Events deliveries.",),
)
