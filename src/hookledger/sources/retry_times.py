"""For how long providers send an event again by themselves.

What is forgotten sooner than that may come again as if it were new. Only automatic sending counts: a person may send an
event again much later by hand (Stripe: 30 days), and it is then known as long as its delivery is kept.
"""

from __future__ import annotations

from datetime import timedelta

DEFAULT = timedelta(days=3)
"""For providers that are not listed: as long as the longest of those that most people have."""

_HOURS = {
    # As their documentation says.
    "stripe": 72,  # https://docs.stripe.com/webhooks
    "github": 0,  # https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries
    "shopify": 4,  # 8 times
    "slack": 24,  # with delayed events, hourly for a day
    **dict.fromkeys(("standard-webhooks", "svix", "clerk", "resend"), 28),  # https://docs.svix.com/retries
    "openai": 72,
    "bigcommerce": 48,
    "sendgrid": 24,
    "mailgun": 8,
    "paypal": 72,  # 25 times
    "square": 24,  # 11 times
    "paddle": 72,  # 60 times
    "plaid": 24,
    "discord": 1,  # 10 minutes
    "hubspot": 24,  # 10 times
    "linear": 8,  # after 1 minute, 1 hour and 6 hours
    "microsoft-graph": 4,
    "segment": 4,
    "woocommerce": 0,
    # As their users tell.
    **dict.fromkeys(("adyen", "adyen-platform"), 168),
    "meta": 168,  # 36 hours for most, 7 days for WhatsApp
    "braintree": 24,
    "razorpay": 24,
    **dict.fromkeys(("mollie", "mollie-classic"), 26),
    "coinbase-commerce": 72,
    "typeform": 36,
    "calendly": 24,
    "vercel": 24,
    "mux": 24,
    "jira": 2,  # 5 times, 5 to 15 minutes apart
}


def retry_time(provider: str) -> timedelta:
    """How long after the first attempt the last automatic one may come.

    Args:
        provider: its name, as in `Source.provider`.
    """
    hours = _HOURS.get(provider)
    return DEFAULT if hours is None else timedelta(hours=hours)


def retry_time_of_name(source: str) -> timedelta:
    """The same where only the name of a source is known, which mostly begins with that of its provider.

    Args:
        source: such as "stripe" or "stripe-eu". A name that tells nothing gives the default.
    """
    parts = source.lower().replace("_", "-").replace(".", "-").split("-")
    for length in range(len(parts), 0, -1):
        hours = _HOURS.get("-".join(parts[:length]))
        if hours is not None:
            return timedelta(hours=hours)
    return DEFAULT
