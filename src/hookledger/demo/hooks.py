"""The demo's inbox, as a user would write it: sources, handlers, and tables of the handlers' own.

No table has a key that would hide a handler that ran twice: what is in them twice was done twice.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, RetryPolicy, github, stripe
from hookledger.demo.traffic import GITHUB_SECRET, STRIPE_SECRET

TABLES = (
    "CREATE SCHEMA demo",
    "CREATE TABLE demo.customers (id text PRIMARY KEY, email text, balance bigint, deleted boolean)",
    "CREATE TABLE demo.pull_requests (id text PRIMARY KEY, title text, additions bigint, deleted boolean)",
    "CREATE TABLE demo.changes (source text, event_id text, resource text)",
    "CREATE TABLE demo.revenue (event_id text, customer text, amount bigint)",
    "CREATE TABLE demo.commits (event_id text, repository text, commits bigint)",
)

# What a killed worker had claimed is due again after the first delay.
inbox = Inbox(
    stripe(secrets=STRIPE_SECRET),
    github(secrets=GITHUB_SECRET),
    retry=RetryPolicy(first_delay=1.0),
)


def make_tables(connection: Connection) -> None:
    """Make the handlers' own tables."""
    for statement in TABLES:
        connection.execute(text(statement))


SAVE_CUSTOMER = text(
    """
    INSERT INTO demo.customers VALUES (:id, :email, :balance, :deleted)
    ON CONFLICT (id) DO UPDATE
    SET email = excluded.email, balance = excluded.balance, deleted = excluded.deleted
    """
)
SAVE_PULL_REQUEST = text(
    """
    INSERT INTO demo.pull_requests VALUES (:id, :title, :additions, false)
    ON CONFLICT (id) DO UPDATE SET title = excluded.title, additions = excluded.additions
    """
)
NOTE_CHANGE = text("INSERT INTO demo.changes VALUES (:source, :event_id, :resource)")
ADD_REVENUE = text("INSERT INTO demo.revenue VALUES (:event_id, :customer, :amount)")
ADD_COMMITS = text("INSERT INTO demo.commits VALUES (:event_id, :repository, :commits)")


@inbox.snapshot("stripe", "customer.*")
def save_customer(delivery: Delivery, tx: Connection) -> dict[str, int]:
    """Keep a row for each customer as Stripe last said."""
    customer = delivery.data["data"]["object"]
    state = {name: customer[name] for name in ("id", "email", "balance")}
    tx.execute(SAVE_CUSTOMER, {**state, "deleted": delivery.deleted})
    _note_change(delivery, tx)
    return {"balance": customer["balance"]}


@inbox.snapshot("github", "pull_request.*")
def save_pull_request(delivery: Delivery, tx: Connection) -> dict[str, int]:
    """Keep a row for each pull request as GitHub last said."""
    pull_request = delivery.data["pull_request"]
    title, additions = pull_request["title"], pull_request["additions"]
    tx.execute(SAVE_PULL_REQUEST, {"id": delivery.resource, "title": title, "additions": additions})
    _note_change(delivery, tx)
    return {"additions": additions}


@inbox.accumulate("stripe", "charge.succeeded", resource=lambda delivery: delivery.data["data"]["object"]["customer"])
def add_revenue(delivery: Delivery, tx: Connection) -> dict[str, int]:
    """Add what a customer has paid."""
    charge = delivery.data["data"]["object"]
    customer, amount = charge["customer"], charge["amount"]
    tx.execute(ADD_REVENUE, {"event_id": delivery.event_id, "customer": customer, "amount": amount})
    return {"count": 1, "sum": amount}


@inbox.accumulate("github", "push", resource=lambda delivery: delivery.data["repository"]["full_name"])
def add_commits(delivery: Delivery, tx: Connection) -> dict[str, int]:
    """Add what was pushed to a repository."""
    repository, commits = delivery.data["repository"]["full_name"], len(delivery.data["commits"])
    tx.execute(ADD_COMMITS, {"event_id": delivery.event_id, "repository": repository, "commits": commits})
    return {"count": 1, "sum": commits}


def _note_change(delivery: Delivery, tx: Connection) -> None:
    change = {"source": delivery.source, "event_id": delivery.event_id, "resource": delivery.resource}
    tx.execute(NOTE_CHANGE, change)
