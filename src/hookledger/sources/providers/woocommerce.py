"""WooCommerce. https://woocommerce.com/document/webhooks/"""

from __future__ import annotations

from hookledger.sources.describe import Family, Places, Provider, Scheme, joined
from hookledger.sources.handshakes import woocommerce_ping

HEADER = "header:X-WC-Webhook"

woocommerce = Provider(
    name="woocommerce",
    title="WooCommerce",
    documentation="https://woocommerce.com/document/webhooks/",
    family=Family.BODY_HMAC,
    # https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/includes/class-wc-webhook.php
    schemes=Scheme((Places("X-WC-Webhook-Signature"),), encoding="base64", separator=None),
    event_id=joined(
        f"{HEADER}-ID", f"{HEADER}-Topic", "id?", "arg?", "date_modified_gmt?", f"{HEADER}-Delivery-ID", by="/"
    ),
    event_type=f"{HEADER}-Topic",
    resource=joined(f"{HEADER}-Resource", "id"),
    version="date_modified_gmt",
    unverified_handshake=woocommerce_ping,
    survives="""WooCommerce sends nothing again. X-WC-Webhook-Delivery-ID alone names no delivery: it is made of the
    webhook and the second, and shared by all events of that second; with the topic and what the event is about it tells
    them apart.""",
    cautions="""Only the body is signed: topic, shop and ids are headers. WooCommerce never tries again and switches the
    webhook off after five failures: look for what was missed from time to time. A deletion brings an id and no
    version.""",
)
