"""What the demo's senders send: events shaped like Stripe's and GitHub's, out of order, some of them twice.

The same seed gives the same traffic, byte for byte. Nothing of the product is used here: the signatures are
made as the providers describe them.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

STRIPE_SECRET = "whsec_demo0123456789abcdefghijklmnop"  # noqa: S105 - guards a throw-away receiver on 127.0.0.1
GITHUB_SECRET = "a secret of the demo"  # noqa: S105 - likewise

FIRST_MOMENT = 1_577_836_800
"""2020-01-01T00:00:00Z, when the first event is said to have happened."""

EVENTS_PER_RESOURCE = 8
COPIES_IN_EVENTS = 0.2
TIED = 0.15
"""How often a resource changes twice within one second, which is all that the providers' times tell."""

FAR_LATE = 0.05
"""How many events come long after their turn; all others only leave their turn to a few neighbours."""


class Kind(enum.Enum):
    """A kind of event, by what it is about."""

    CUSTOMER = "customer"
    CHARGE = "charge"
    PULL_REQUEST = "pull_request"
    PUSH = "push"

    @property
    def source(self) -> str:
        """Who sends it."""
        return "stripe" if self in (Kind.CUSTOMER, Kind.CHARGE) else "github"

    @property
    def is_snapshot(self) -> bool:
        """Whether it carries the whole state of its resource; else it is a fact to add."""
        return self in (Kind.CUSTOMER, Kind.PULL_REQUEST)


