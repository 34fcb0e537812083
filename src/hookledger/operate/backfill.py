"""A new handler over old deliveries: those that it matches and has no effect of are made pending once more.

It is a replay of settled deliveries (D11): the other handlers of a delivery have their effects and are not run again,
and a snapshot handler gets no more than what its watermark lets through.
"""

from __future__ import annotations

from dataclasses import replace

from hookledger.errors import SetupError
from hookledger.inbox import Inbox
from hookledger.operate.filters import Filter, State
from hookledger.operate.replay.selection import Kind, Matching, Selection


def backfill(inbox: Inbox, handler: str, filter: Filter | None = None) -> Selection:
    """The deliveries of a backfill; dead ones are left to a replay, which runs all their handlers.

    Args:
        inbox: with the handler.
        handler: its name.
        filter: what must hold of the deliveries besides, such as when they were received.

    Raises:
        SetupError: if the inbox has no such handler, or the filter is of deliveries that are not settled.
    """
    found = inbox.handlers.get(handler)
    if found is None:
        known = ", ".join(sorted(inbox.handlers)) or "none"
        raise SetupError(f"the inbox has no handler {handler!r}; it has: {known}")
    filter = filter or Filter()
    if filter.state not in (None, State.SETTLED):
        raise SetupError("a backfill is about settled deliveries: dead ones are replayed, with all their handlers")
    return Selection(replace(filter, state=None), kind=Kind.BACKFILL, matching=Matching.of(found))
