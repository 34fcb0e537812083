"""An application-wide CSRF protection does not stop deliveries, which come with no form of ours (B068)."""

from __future__ import annotations

import pytest

from tests.adapters.conftest import Serve
from tests.adapters.served import event_id

FORM = b"payload=%7B%22id%22%3A%22s4%22%7D"
FORM_HEADERS = [("Content-Type", "application/x-www-form-urlencoded")]


@pytest.mark.parametrize("csrf", ["before", "after", "nested"])
def test_b068_csrf_protection_does_not_hold_for_the_receiver(serve: Serve, csrf: str) -> None:
    served = serve("flask-waitress", csrf=csrf)
    for headers in ([], FORM_HEADERS):
        event = event_id()
        assert served.post(FORM, event, headers=headers).status == 200
        assert [stored.body for stored in served.stored(event)] == [FORM]
    elsewhere = served.request("POST", "/elsewhere", [("Content-Length", "0")])
    assert elsewhere.status == 400
    assert b"CSRF" in elsewhere.body
