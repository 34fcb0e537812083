"""Keys that are fetched: from a real https server, within bounds, and 503 when it is away."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from hookledger.errors import Cause, KeysUnavailable, NotVerified, Refused, SetupError
from hookledger.sources.fetching import Fetch, PinnedHosts
from hookledger.sources.keys import AWAY_FOR, UNKNOWN_FOR, FetchedKeys
from tests.processes import wait_until
from tests.unit.sources.https_server import Answer, Authority, KeyServer, document


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder: Path = tmp_path_factory.mktemp("authority")
    return Authority(folder)


def fetched(authority: Authority, answer: Answer, *, path: str = "/keys", timeout: float = 2.0) -> bytes | None:
    with KeyServer(authority, answer) as server:
        fetch = Fetch([server.host], context=authority.trusting, largest=1000, timeout=timeout)
        return fetch(f"https://{server.host}{path}")


# Fetching


def test_a_document_is_fetched_over_https(authority: Authority) -> None:
    with KeyServer(authority, document(b"key")) as server:
        fetch = Fetch([server.host], context=authority.trusting)
        assert fetch(f"https://{server.host}/keys?id=a%20b") == b"key"
        assert fetch(f"https://{server.host}/", b"{}", [("Content-Type", "application/json")]) == b"key"
        assert server.requests == ["/keys?id=a%20b", "/"]


def test_a_document_that_is_not_there_is_none(authority: Authority) -> None:
    assert fetched(authority, document(b"", 404)) is None
    assert fetched(authority, document(b"", 410)) is None


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 403, 429, 500, 503, 204])
def test_anything_but_200_is_503_and_redirects_are_not_followed(authority: Authority, status: int) -> None:
    elsewhere = ("Location", "https://localhost:1/")
    with pytest.raises(KeysUnavailable, match=f"answered {status}") as caught:
        fetched(authority, document(b"", status, elsewhere))
    assert (caught.value.status, caught.value.retry_after) == (503, 5)


def test_a_certificate_of_an_unknown_authority_is_not_trusted(authority: Authority) -> None:
    with KeyServer(authority, document(b"key")) as server:
        with pytest.raises(KeysUnavailable, match="SSLCertVerificationError"):
            Fetch([server.host])(f"https://{server.host}/")
        assert server.requests == []


def test_a_server_that_is_away_is_503(authority: Authority) -> None:
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        host = f"localhost:{taken.getsockname()[1]}"
        with pytest.raises(KeysUnavailable, match="ConnectionRefusedError"):
            Fetch([host], context=authority.trusting)(f"https://{host}/")


def test_a_long_document_is_not_read_to_its_end(authority: Authority) -> None:
    with pytest.raises(KeysUnavailable, match="more than 1000 bytes"):
        fetched(authority, document(b"x" * 1001))
    assert fetched(authority, document(b"x" * 1000)) == b"x" * 1000


def test_a_server_that_says_nothing_or_drips_is_given_up(authority: Authority) -> None:
    released = threading.Event()

    def silent(handler: BaseHTTPRequestHandler) -> None:
        released.wait()

    def dripping(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "900")
        handler.end_headers()
        with contextlib.suppress(OSError):
            while not released.wait(0.05):
                handler.wfile.write(b"x")

    for answer in (silent, dripping):
        released.clear()
        with KeyServer(authority, answer) as server:
            fetch = Fetch([server.host], context=authority.trusting, timeout=0.3)
            with pytest.raises(KeysUnavailable, match="TimeoutError"):
                fetch(f"https://{server.host}/")
            released.set()


@pytest.mark.parametrize(
    "dripped", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX-A: 1\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]
)
def test_a_server_that_drips_its_headers_or_an_endless_body_is_given_up(authority: Authority, dripped: bytes) -> None:
    released = threading.Event()

    def dripping(handler: BaseHTTPRequestHandler) -> None:
        with contextlib.suppress(OSError):
            handler.wfile.write(dripped)
            while not released.wait(0.05):
                handler.wfile.write(b"X-B: 1\r\n")

    with KeyServer(authority, dripping) as server:
        fetch = Fetch([server.host], context=authority.trusting, timeout=0.3)
        with pytest.raises(KeysUnavailable, match="TimeoutError"):
            fetch(f"https://{server.host}/")
        released.set()


def test_a_document_that_breaks_off_is_503(authority: Authority) -> None:
    def broken_off(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        handler.close_connection = True

    with pytest.raises(KeysUnavailable, match="IncompleteRead"):
        fetched(authority, broken_off)


def test_a_provider_may_say_in_another_way_that_there_is_no_document(authority: Authority) -> None:
    for status, body, known in (
        (400, b"UNKNOWN_KEY", None),
        (400, b"BAD_CREDENTIALS", 400),
        (500, b"UNKNOWN_KEY", 500),
    ):
        with KeyServer(authority, document(body, status)) as server:
            fetch = Fetch(
                [server.host],
                context=authority.trusting,
                missing=lambda status, body: status == 400 and body == b"UNKNOWN_KEY",
            )
            if known is None:
                assert fetch(f"https://{server.host}/") is None
            else:
                with pytest.raises(KeysUnavailable, match=f"answered {known}"):
                    fetch(f"https://{server.host}/")


def test_a_fetch_of_the_user_s_own_is_asked_only_for_pinned_hosts() -> None:
    asked: list[str] = []

    def own(url: str, body: bytes | None, headers: object) -> bytes:
        asked.append(url)
        return b"key"

    fetch = Fetch(["keys.example.com"], instead=own)
    assert fetch("https://keys.example.com/a") == b"key"
    with pytest.raises(NotVerified):
        fetch("https://evil.example/a")
    assert asked == ["https://keys.example.com/a"]


def test_an_answer_that_is_no_http_is_503(authority: Authority) -> None:
    def broken(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"\x00\xff\r\n\r\n")
        handler.close_connection = True

    with pytest.raises(KeysUnavailable, match="BadStatusLine"):
        fetched(authority, broken)


PINNED = PinnedHosts(["keys.example.com", "*.paypal.com", re.compile(r"sns\.[a-z0-9-]{3,}\.amazonaws\.com(\.cn)?")])


@pytest.mark.parametrize(
    "url",
    [
        "https://keys.example.com/a",
        "https://KEYS.example.com:443/a?b",
        "https://api.sandbox.paypal.com/v1/certs/CERT-1",
        "https://sns.eu-west-1.amazonaws.com/a.pem",
    ],
)
def test_a_url_that_leads_to_a_pinned_host_is_taken(url: str) -> None:
    assert PINNED.check(url).path


@pytest.mark.parametrize(
    "url",
    [
        "http://keys.example.com/a",
        "https://keys.example.com",
        "https://keys.example.com:8443/a",
        "https://keys.example.com.evil.example/a",
        "https://evil.example/keys.example.com/",
        "https://evil.example#keys.example.com/",
        "https://keys.example.com@evil.example/a",
        "https://user:pass@keys.example.com/a",
        "https://keys.example.com\\@evil.example/a",
        "https://paypal.com/a",
        "https://evilpaypal.com/a",
        "https://.paypal.com/a",
        "https://sns.eu-west-1.amazonaws.com.evil.example/a.pem",
        "https://sns.x.amazonaws.com/a",
        "https://keys.example.com/a b",
        "https://keys.example.com/\r\nHost: evil",
        "https://k\u00e9ys.example.com/",
        "https://[::1]/a",
        "https://127.0.0.1/a",
        "https://keys.example.com./a",
        "HTTPS://keys.example.com/a#x",
        "file:///etc/passwd",
        "",
        "https://keys.example.com/" + "a" * 3000,
    ],
)
def test_a_url_that_leads_elsewhere_is_not_fetched(url: str) -> None:
    with pytest.raises(NotVerified) as caught:
        PINNED.check(url)
    assert caught.value.cause is Cause.KEY_NOT_TRUSTED
    with pytest.raises(NotVerified):
        Fetch(["other.example.com"])(url)


@pytest.mark.parametrize("hosts", [[], "keys.example.com", ["*"], [""], ["https://keys.example.com"], ["a b"]])
def test_a_list_that_pins_nothing_is_told_at_start(hosts: list[str]) -> None:
    with pytest.raises(SetupError):
        PinnedHosts(hosts)


# Keeping


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Loader:
    """A key server with the keys that it is given."""

    def __init__(self, **keys: str) -> None:
        self.keys: dict[str, str] = keys
        self.asked: list[str] = []
        self.error: Refused | None = None

    def __call__(self, key_id: str) -> Mapping[str, str]:
        self.asked.append(key_id)
        if self.error is not None:
            raise self.error
        return self.keys


def test_a_key_is_asked_for_once_until_it_expires() -> None:
    clock, loader = Clock(), Loader(a="A", b="B")
    keys = FetchedKeys(loader, expiry=100, clock=clock)
    assert [keys.get("a"), keys.get("a"), keys.get("b")] == ["A", "A", "B"]
    assert loader.asked == ["a"]
    clock.now += 100
    loader.keys = {"a": "A2"}
    assert keys.get("a") == "A2"
    assert loader.asked == ["a", "a"]


def test_an_unknown_id_is_refused_and_not_asked_for_again_at_once() -> None:
    clock, loader = Clock(), Loader(a="A")
    keys = FetchedKeys(loader, clock=clock)
    for _ in range(3):
        with pytest.raises(NotVerified) as caught:
            keys.get("x")
        assert caught.value.cause is Cause.KEY_NOT_TRUSTED
    assert loader.asked == ["x"]
    loader.keys = {"x": "X"}
    clock.now += UNKNOWN_FOR
    assert keys.get("x") == "X"


def test_made_up_ids_cannot_make_us_ask_without_end_and_known_ones_still_work() -> None:
    clock, loader = Clock(), Loader(a="A")
    keys = FetchedKeys(loader, most=10, loads_a_minute=5, clock=clock)
    assert keys.get("a") == "A"
    outcomes = []
    for number in range(50):
        with pytest.raises(Refused) as caught:
            keys.get(f"made-up-{number}")
        outcomes.append(caught.value.status)
        assert keys.get("a") == "A"
    assert outcomes == [401] * 4 + [503] * 46
    assert len(loader.asked) == 5
    clock.now += 61
    with pytest.raises(NotVerified):
        keys.get("made-up-99")


def test_a_key_that_was_known_is_fetched_again_whatever_ids_others_make_up() -> None:
    clock, loader = Clock(), Loader(a="A")
    keys = FetchedKeys(loader, expiry=30, most=10, loads_a_minute=5, clock=clock)
    assert keys.get("a") == "A"
    for number in range(50):
        with pytest.raises(Refused):
            keys.get(f"made-up-{number}")
    clock.now += 30
    for _ in range(2):
        assert keys.get("a") == "A"
    assert loader.asked.count("a") == 2


def test_a_key_that_the_server_no_longer_knows_is_refused_once_it_has_expired() -> None:
    clock, loader = Clock(), Loader(a="A")
    keys = FetchedKeys(loader, expiry=30, clock=clock)
    keys.get("a")
    loader.keys = {}
    assert keys.get("a") == "A"
    clock.now += 30
    for _ in range(2):
        with pytest.raises(NotVerified):
            keys.get("a")
    assert loader.asked == ["a", "a"]


def test_ids_that_nobody_knows_drop_no_key_that_is_known() -> None:
    clock, loader = Clock(), Loader(a="A")
    keys = FetchedKeys(loader, most=3, loads_a_minute=1000, clock=clock)
    keys.get("a")
    loader.keys = {}
    for number in range(20):
        with pytest.raises(NotVerified):
            keys.get(f"made-up-{number}")
    assert keys.get("a") == "A"
    assert loader.asked.count("a") == 1


def test_the_keys_that_were_not_used_for_the_longest_are_dropped() -> None:
    clock, loader = Clock(), Loader()
    keys = FetchedKeys(loader, most=2, clock=clock)
    for each in ("a", "b"):
        loader.keys = {each: each.upper()}
        keys.get(each)
    keys.get("a")
    loader.keys = {"c": "C"}
    keys.get("c")
    keys.get("a")
    assert loader.asked == ["a", "b", "c"]
    loader.keys = {"b": "B"}
    keys.get("b")
    assert loader.asked[-1] == "b"


def test_a_key_server_that_is_away_is_503_and_not_asked_again_at_once() -> None:
    clock, loader = Clock(), Loader(a="A")
    keys = FetchedKeys(loader, clock=clock)
    keys.get("a")
    loader.error = KeysUnavailable("away")
    for _ in range(3):
        with pytest.raises(KeysUnavailable):
            keys.get("b")
    assert loader.asked == ["a", "b"]
    assert keys.get("a") == "A"
    clock.now += AWAY_FOR
    loader.error, loader.keys = None, {"b": "B"}
    assert keys.get("b") == "B"


def test_an_expired_key_is_not_used_when_the_server_is_away() -> None:
    clock, loader = Clock(), Loader(a="A")
    keys = FetchedKeys(loader, expiry=10, clock=clock)
    keys.get("a")
    clock.now += 10
    loader.error = KeysUnavailable("away")
    with pytest.raises(KeysUnavailable):
        keys.get("a")


def test_many_threads_ask_once() -> None:
    asked: list[str] = []
    found: list[str] = []
    asking, answered = threading.Event(), threading.Event()

    def load(key_id: str) -> Mapping[str, str]:
        asked.append(key_id)
        asking.set()
        answered.wait()
        return {key_id: key_id}

    keys = FetchedKeys(load)

    def ask() -> None:
        found.append(keys.get("a"))

    first, *others = (threading.Thread(target=ask) for _ in range(8))
    first.start()
    asking.wait()
    for thread in others:
        thread.start()
    # Each of the others now waits in FetchedKeys.get for the one that loads.
    wait_until(lambda: all(_waits_in(thread, "get") for thread in others))
    answered.set()
    for thread in (first, *others):
        thread.join()
    assert found == ["a"] * 8
    assert asked == ["a"]


def _waits_in(thread: threading.Thread, function: str) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == function
