"""Signatures, from the socket to the ledger, over both adapters (B001 to B012)."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from tests.cases.receiver import CaseReceiver
from tests.cases.sources import STANDARD_SECRET, TOKEN, digest, hub, slacked, std, strp, x_sig
from tests.end_to_end.command import Project, assert_told_in_one_sentence

SMALL = b'{"id":"m1","type":"t"}'
MEBIBYTE = 1024 * 1024


def delivery(id: str) -> list[tuple[str, str]]:
    """The header that names an event of GitHub."""
    return [("X-GitHub-Delivery", id), ("X-GitHub-Event", "push")]


@pytest.mark.parametrize("text", ["☕ club", "😀", "ç", "e\u0301", "\u2028", "ﷺ"])
def test_b001_a_body_beyond_ascii(receiver: CaseReceiver, text: str) -> None:
    body = f'{{"id":"s1","tier":"{text}"}}'.encode()
    assert receiver.post("github", body, [*hub(body), *delivery("s1")]).status == 200
    assert receiver.bodies() == [body]
    assert receiver.work("github") == [{"id": "s1", "tier": text}]


@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r", b" ", b"\t\n"])
def test_b002_a_line_end_at_the_end(receiver: CaseReceiver, end: bytes) -> None:
    body = b'[{"id":"s2"}]' + end
    assert receiver.post("github", body, [*hub(body), *delivery("s2")]).status == 200
    assert receiver.post("github", body[: -len(end)], [*hub(body), *delivery("s2")]).status == 401
    assert receiver.bodies() == [body]


def test_b003_the_same_object_in_other_bytes(receiver: CaseReceiver) -> None:
    first, second = b'{"b":1.0,  "a":2}', b'{"a": 2, "b": 1.0}'
    assert receiver.post("github", first, [*hub(first), *delivery("s3")]).status == 200
    assert receiver.post("github", second, [*hub(first), *delivery("s3")]).status == 401
    assert receiver.bodies() == [first]
    assert receiver.ledger.redeliveries() == []


def test_b004_a_form(receiver: CaseReceiver) -> None:
    body = b"payload=%7B%22id%22%3A%22s4%22%7D"
    headers = [*hub(body), *delivery("s4"), ("Content-Type", "application/x-www-form-urlencoded")]
    assert receiver.post("github", body, headers).status == 200
    assert receiver.bodies() == [body]
    assert receiver.work("github") == [{"id": "s4"}]


@pytest.mark.parametrize("key", [b"", b" ", b"\n", b"None"])
@pytest.mark.parametrize("source", ["github", "stripe", "t"])
def test_b006_a_signature_made_with_no_key(receiver: CaseReceiver, source: str, key: bytes) -> None:
    body = b'{"id":"s6"}'
    headers = {
        "github": [*hub(body, key), *delivery("s6")],
        "stripe": [("Stripe-Signature", f"t=1,v1={digest(b'1.' + body, key)}")],
        "t": [("X-Twilio-Signature", "")],
    }
    assert receiver.post(source, body, headers[source]).status == 401
    assert receiver.bodies() == []


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("v1={wrong},v1={right}", 200),
        ("v1={right},v1={wrong}", 200),
        ("v1={wrong}, v1={right}", 200),
        ("v1={wrong} ,\tv1={right} ", 200),
        ("v0={right}", 401),
        ("v0={wrong},v0={right}", 401),
        ("v1={wrong}{right}", 401),
        ("{right}", 401),
    ],
)
def test_b007_several_signatures(receiver: CaseReceiver, value: str, status: int) -> None:
    value = value.format(right=digest(SMALL), wrong=digest(SMALL, b"old"))
    assert receiver.post("shop", SMALL, [("X-Sig", value)]).status == status
    assert receiver.bodies() == [SMALL] * (status == 200)


@pytest.mark.parametrize(("offset", "status"), [(3600, 401), (-3600, 401), (200, 200), (-200, 200)])
def test_b008_a_timestamp(receiver: CaseReceiver, offset: int, status: int) -> None:
    assert receiver.post("stripe", SMALL, strp(SMALL, offset)).status == status
    assert receiver.post("slack", SMALL, slacked(SMALL, offset)).status == status
    assert receiver.post("standard-webhooks", SMALL, std(SMALL, offset=offset)).status == status
    assert receiver.bodies() == [SMALL] * 3 * (status == 200)


@pytest.mark.parametrize("value", ["sha256=\xe9", "\xd1\x81", "\xff" * 64, "sha256=\xd1\x81,sha256=\x80", "\xa0"])
@pytest.mark.parametrize(
    ("source", "header"),
    [
        ("github", "X-Hub-Signature-256"),
        ("telegram", "X-Telegram-Bot-Api-Secret-Token"),
        ("stripe", "Stripe-Signature"),
        ("slack", "X-Slack-Request-Timestamp"),
        ("standard-webhooks", "webhook-signature"),
        ("t", "X-Twilio-Signature"),
    ],
)
def test_b009_a_header_beyond_ascii(receiver: CaseReceiver, source: str, header: str, value: str) -> None:
    logged = receiver.served.mark()
    right = [*hub(SMALL), *slacked(SMALL), *std(SMALL), *strp(SMALL), ("X-Telegram-Bot-Api-Secret-Token", TOKEN)]
    headers = [(name, each) for name, each in right if name.lower() != header.lower()]
    assert receiver.post(source, SMALL, [*headers, (header, value)]).status == 401
    assert receiver.bodies() == []
    assert "Traceback" not in logged()
    assert "ERROR" not in logged()


def test_b010_bytes_that_are_no_utf8(receiver: CaseReceiver) -> None:
    latin, utf8 = b'{"id":"s10","n":"caf\xe9"}', b'{"id":"s10","n":"caf\xc3\xa9"}'
    for id, body in (("latin", latin), ("utf8", utf8)):
        assert receiver.post("github", body, [*hub(body), *delivery(id)]).status == 200
    assert receiver.bodies() == [latin, utf8]
    assert receiver.work("github") == [{"id": "s10", "n": "café"}]
    (dead,) = receiver.ledger.dead()
    assert dead.reason == "unreadable"
    assert "0xe9" in dead.error
    assert receiver.ledger.consistent()


PLAIN = b'{"id":"s12","type":"t"}'
ZIPPED = gzip.compress(PLAIN, mtime=0)


@pytest.mark.parametrize(
    ("source", "signed", "coding", "status"),
    [
        ("plain", PLAIN, "gzip", 200),
        ("plain", ZIPPED, "gzip", 401),
        ("packed", ZIPPED, "gzip", 200),
        ("packed", PLAIN, "gzip", 401),
        ("plain", PLAIN, "br", 415),
        ("packed", ZIPPED, "br", 415),
        ("plain", PLAIN, "gzip, br", 415),
        ("shop", ZIPPED, "gzip", 415),
    ],
)
def test_b012_a_compressed_body(receiver: CaseReceiver, source: str, signed: bytes, coding: str, status: int) -> None:
    headers = [*x_sig(signed), ("Content-Encoding", coding)]
    assert receiver.post(source, ZIPPED, headers).status == status
    assert receiver.bodies() == [ZIPPED] * (status == 200)
    if status == 200:
        assert receiver.ledger.event_ids() == ["s12"]
        assert receiver.work(source) == [{"id": "s12", "type": "t"}]


def bomb() -> bytes:
    """A mebibyte that inflates to a gibibyte; its checksum is wrong, which only shows at its end."""
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16)
    first, again = (packer.compress(bytes(MEBIBYTE)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * 1023 + packer.flush()


def test_b012_a_bomb(receiver: CaseReceiver) -> None:
    sent = bomb()
    warm_up = gzip.compress(bytes(24 * MEBIBYTE))
    assert receiver.post("plain", warm_up, [*x_sig(warm_up), ("Content-Encoding", "gzip")]).status == 401
    before = receiver.served.peak_memory()
    for source, signed in (("plain", sent), ("packed", sent), ("packed", b"")):
        answer = receiver.post(source, sent, [*x_sig(signed), ("Content-Encoding", "gzip")])
        assert answer.status == (413 if signed or source == "plain" else 401)
    assert receiver.served.peak_memory() - before < 100 * MEBIBYTE
    assert receiver.bodies() == []


WITH_A_SECRET = """
import os
from pathlib import Path

from hookledger import Inbox, github, standard_webhooks

inbox = Inbox({source}(secrets={secret}))


@inbox.accumulate("{source}".replace("_", "-"))
def nothing(delivery, tx):
    pass
"""


@pytest.mark.parametrize(
    ("source", "secret", "told"),
    [
        pytest.param("standard_webhooks", f"'v1,{STANDARD_SECRET}'", "whsec_", id="B005"),
        pytest.param("github", "os.environ['EMPTY']", "empty", id="B006"),
        pytest.param("github", "' '", "blank", id="B006 a space"),
        pytest.param("github", "Path('secret').read_text()", "newline", id="B011"),
    ],
)
def test_b005_b006_b011_a_secret_that_cannot_work_stops_the_start(
    tmp_path: Path, source: str, secret: str, told: str
) -> None:
    project = Project(tmp_path, "postgresql://nobody@127.0.0.1:1/nothing")
    project.write("secret", b"k-test-1\n")
    project.write("hooks.py", WITH_A_SECRET.format(source=source, secret=secret))
    done = project.run("worker", "hooks:inbox", env={"EMPTY": ""})
    assert_told_in_one_sentence(done, 2, told)
    assert "k-test-1" not in done.stderr
    assert STANDARD_SECRET not in done.stderr
