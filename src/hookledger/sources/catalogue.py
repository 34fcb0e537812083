"""The providers that hookledger knows: its own, and those of plugins."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from hookledger.errors import SetupError
from hookledger.sources.provider import Provider

logger = logging.getLogger(__name__)

GROUP = "hookledger.sources"
"""The group of entry points by which a package adds providers: `acme = "acme_hookledger:ACME"`."""

PACKAGE = "hookledger.sources.providers"

BUILT_IN = {
    "adyen": "adyen:adyen",
    "adyen-platform": "adyen_platform:adyen_platform",
    "anthropic": "anthropic:anthropic",
    "asana": "asana:asana",
    "auth0": "auth0:auth0",
    "aws-sns": "aws_sns:aws_sns",
    "bigcommerce": "bigcommerce:bigcommerce",
    "bitbucket": "bitbucket:bitbucket",
    "braintree": "braintree:braintree",
    "buildkite": "buildkite:buildkite",
    "cal-com": "cal_com:cal_com",
    "calendly": "calendly:calendly",
    "clerk": "clerk:clerk",
    "cloudevents": "cloudevents:cloudevents",
    "coinbase-commerce": "coinbase_commerce:coinbase_commerce",
    "contentful": "contentful:contentful",
    "customer-io": "customer_io:customer_io",
    "discord": "discord:discord",
    "docusign": "docusign:docusign",
    "dropbox": "dropbox:dropbox",
    "dropbox-sign": "dropbox_sign:dropbox_sign",
    "dwolla": "dwolla:dwolla",
    "front": "front:front",
    "github": "github:GITHUB",
    "gitlab": "gitlab:gitlab",
    "gocardless": "gocardless:gocardless",
    "google-calendar": "google_calendar:google_calendar",
    "google-pubsub": "google_pubsub:google_pubsub",
    "hubspot": "hubspot:hubspot",
    "intercom": "intercom:intercom",
    "jira": "jira:jira",
    "jira-connect": "jira_connect:jira_connect",
    "lemon-squeezy": "lemon_squeezy:lemon_squeezy",
    "linear": "linear:linear",
    "loops": "loops:loops",
    "mailgun": "mailgun:mailgun",
    "mandrill": "mandrill:mandrill",
    "meta": "meta:meta",
    "microsoft-graph": "microsoft_graph:microsoft_graph",
    "mollie": "mollie:mollie",
    "mollie-classic": "mollie_classic:mollie_classic",
    "monday": "monday:monday",
    "mux": "mux:mux",
    "netlify": "netlify:netlify",
    "notion": "notion:notion",
    "okta": "okta:okta",
    "openai": "openai:openai",
    "paddle": "paddle:paddle",
    "pagerduty": "pagerduty:pagerduty",
    "paypal": "paypal:paypal",
    "plaid": "plaid:plaid",
    "plivo": "plivo:plivo",
    "postmark": "postmark:postmark",
    "pusher": "pusher:pusher",
    "razorpay": "razorpay:razorpay",
    "render": "render:render",
    "replicate": "replicate:replicate",
    "resend": "resend:resend",
    "sanity": "sanity:sanity",
    "segment": "segment:segment",
    "sendgrid": "sendgrid:sendgrid",
    "sentry": "sentry:sentry",
    "shopify": "shopify:shopify",
    "slack": "slack:slack",
    "square": "square:square",
    "standard-webhooks": "standard_webhooks:STANDARD_WEBHOOKS",
    "stripe": "stripe:STRIPE",
    "svix": "svix:svix",
    "telegram": "telegram:telegram",
    "telnyx": "telnyx:telnyx",
    "trello": "trello:trello",
    "twilio": "twilio:twilio",
    "twitch": "twitch:twitch",
    "typeform": "typeform:typeform",
    "vercel": "vercel:vercel",
    "webflow": "webflow:webflow",
    "wise": "wise:wise",
    "woocommerce": "woocommerce:woocommerce",
    "workos": "workos:workos",
    "x": "x:x",
    "zendesk": "zendesk:zendesk",
    "zoom": "zoom:zoom",
}
"""Where each built-in provider is: module and name in it. They are imported when they are first used."""


def names() -> list[str]:
    """The names of all providers, without importing any."""
    return sorted({*BUILT_IN, *_plugins()})


def provider(name: str) -> Provider:
    """The provider of that name.

    Raises:
        SetupError: if there is none, or if the plugin that has it cannot be loaded.
    """
    wanted = name.replace("_", "-") if isinstance(name, str) else ""
    if wanted in BUILT_IN:
        module, _, attribute = BUILT_IN[wanted].partition(":")
        found: Provider = getattr(import_module(f"{PACKAGE}.{module}"), attribute)
        return found
    plugin = _plugins().get(wanted) or _plugins().get(str(name))
    if plugin is not None:
        return _load(plugin)
    near = difflib.get_close_matches(wanted, names(), n=1)
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else "`hookledger sources` lists the built-in ones and those of installed plugins"
    )
    raise SetupError(f"no provider is named {name!r}: {hint}")


def providers() -> Iterator[Provider]:
    """All providers, in the order of their names; a plugin that cannot be loaded is left out with a warning."""
    for name in names():
        try:
            yield provider(name)
        except SetupError as error:
            logger.warning("%s", error)


def _plugins() -> dict[str, EntryPoint]:
    # A built-in provider cannot be replaced by installing a package.
    return {each.name: each for each in entry_points(group=GROUP) if each.name not in BUILT_IN}


def _load(plugin: EntryPoint) -> Provider:
    try:
        loaded = plugin.load()
    except Exception as error:
        raise SetupError(
            f"the plugin {plugin.value!r} for the provider {plugin.name!r} cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not isinstance(loaded, Provider):
        raise SetupError(f"the plugin {plugin.value!r} gives no Provider, but {type(loaded).__name__}")
    if loaded.name != plugin.name:
        raise SetupError(
            f"the plugin {plugin.value!r} gives the provider {loaded.name!r} the other name {plugin.name!r}"
        )
    return loaded
