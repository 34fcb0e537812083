"""`hookledger send`: what goes over the wire, and what is told of the answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hookledger import Headers, Request, Source, github, standard_webhooks, stripe
from tests.end_to_end.command import HANDLER, HOOKS, SECRET, Project, assert_told_in_one_sentence

SOURCES: dict[str, Source] = {
    "stripe": stripe(secrets=SECRET),
    "acme-github": github("acme-github", secrets="github-test-secret"),
    "billing": standard_webhooks("billing", secrets="whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"),
}
AWKWARD_BODY = b'{"id":"evt_1", "n":"\xe2\x98\x95",\r\n "z":"\xff\x00"}\r\n'


class Listening:
    """A server that keeps the requests it gets and answers as it is told."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status = 200
        self.answer = b"ok"
        self.headers: dict[str, str] = {}
        listening = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path, _, query = self.path.partition("?")
                name = path.rpartition("/")[2]
                pairs = [(key, value) for key, value in self.headers.items()]
                listening.requests.append(Request(name, "POST", Headers(pairs), body, self.path, query))
                self.send_response(listening.status)
                for key, value in listening.headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(listening.answer)))
                self.end_headers()
                self.wfile.write(listening.answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/webhooks"

    @property
    def request(self) -> Request:
        (only,) = self.requests
        return only

    def __enter__(self) -> Listening:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def listening() -> Iterator[Listening]:
    """A receiver's stand-in, to see the bytes that are sent."""
    with Listening() as listening:
        yield listening


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with an inbox and an event; no database."""
    project = Project(tmp_path)
    project.write("hooks.py", HOOKS + HANDLER)
    project.write("event.json", AWKWARD_BODY)
    return project


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_sent_verifies_and_is_the_file_byte_for_byte(project: Project, listening: Listening, name: str) -> None:
    done = project.run("send", "hooks:inbox", name, "event.json", "--url", listening.url)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "200 OK\nok\n"
    request = listening.request
    assert request.url == f"/webhooks/{name}"
    assert request.body == AWKWARD_BODY
    assert request.headers.all("content-type") == ["application/json"]
    SOURCES[name].verifier.verify(request, time.time())


def test_from_standard_input(project: Project, listening: Listening) -> None:
    done = project.run("send", "hooks:inbox", "stripe", "-", "--url", f"{listening.url}/", stdin=b"piped\n")
    assert done.returncode == 0, done.stderr
    assert (listening.request.body, listening.request.url) == (b"piped\n", "/webhooks/stripe")


def test_event_and_id_of_github(project: Project, listening: Listening) -> None:
    common = ("send", "hooks:inbox", "acme-github", "event.json", "--url", listening.url)
    project.write("event.json", b'{"action":"opened","issue":{"id":7}}')
    told = []
    for more in ((), (), ("--event", "push"), ("--event", "push", "--id", "given-id")):
        done = project.run(*common, *more)
        assert done.returncode == 0, done.stderr
        told.append(done.stderr)
    first, again, as_push, given = [request.headers for request in listening.requests]
    made, other = first.get("x-github-delivery"), as_push.get("x-github-delivery")
    assert made == again.get("x-github-delivery") != other
    assert told[0] == told[1]
    assert f"type issues.opened (guessed; --event tells another), id {made} (made from the file;" in told[0]
    assert told[2:] == [f"sent with id {other} (made from the file; --id tells another)\n", ""]
    assert (given.get("x-github-event"), given.get("x-github-delivery")) == ("push", "given-id")


def test_an_id_that_is_signed(project: Project, listening: Listening) -> None:
    done = project.run("send", "hooks:inbox", "billing", "event.json", "--id", "msg_7", "--url", listening.url)
    assert done.returncode == 0, done.stderr
    assert listening.request.headers.get("webhook-id") == "msg_7"
    SOURCES["billing"].verifier.verify(listening.request, time.time())


def test_an_id_that_is_in_the_body(project: Project, listening: Listening) -> None:
    done = project.run("send", "hooks:inbox", "stripe", "event.json", "--id", "evt_7", "--url", listening.url)
    assert_told_in_one_sentence(done, 2, "--id", "'stripe'")
    assert listening.requests == []


def test_headers_of_ones_own_replace_ours(project: Project, listening: Listening) -> None:
    own = ("--header", "content-type: text/plain", "--header", "X-Trace:  a:b ", "--header", "x-trace: c")
    done = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", listening.url, *own)
    assert done.returncode == 0, done.stderr
    assert listening.request.headers.all("content-type") == ["text/plain"]
    assert listening.request.headers.all("x-trace") == ["a:b", "c"]


@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
def test_any_other_answer_ends_with_1(project: Project, listening: Listening, status: int) -> None:
    listening.status, listening.answer = status, b"why not"
    done = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", listening.url)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{status} ")
    assert done.stdout.endswith("\nwhy not\n")
    assert ("its log says" in done.stderr) is (status in (401, 404, 503))


def test_a_redirect_is_not_followed(project: Project, listening: Listening) -> None:
    listening.status, listening.headers = 308, {"Location": f"{listening.url}/elsewhere"}
    done = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", listening.url)
    assert_told_in_one_sentence(done, 1, "redirects to", "/elsewhere", nothing_on_stdout=False)
    assert len(listening.requests) == 1


def test_the_answer_as_json(project: Project, listening: Listening) -> None:
    listening.status, listening.answer = 202, b"\x1b[31mred"
    done = project.run("send", "hooks:inbox", "stripe", "event.json", "--json", "--url", listening.url)
    assert json.loads(done.stdout) == {
        "url": f"{listening.url}/stripe",
        "status": 202,
        "reason": "Accepted",
        "body": "\x1b[31mred",
    }
    plain = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", listening.url)
    assert "\x1b" not in plain.stdout


MORE = """
from hookledger.sources import mailgun, shopify, telegram, twilio
from hookledger.sources.describe import Family, Provider, shared_token

gate = Provider(
    name="gate",
    title="Gate",
    documentation="https://gate.example/",
    family=Family.TOKEN,
    schemes=shared_token("query:token"),
    survives="Nothing.",
)
inbox = Inbox(
    mailgun(secrets="key-3ax6xnjp29jd6fds4gc373sgvjxteol0"),
    shopify(secrets="k-test-1"),
    telegram(secrets="k-test-1"),
    twilio(secrets="k-test-1", url="https://example.com/webhooks/twilio?a=1"),
    gate(secrets="k test&1"),
)
"""
MORE_SENT = {
    "mailgun": b'{"event-data":{"id":"e1","event":"opened"}}',
    "shopify": b'{"id":1}',
    "telegram": b'{"update_id":1}',
    "twilio": b"MessageSid=SM1&MessageStatus=sent",
    "gate": b'{"id":"g1"}',
}


@pytest.mark.parametrize("name", MORE_SENT)
def test_signatures_in_the_body_the_query_and_of_the_url(
    project: Project, listening: Listening, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    project.write("hooks.py", HOOKS + MORE)
    project.write("event", MORE_SENT[name])
    done = project.run("send", "hooks:inbox", name, "event", "--url", f"{listening.url}?b=2", "--json")
    assert done.returncode == 0, done.stderr
    module: dict[str, Any] = {}
    exec(HOOKS + MORE, module)
    source = module["inbox"].source(name)
    request = listening.request
    if name == "twilio":
        # It signs the public URL with whatever query comes behind it.
        request = replace(request, query="")
    source.verifier.verify(request, time.time())
    (event,) = source.read(request)
    assert event.unreadable is None
    assert json.loads(done.stdout)["url"] == f"{listening.url}/{name}?b=2"
    form = "application/x-www-form-urlencoded"
    assert (request.headers.all("content-type") == [form]) is (name == "twilio")


def test_a_file_that_cannot_be_signed(project: Project, listening: Listening) -> None:
    project.write("hooks.py", HOOKS + MORE)
    done = project.run("send", "hooks:inbox", "mailgun", "event.json", "--url", listening.url)
    assert_told_in_one_sentence(done, 2, "the file cannot be signed as mailgun does")
    assert listening.requests == []


def test_nothing_listens(project: Project) -> None:
    with socket.socket() as bound_but_deaf:
        bound_but_deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound_but_deaf.getsockname()[1]}"
        done = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", url)
    assert_told_in_one_sentence(done, 1, f"nothing listens at {url}", "hookledger dev")


def test_a_server_that_does_not_answer(project: Project) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = project.run("send", "hooks:inbox", "stripe", "event.json", "--url", url, "--timeout", "0.3")
    assert_told_in_one_sentence(done, 1, "did not answer within 0.3 s")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("paypal", "event.json"), "it has: acme-github, billing, stripe"),
        (("stripe", "nowhere.json"), "nowhere.json"),
        (("stripe", "event.json", "--header", "no colon"), "'Name: value'"),
        (("stripe", "event.json", "--url", "ftp://127.0.0.1/x"), "http"),
        (("stripe", "event.json", "--url", "http://127.0.0.1:123456/x"), "port"),
        (("stripe", "event.json", "--url", "127.0.0.1:8000"), "http"),
    ],
)
def test_wrong_use(project: Project, arguments: tuple[str, ...], word: str) -> None:
    assert_told_in_one_sentence(project.run("send", "hooks:inbox", *arguments), 2, word)
