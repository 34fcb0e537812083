"""The inboxes of worker processes of the release before: they know events of the type `note` only."""

from __future__ import annotations

from hookledger import Inbox
from tests.concurrency.hooks import note
from tests.outcomes import SHOP, inbox_of_shop
from tests.ways import WAYS, Way


def inbox_of(way: Way) -> Inbox:
    """The inbox with handlers of one kind."""
    inbox = inbox_of_shop(first_delay=0.2)
    inbox.accumulate(SHOP, "note", name="note")(way.handler(note))
    return inbox


sync = inbox_of(WAYS[0])
asynchronous = inbox_of(WAYS[2])
