"""GitHub into a Flask application, with workers in processes of their own, and without tables of one's own.

    pip install '.[flask]' gunicorn
    export DATABASE_URL=postgresql://user@host/database GITHUB_WEBHOOK_SECRET=...
    hookledger db upgrade
    gunicorn --worker-class gthread --threads 8 flask_github:app
    hookledger worker flask_github:inbox           # as many as wanted, on any machine

At GitHub, register https://your.host/webhooks/github for issues and pushes, as JSON or as a form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from flask import Flask, jsonify
from flask.typing import ResponseReturnValue
from sqlalchemy import Connection, text

from hookledger import Delivery, Inbox, github
from hookledger.engine import create
from hookledger_flask import receiver

inbox = Inbox(github(secrets=os.environ["GITHUB_WEBHOOK_SECRET"]))


# What a snapshot handler returns becomes the state of the resource, here of the issue, in hookledger's own table.
@inbox.snapshot("github", "issues.*")
def issue(delivery: Delivery, tx: Connection) -> Mapping[str, Any]:
    found = delivery.data["issue"]
    return {"title": found["title"], "state": found["state"]}


# The numbers that an accumulate handler returns are added to the state. A push has no id of what it is about,
# so the resource is given here: the counts are kept by repository.
@inbox.accumulate("github", "push", resource=lambda delivery: delivery.data["repository"]["full_name"])
def pushes(delivery: Delivery, tx: Connection) -> Mapping[str, int]:
    return {"pushes": 1, "commits": len(delivery.data["commits"])}


engine = create()  # reads DATABASE_URL; connects at the first request, so the server may fork before
app = Flask(__name__)
app.register_blueprint(receiver(inbox, engine), url_prefix="/webhooks")


@app.get("/states/<handler>")
def states(handler: str) -> ResponseReturnValue:
    """What the handlers have made of it."""
    query = text("SELECT resource, state FROM hookledger.resource_state WHERE handler = :handler AND NOT deleted")
    with engine.connect() as connection:
        rows = connection.execute(query, {"handler": handler}).all()
    return jsonify({row.resource: row.state for row in rows})
