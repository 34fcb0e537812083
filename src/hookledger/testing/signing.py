"""Requests as each source's provider would send them."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hookledger.errors import SetupError
from hookledger.http import Headers, Request
from hookledger.inbox import Inbox

USUAL = (("Content-Type", "application/json"), ("User-Agent", "hookledger-testing"))


def signed(
    inbox: Inbox,
    source: str,
    event: Mapping[str, Any] | Sequence[Any] | bytes | str,
    *,
    event_id: str | None = None,
    event_type: str | None = None,
    headers: Mapping[str, str] | None = None,
    at: float | None = None,
) -> Request:
    """A request that verifies.

    Args:
        inbox: whose source it is for; its first secret is what is signed with.
        source: the name of the source.
        event: the body: a document to write as JSON, or the exact bytes or text.
        event_id, event_type: for sources that have them in headers, as GitHub does.
        headers: further headers, which replace those of the same names.
        at: when it is signed, as Unix time in seconds; now if not given.

    Raises:
        SetupError: if the inbox has no such source, if it cannot be signed for with what it was configured with, as
            where the provider has a private key, or if it has id or type in the body.
        UnreadableBody: for a body that the provider could not sign, because the signature is in it.
    """
    sender = inbox.sources.get(source)
    if sender is None:
        known = ", ".join(sorted(inbox.sources)) or "none"
        raise SetupError(f"the inbox has no source {source!r}; it has: {known}")
    if sender.sign is None:
        raise SetupError(
            f"nobody but {sender.provider} can sign for the source {source!r}: its secret is a private key, or found "
            "for each request; give a captured Request, or test with a source of the same name that has a secret"
        )
    wanted = {"identifier": event_id, "event_type": event_type}
    takes = inspect.signature(sender.sign).parameters
    chosen = {name: value for name, value in wanted.items() if value is not None and name in takes}
    request = sender.signed(as_bytes(event), time.time() if at is None else at, **chosen)
    for argument, value in (("event_id", event_id), ("event_type", event_type)):
        if value is not None and value not in [sent for _, sent in request.headers]:
            raise SetupError(
                f"{argument}= changes nothing for the source {source!r}: it is in the body, so put it there"
            )
    pairs = list((headers or {}).items())
    for more in (request.headers, USUAL):
        replaced = {name.lower() for name, _ in pairs}
        pairs = [*(pair for pair in more if pair[0].lower() not in replaced), *pairs]
    return replace(request, headers=Headers(pairs))


def as_bytes(event: object) -> bytes:
    """A body as it is sent."""
    if isinstance(event, bytes):
        return event
    if isinstance(event, str):
        return event.encode()
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False, default=_refuse).encode()


def _refuse(value: object) -> object:
    raise SetupError(f"an event holds a {type(value).__name__}, which JSON has not: write it as the provider does")
