"""A short history of a shop, worked through by a real worker: one delivery of each kind that a person asks about."""

from __future__ import annotations

from sqlalchemy import Connection

from hookledger import Delivery, Inbox, Reject
from tests.outcomes import SHOP, Ledger, document, inbox_of_shop, shop
from tests.ways import WAYS

OTHER = "other-shop"
BROKEN = "the stock is broken"


def shop_inbox() -> Inbox:
    """An inbox whose snapshot handler `save` keeps things, and whose accumulate handler `count` fails for events that
    say so, for good or for now."""
    inbox = inbox_of_shop(first_delay=1000)

    def save(delivery: Delivery, tx: Connection) -> dict[str, str]:
        return {"event": delivery.event_id}

    def count(delivery: Delivery, tx: Connection) -> None:
        if delivery.data.get("fails") == "for good":
            raise Reject(BROKEN)
        if delivery.data.get("fails") == "for now":
            raise ValueError(BROKEN)

    inbox.snapshot(SHOP, "thing.*", name="save")(save)
    inbox.accumulate(SHOP, "order.*", name="count")(count)
    return inbox


def work(ledger: Ledger) -> None:
    """Work on all that is due."""
    WAYS[0].work(ledger.engine.url.render_as_string(hide_password=False), shop_inbox())


def live_through(ledger: Ledger) -> dict[str, int]:
    """Let it happen; the ids of the deliveries by event."""
    found: dict[str, int] = {}

    def send(*documents: dict[str, object], source: str = SHOP) -> None:
        ids = ledger.record(*documents, source=shop(source))
        found.update(zip([str(each["id"]) for each in documents], ids, strict=True))

    send(document("t2", "r1", 2), document("t3", "r1", 3), document("x1", type="other.thing"))
    work(ledger)
    send(document("t1", "r1", 1), document("t4", "r1", 4))
    work(ledger)
    send(document("t0", "r1", 0))
    work(ledger)
    send(document("o1", type="order.paid", note="Käse 100%"))
    send(document("o2", type="order.paid", fails="for good"), document("o3", type="order.sent", fails="for now"))
    work(ledger)
    send(document("w1", type="order_paid"), source=OTHER)
    return found
