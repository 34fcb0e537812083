"""The senders that hookledger knows, and the generic one.

Providers are imported when they are first used; `catalogue` lists them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hookledger.delivery import Event
    from hookledger.sources.accounts import Account
    from hookledger.sources.hmac_source import hmac_source
    from hookledger.sources.provider import Provider
    from hookledger.sources.providers.adyen import adyen
    from hookledger.sources.providers.adyen_platform import adyen_platform
    from hookledger.sources.providers.anthropic import anthropic
    from hookledger.sources.providers.asana import asana
    from hookledger.sources.providers.auth0 import auth0
    from hookledger.sources.providers.aws_sns import aws_sns
    from hookledger.sources.providers.bigcommerce import bigcommerce
    from hookledger.sources.providers.bitbucket import bitbucket
    from hookledger.sources.providers.braintree import braintree
    from hookledger.sources.providers.buildkite import buildkite
    from hookledger.sources.providers.cal_com import cal_com
    from hookledger.sources.providers.calendly import calendly
    from hookledger.sources.providers.clerk import clerk
    from hookledger.sources.providers.cloudevents import cloudevents
    from hookledger.sources.providers.coinbase_commerce import coinbase_commerce
    from hookledger.sources.providers.contentful import contentful
    from hookledger.sources.providers.customer_io import customer_io
    from hookledger.sources.providers.discord import discord
    from hookledger.sources.providers.docusign import docusign
    from hookledger.sources.providers.dropbox import dropbox
    from hookledger.sources.providers.dropbox_sign import dropbox_sign
    from hookledger.sources.providers.dwolla import dwolla
    from hookledger.sources.providers.front import front
    from hookledger.sources.providers.github import github
    from hookledger.sources.providers.gitlab import gitlab
    from hookledger.sources.providers.gocardless import gocardless
    from hookledger.sources.providers.google_calendar import google_calendar
    from hookledger.sources.providers.google_pubsub import google_pubsub
    from hookledger.sources.providers.hubspot import hubspot
    from hookledger.sources.providers.intercom import intercom
    from hookledger.sources.providers.jira import jira
    from hookledger.sources.providers.jira_connect import jira_connect
    from hookledger.sources.providers.lemon_squeezy import lemon_squeezy
    from hookledger.sources.providers.linear import linear
    from hookledger.sources.providers.loops import loops
    from hookledger.sources.providers.mailgun import mailgun
    from hookledger.sources.providers.mandrill import mandrill
    from hookledger.sources.providers.meta import meta
    from hookledger.sources.providers.microsoft_graph import microsoft_graph
    from hookledger.sources.providers.mollie import mollie
    from hookledger.sources.providers.mollie_classic import mollie_classic
    from hookledger.sources.providers.monday import monday
    from hookledger.sources.providers.mux import mux
    from hookledger.sources.providers.netlify import netlify
    from hookledger.sources.providers.notion import notion
    from hookledger.sources.providers.okta import okta
    from hookledger.sources.providers.openai import openai
    from hookledger.sources.providers.paddle import paddle
    from hookledger.sources.providers.pagerduty import pagerduty
    from hookledger.sources.providers.paypal import paypal
    from hookledger.sources.providers.plaid import plaid
    from hookledger.sources.providers.plivo import plivo
    from hookledger.sources.providers.postmark import postmark
    from hookledger.sources.providers.pusher import pusher
    from hookledger.sources.providers.razorpay import razorpay
    from hookledger.sources.providers.render import render
    from hookledger.sources.providers.replicate import replicate
    from hookledger.sources.providers.resend import resend
    from hookledger.sources.providers.sanity import sanity
    from hookledger.sources.providers.segment import segment
    from hookledger.sources.providers.sendgrid import sendgrid
    from hookledger.sources.providers.sentry import sentry
    from hookledger.sources.providers.shopify import shopify
    from hookledger.sources.providers.slack import slack
    from hookledger.sources.providers.square import square
    from hookledger.sources.providers.standard_webhooks import standard_webhooks
    from hookledger.sources.providers.stripe import stripe
    from hookledger.sources.providers.svix import svix
    from hookledger.sources.providers.telegram import telegram
    from hookledger.sources.providers.telnyx import telnyx
    from hookledger.sources.providers.trello import trello
    from hookledger.sources.providers.twilio import twilio
    from hookledger.sources.providers.twitch import twitch
    from hookledger.sources.providers.typeform import typeform
    from hookledger.sources.providers.vercel import vercel
    from hookledger.sources.providers.webflow import webflow
    from hookledger.sources.providers.wise import wise
    from hookledger.sources.providers.woocommerce import woocommerce
    from hookledger.sources.providers.workos import workos
    from hookledger.sources.providers.x import x
    from hookledger.sources.providers.zendesk import zendesk
    from hookledger.sources.providers.zoom import zoom
    from hookledger.sources.source import Source, Verified, Verifier

__all__ = [
    "Account",
    "Event",
    "Provider",
    "Source",
    "Verified",
    "Verifier",
    "adyen",
    "adyen_platform",
    "anthropic",
    "asana",
    "auth0",
    "aws_sns",
    "bigcommerce",
    "bitbucket",
    "braintree",
    "buildkite",
    "cal_com",
    "calendly",
    "clerk",
    "cloudevents",
    "coinbase_commerce",
    "contentful",
    "customer_io",
    "discord",
    "docusign",
    "dropbox",
    "dropbox_sign",
    "dwolla",
    "front",
    "github",
    "gitlab",
    "gocardless",
    "google_calendar",
    "google_pubsub",
    "hmac_source",
    "hubspot",
    "intercom",
    "jira",
    "jira_connect",
    "lemon_squeezy",
    "linear",
    "loops",
    "mailgun",
    "mandrill",
    "meta",
    "microsoft_graph",
    "mollie",
    "mollie_classic",
    "monday",
    "mux",
    "netlify",
    "notion",
    "okta",
    "openai",
    "paddle",
    "pagerduty",
    "paypal",
    "plaid",
    "plivo",
    "postmark",
    "pusher",
    "razorpay",
    "render",
    "replicate",
    "resend",
    "sanity",
    "segment",
    "sendgrid",
    "sentry",
    "shopify",
    "slack",
    "square",
    "standard_webhooks",
    "stripe",
    "svix",
    "telegram",
    "telnyx",
    "trello",
    "twilio",
    "twitch",
    "typeform",
    "vercel",
    "webflow",
    "wise",
    "woocommerce",
    "workos",
    "x",
    "zendesk",
    "zoom",
]

_ELSEWHERE = {
    "Account": "hookledger.sources.accounts",
    "Event": "hookledger.delivery",
    "Provider": "hookledger.sources.provider",
    "Source": "hookledger.sources.source",
    "Verified": "hookledger.sources.source",
    "Verifier": "hookledger.sources.source",
    "hmac_source": "hookledger.sources.hmac_source",
}
_WITH_FUNCTION = ("github", "standard_webhooks", "stripe")
"""Providers with a function of their own, named as their module, that makes the source."""


def __getattr__(name: str) -> object:
    module, attribute = _ELSEWHERE.get(name), name
    if name in _WITH_FUNCTION:
        module = f"hookledger.sources.providers.{name}"
    elif module is None and name in __all__:
        from hookledger.sources.catalogue import BUILT_IN, PACKAGE

        where, _, attribute = BUILT_IN[name.replace("_", "-")].partition(":")
        module = f"{PACKAGE}.{where}"
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(module), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
