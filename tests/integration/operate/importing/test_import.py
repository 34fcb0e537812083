"""Captured requests come in by the receiver's door, with the time at which they came."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hookledger import Inbox, Request, Source, stripe
from hookledger.errors import UnreadableBody
from hookledger.operate.importing import Imported, import_requests
from hookledger.operate.importing import har as har_reading
from hookledger.operate.importing.captured import Captured, read_har, read_lines
from tests.outcomes import Ledger, document, shop
from tests.ways import WAYS

OLD, NEW = "whsec_b2xk", "whsec_bmV3"
THEN = datetime(2026, 1, 5, 12, 0, 0, 250_000, tzinfo=UTC)


def event(id: str, **more: Any) -> bytes:
    return json.dumps(
        {"id": id, "type": "charge.succeeded", "created": 1, "data": {"object": {"id": "ch"}}, **more}
    ).encode()


def line(request: Request, at: datetime | float | str = THEN, **more: Any) -> bytes:
    """A request as a line of a file."""
    written = at.isoformat() if isinstance(at, datetime) else at
    given = {
        "method": "POST",
        "url": f"https://example.com/webhooks/{request.source}",
        "headers": [list(pair) for pair in request.headers],
        "body": base64.b64encode(request.body).decode(),
        "received_at": written,
        **more,
    }
    return json.dumps(given).encode() + b"\n"


def signed(source: Source, id: str, at: datetime = THEN, **more: Any) -> Request:
    return source.signed(event(id, **more), at.timestamp())


def load(ledger: Ledger, inbox: Inbox, *lines: bytes, **options: Any) -> tuple[Imported, list[tuple[int, str]]]:
    complaints: list[tuple[int, str]] = []
    imported = import_requests(
        ledger.engine,
        inbox,
        read_lines(io.BytesIO(b"".join(lines))),
        origin="capture.ndjson",
        complain=lambda number, reason: complaints.append((number, reason)),
        **options,
    )
    return imported, complaints


def test_each_comes_in_with_its_time_and_is_marked(ledger: Ledger) -> None:
    imported, complaints = load(ledger, Inbox(stripe(secrets=NEW)), line(signed(stripe(secrets=NEW), "evt_1")))

    assert (imported.read, imported.recorded, complaints) == (1, 1, [])
    row = ledger.execute(
        "SELECT d.received_at, p.body, i.origin FROM hookledger.deliveries d JOIN hookledger.payloads p"
        " ON p.id = d.payload_id AND p.received_at = d.received_at JOIN hookledger.imported i ON i.delivery_id = d.id"
    )[0]
    assert (row.received_at, bytes(row.body), row.origin) == (THEN, event("evt_1"), "capture.ndjson")
    assert list(ledger.pending()) == ["evt_1"]


def test_it_is_verified_with_any_of_the_secrets_whatever_its_age(ledger: Ledger) -> None:
    inbox = Inbox(stripe(secrets=[NEW, OLD]))
    long_before = THEN - timedelta(days=40)

    imported, complaints = load(
        ledger,
        inbox,
        line(signed(stripe(secrets=OLD), "with_old")),
        line(signed(stripe(secrets=NEW), "other_time", long_before)),
        line(signed(stripe(secrets="whsec_b3RoZXI="), "forged")),
        line(signed(stripe(secrets="whsec_b3RoZXI="), "forged_and_old", long_before)),
    )

    assert imported.recorded == 2
    assert sorted(ledger.pending()) == ["other_time", "with_old"]
    assert [number for number, _ in complaints] == [3, 4]
    assert all("no signature" in reason for _, reason in complaints)


def test_importing_again_changes_nothing(ledger: Ledger) -> None:
    inbox, source = Inbox(stripe(secrets=NEW)), stripe(secrets=NEW)
    lines = [line(signed(source, f"evt_{number}")) for number in range(5)]
    load(ledger, inbox, *lines[:3])
    differing = line(signed(source, "evt_0", note="other bytes"))

    imported, _ = load(ledger, inbox, *lines, differing)

    assert (imported.recorded, imported.known, imported.differing) == (2, 4, 1)
    assert ledger.value("SELECT count(*) FROM hookledger.redeliveries") == 0
    assert ledger.value("SELECT count(*) FROM hookledger.payloads") == 5


def test_bad_lines_are_told_by_their_number_and_left_out(ledger: Ledger) -> None:
    source = stripe(secrets=NEW)
    good = signed(source, "good")
    bad = [
        b"no json\n",
        b"[1]\n",
        line(good, body="%%%"),
        line(good, headers="none"),
        line(good, headers=[["a"]]),
        line(good, at="yesterday"),
        line(good, at=1e300),
        line(good, at="0001-01-01T00:00:00Z"),
        line(good, at=-1),
        line(good, at=datetime.now(UTC) + timedelta(days=2)),
        line(good, url="https://example.com/webhooks/nobody"),
        line(good, url=""),
        line(good, method="GET"),
        b"[" * 100_000 + b"\n",
    ]

    imported, complaints = load(ledger, Inbox(source), *bad, b"\n", line(good))

    assert (imported.recorded, imported.bad) == (1, len(bad))
    assert sorted(number for number, _ in complaints) == list(range(1, len(bad) + 1))
    assert "whsec" not in str(complaints)


def test_a_dry_run_verifies_and_records_nothing(ledger: Ledger) -> None:
    source = stripe(secrets=NEW)

    imported, _ = load(ledger, Inbox(source), line(signed(source, "evt_1")), dry_run=True)

    assert imported.recorded == 1
    assert ledger.value("SELECT count(*) FROM hookledger.deliveries") == 0


def test_what_was_imported_runs_like_anything_else(ledger: Ledger, database_url: str) -> None:
    inbox = Inbox(shop())
    inbox.snapshot("shop", name="mirror")(lambda delivery, tx: {"at": delivery.received_at.isoformat()})
    ledger.record(document("live", "r1", 2))
    body = json.dumps(document("earlier", "r1", 1)).encode()
    load(ledger, inbox, line(shop().signed(body, THEN.timestamp())))

    WAYS[0].work(database_url, inbox)

    assert ledger.outcomes_of("mirror") in (
        {"live": "applied", "earlier": "superseded"},
        {"live": "applied", "earlier": "stale"},
    )


def test_many_are_imported_batch_by_batch_and_it_can_be_stopped(ledger: Ledger) -> None:
    source = stripe(secrets=NEW)
    lines = [line(signed(source, f"evt_{number}")) for number in range(450)]
    seen: list[int] = []

    imported, _ = load(
        ledger,
        Inbox(source),
        *lines,
        progress=lambda imported: seen.append(imported.recorded),
        stopping=lambda: len(seen) == 2,
    )

    assert seen == [200, 400]
    assert imported.recorded == 400
    assert load(ledger, Inbox(source), *lines)[0].recorded == 50


def test_a_file_is_read_line_by_line() -> None:
    source = stripe(secrets=NEW)
    lines = [line(signed(source, f"evt_{number}")) for number in range(1000)]
    file = io.BytesIO(b"".join(lines))
    reading = read_lines(file)

    next(reading)

    assert file.tell() == len(lines[0])


def har(*requests: Request, **log: Any) -> bytes:
    entries = [
        {
            "startedDateTime": THEN.isoformat(),
            "request": {
                "method": "POST",
                "url": f"https://example.com/{request.source}?x=1",
                "headers": [{"name": name, "value": value} for name, value in request.headers],
                "postData": {"mimeType": "application/json", "text": request.body.decode()},
            },
            "response": {"content": {"text": '"entries": [' + "x" * 300_000}},
        }
        for request in requests
    ]
    return json.dumps(
        {"log": {"version": "1.2", "pages": [{"title": 'say "entries": [1]'}], **log, "entries": entries}}
    ).encode()


def test_a_har_file_is_read_entry_by_entry(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(har_reading, "CHUNK", 1000)
    source = stripe(secrets=NEW)
    raw = har(*[signed(source, f"evt_{number}", note="ü") for number in range(3)])

    found = list(read_har(io.BytesIO(raw)))

    assert all(isinstance(each, Captured) for each in found)
    imported = import_requests(ledger.engine, Inbox(source), found, origin="x.har")
    assert imported.recorded == 3


@pytest.mark.parametrize("raw", [b"", b"{}", har()[:-3], b'{"log": {"entries": [{"a": ', b'{"log": {"entries": [1 2'])
def test_a_har_file_that_is_broken_is_told_in_a_sentence(raw: bytes) -> None:
    with pytest.raises(UnreadableBody, match="HAR"):
        list(read_har(io.BytesIO(raw)))
