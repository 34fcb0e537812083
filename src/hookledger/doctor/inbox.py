"""Checks of the inbox, which need no database."""

from __future__ import annotations

from collections.abc import Iterator

from hookledger.doctor.finding import Finding, Severity
from hookledger.errors import SecretError
from hookledger.inbox import Inbox


def secrets(inbox: Inbox) -> Iterator[Finding]:
    """Sources: an inbox with a blank secret cannot be made, so what is left to see is whether there are any."""
    if not inbox.sources:
        yield Finding(
            Severity.ERROR,
            "secrets",
            "the inbox has no sources, so everything that is sent is answered with 404",
            "give the inbox a source, as Inbox(stripe(secrets=...))",
        )


def refused_secret(error: SecretError) -> Finding:
    """The finding for an inbox that could not be made, because a secret is blank or wrongly spelled.

    Args:
        error: which names the fault, not the secret.
    """
    return Finding(
        Severity.ERROR,
        "secrets",
        str(error).rstrip("."),
        "set the secret as the provider shows it, in the environment of receivers and workers",
    )


def handlers(inbox: Inbox) -> Iterator[Finding]:
    """Handlers: whether there are any, and sources that have none."""
    if not inbox.handlers:
        yield Finding(
            Severity.WARNING,
            "handlers",
            "the inbox has no handlers, so a worker does not start with it",
            "decorate a function with @inbox.snapshot or @inbox.accumulate, in a module that the inbox's own imports",
        )
        return
    handled = {handler.source for handler in inbox.handlers.values()}
    unhandled = [name for name in inbox.sources if name not in handled]
    if unhandled:
        yield Finding(
            Severity.NOTE,
            "handlers",
            f"no handler takes what comes from {', '.join(unhandled)}: it is settled as ignored",
            "register a handler for it within a day of the receipt, and it will be run on what was ignored",
        )