SHARES = {Kind.CUSTOMER: 40, Kind.CHARGE: 25, Kind.PULL_REQUEST: 25, Kind.PUSH: 10}


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Args:
        kind: what it is about.
        event_id: the same in every copy.
        event_type: as the source names it: "customer.updated", "pull_request.opened", "push".
        resource: as the source names it: "cus_000017", "pull_request/31"; a repository for a push.
        moment: Unix time in seconds; what orders snapshots.
        number: what it says: the new balance of a customer, the amount of a charge, the additions of a pull
            request, the commits of a push. Those of the snapshots of one resource all differ.
        deleted: whether the resource is gone.
    """

    kind: Kind
    event_id: str
    event_type: str
    resource: str
    moment: int
    number: int
    deleted: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by: source and event id."""
        return self.kind.source, self.event_id

    def body(self) -> bytes:
        """The bytes, the same every time."""
        return json.dumps(_DOCUMENTS[self.kind](self), separators=(",", ":")).encode()

    def headers(self, body: bytes, now: float) -> dict[str, str]:
        """The headers that its sender adds.

        Args:
            body: of this event.
            now: Unix time in seconds, for senders that sign it.
        """
        if self.kind.source == "stripe":
            # https://docs.stripe.com/webhooks#verify-manually
            seconds = str(int(now))
            signed = hmac.new(STRIPE_SECRET.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
            return {"User-Agent": "Stripe/1.0", "Stripe-Signature": f"t={seconds},v1={signed}"}
        # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
        signed = hmac.new(GITHUB_SECRET.encode(), body, hashlib.sha256).hexdigest()
        return {
            "User-Agent": "GitHub-Hookshot/0000000",
            "X-GitHub-Delivery": self.event_id,
            "X-GitHub-Event": self.event_type.partition(".")[0],
            "X-Hub-Signature-256": f"sha256={signed}",
        }


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is sent.

    Args:
        events: each once, in the order in which they happened.
        order: as they are sent; about 20 % of the events twice, some so close that both are under way at once.
    """

    events: tuple[Event, ...]
    order: tuple[Event, ...]

    @property
    def copies(self) -> int:
        """How many of the requests are copies."""
        return len(self.order) - len(self.events)


def make_traffic(count: int, seed: int = 1) -> Traffic:
    """The traffic of so many events.

    Args:
        count: of different events, 1 or more.
        seed: another one gives other traffic.
    """
    random = Random(seed)  # noqa: S311 - the traffic is to be the same each time
    events = tuple(_happen(count, random))
    return Traffic(events, tuple(_send_order(events, random)))


def _happen(count: int, random: Random) -> Iterator[Event]:
    kinds, weights = list(SHARES), list(SHARES.values())
    resources = {kind: max(1, count * weight // 100 // EVENTS_PER_RESOURCE) for kind, weight in SHARES.items()}
    latest: dict[tuple[Kind, int], int] = {}
    gone: set[int] = set()
    for happened in range(count):
        kind = random.choices(kinds, weights)[0]
        resource = 1 + _pick(resources[kind], happened / count, random)
        before = latest.get((kind, resource))
        tied = before is not None and random.random() < TIED
        # One tick for each event of all resources, so that only ties share a second.
        moment = before if tied and before is not None else FIRST_MOMENT + happened
        latest[kind, resource] = moment
        identity = uuid.UUID(int=random.getrandbits(128), version=4)
        if kind is Kind.CUSTOMER:
            deleted = before is not None and resource not in gone and random.random() < 1 / EVENTS_PER_RESOURCE
            action = "deleted" if deleted else "created" if before is None else "updated"
            gone |= {resource} if deleted else set()
            # A customer that was deleted and is written to again: rare, and the newer one must win.
            yield Event(
                kind, f"evt_{identity.hex}", f"customer.{action}", f"cus_{resource:06}", moment, happened, deleted
            )
        elif kind is Kind.CHARGE:
            amount = random.randrange(100, 100_000)
            yield Event(kind, f"evt_{identity.hex}", "charge.succeeded", f"cus_{resource:06}", moment, amount)
        elif kind is Kind.PULL_REQUEST:
            action = "opened" if before is None else random.choice(("synchronize", "edited", "labeled", "closed"))
            yield Event(kind, str(identity), f"pull_request.{action}", f"pull_request/{resource}", moment, happened)
        else:
            yield Event(kind, str(identity), "push", f"acme/service-{resource}", moment, random.randrange(1, 9))


def _pick(resources: int, passed: float, random: Random) -> int:
    """Half of the events are about any resource, half about one of the few that are busy at that time."""
    if random.random() < 0.5:
        return random.randrange(resources)
    return int(passed * resources + random.random() * max(2, resources / 50)) % resources


def _send_order(events: tuple[Event, ...], random: Random) -> list[Event]:
    count = len(events)
    nearby = max(20, count // 50)
    places: list[tuple[float, int]] = []
    for happened in range(count):
        place = happened + random.random() * (count if random.random() < FAR_LATE else nearby)
        places.append((place, happened))
    for happened in random.sample(range(count), round(count * COPIES_IN_EVENTS)):
        # Half of the copies come on the heels of the first, the others at any time later.
        first, _ = places[happened]
        places.append((first + random.random() * (3 if random.random() < 0.5 else count), happened))
    return [events[happened] for _, happened in sorted(places)]


def _customer(event: Event) -> dict[str, Any]:
    customer = {
        "id": event.resource,
        "object": "customer",
        "address": {"city": "Zürich", "country": "CH", "line1": "Bahnhofstrasse 1", "postal_code": "8001"},
        "balance": event.number,
        "created": FIRST_MOMENT,
        "currency": "chf",
        "delinquent": False,
        "description": "A customer of the demo, whose name is spelled with accents: é, ü, ☕",
        "email": f"customer+{event.number}@example.com",
        "invoice_prefix": event.resource[-6:],
        "invoice_settings": {"custom_fields": None, "default_payment_method": None, "footer": None},
        "livemode": False,
        "metadata": {"plan": "business", "seats": "12"},
        "name": "Renée Müller",
        "phone": None,
        "preferred_locales": ["de-CH", "fr-CH"],
        "shipping": None,
        "tax_exempt": "none",
    }
    return _stripe(event, customer)


def _charge(event: Event) -> dict[str, Any]:
    charge = {
        "id": f"ch_{event.event_id[4:]}",
        "object": "charge",
        "amount": event.number,
        "amount_captured": event.number,
        "amount_refunded": 0,
        "billing_details": {"email": None, "name": "Renée Müller", "phone": None},
        "captured": True,
        "created": event.moment,
        "currency": "chf",
        "customer": event.resource,
        "description": "Subscription of the demo",
        "disputed": False,
        "outcome": {"network_status": "approved_by_network", "risk_level": "normal", "type": "authorized"},
        "paid": True,
        "payment_method_details": {"card": {"brand": "visa", "exp_month": 8, "exp_year": 2031, "last4": "4242"}},
        "receipt_email": None,
        "refunded": False,
        "status": "succeeded",
    }
    return _stripe(event, charge)


def _stripe(event: Event, document: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": event.event_id,
        "object": "event",
        "api_version": "2025-06-30.basil",
        "created": event.moment,
        "data": {"object": document},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": event.event_type,
    }


def _pull_request(event: Event) -> dict[str, Any]:
    number = int(event.resource.partition("/")[2])
    action = event.event_type.partition(".")[2]
    at = datetime.fromtimestamp(event.moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pull_request = {
        "id": number,
        "number": number,
        "state": "closed" if action == "closed" else "open",
        "title": f"Change {event.number}",
        "body": "What it does, and why — in words that a reviewer reads with pleasure.",
        "user": {"login": "octocat", "id": 583231, "type": "User"},
        "labels": [{"name": "enhancement", "color": "a2eeef"}],
        "head": {"ref": f"change-{number}", "sha": hashlib.sha256(event.event_id.encode()).hexdigest()[:40]},
        "base": {"ref": "main", "sha": "0" * 40},
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": at,
        "merged": False,
        "additions": event.number,
        "deletions": 3,
        "changed_files": 2,
    }
    return {"action": action, "number": number, "pull_request": pull_request, **_github("acme/service")}


def _push(event: Event) -> dict[str, Any]:
    commits = [
        {
            "id": hashlib.sha256(f"{event.event_id} {index}".encode()).hexdigest()[:40],
            "message": f"Commit {index + 1} of {event.number}",
            "author": {"name": "Renée Müller", "email": "renee@example.com"},
        }
        for index in range(event.number)
    ]
    return {"ref": "refs/heads/main", "before": "0" * 40, "commits": commits, **_github(event.resource)}


def _github(repository: str) -> dict[str, Any]:
    return {
        "repository": {"id": 1296269, "full_name": repository, "private": False, "default_branch": "main"},
        "sender": {"login": "octocat", "id": 583231, "type": "User", "site_admin": False},
    }


_DOCUMENTS = {Kind.CUSTOMER: _customer, Kind.CHARGE: _charge, Kind.PULL_REQUEST: _pull_request, Kind.PUSH: _push}
