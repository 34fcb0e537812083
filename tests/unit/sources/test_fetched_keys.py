"""Providers whose keys are fetched, each against a real https server that is slow, wrong, away, or asked without end.

What each provider sends is signed with keys of our own; what it fetches goes, once the host was checked, to a server on
this machine.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hookledger.errors import Cause, KeysUnavailable, NotVerified, Refused
from hookledger.http import Headers, Request
from hookledger.sources import Source
from hookledger.sources.catalogue import provider
from hookledger.sources.fetching import Fetch
from hookledger.sources.keys import LOADS_A_MINUTE
from tests.unit.sources import fetched
from tests.unit.sources.certificates_made import authority as certificate_authority
from tests.unit.sources.certificates_made import certificate, pem, rsa_key
from tests.unit.sources.https_server import Answer, Authority, KeyServer, document
from tests.unit.sources.made import NOW, configured

KEY, OTHER = "key one", "key two"


@dataclass(frozen=True)
class Case:
    """One provider.

    Args:
        name: of the provider.
        sign: a request, with the id of the key that it names and the key that signs it.
        answer: what the provider's server says of these ids and their keys, to a path and the body of a POST; None
            for 404.
        settings: more of them.
    """

    name: str
    sign: Callable[[str, str], Request]
    answer: Callable[[dict[str, str], str, bytes], bytes | None]
    settings: dict[str, Any] = field(default_factory=dict)


def sns(key_id: str, key: str) -> Request:
    url = f"https://sns.us-west-2.amazonaws.com/{key_id}.pem"
    body = fetched.sns_body(provider("aws-sns").example().body, key, url=url)
    return Request("aws-sns", "POST", Headers(), body)


def sns_answer(keys: dict[str, str], path: str, body: bytes) -> bytes | None:
    key = keys.get(path.removeprefix("/").removesuffix(".pem"))
    return None if key is None else pem(certificate("sns.amazonaws.com", key))


def paypal(key_id: str, key: str) -> Request:
    url = f"https://api.paypal.com/v1/notifications/certs/{key_id}"
    return Request("paypal", "POST", fetched.paypal_headers(b"{}", key, url=url), b"{}")


def paypal_answer(keys: dict[str, str], path: str, body: bytes) -> bytes | None:
    key = keys.get(path.rpartition("/")[2])
    return None if key is None else fetched.paypal_chain(key)


def plaid(key_id: str, key: str) -> Request:
    return fetched.plaid_request("plaid", b"{}", NOW, key, key_id)


def plaid_answer(keys: dict[str, str], path: str, body: bytes) -> bytes | None:
    asked = json.loads(body)
    assert path == "/webhook_verification_key/get"
    assert (asked["client_id"], asked["secret"]) == ("5f3a1b2c3d4e5f6a7b8c9d0e", "0123456789abcdef0123456789abcd")
    key = keys.get(asked["key_id"])
    return None if key is None else fetched.plaid_answer(key, asked["key_id"])


def pubsub(key_id: str, key: str) -> Request:
    token = fetched.token(fetched.google_claims(NOW), rsa_key(key), "RS256", key_id)
    return Request("google-pubsub", "POST", Headers([("Authorization", f"Bearer {token}")]), b"{}")


def key_set(keys: dict[str, str], path: str, body: bytes) -> bytes | None:
    return fetched.key_set(*[fetched.key_document(rsa_key(key), name, "RS256") for name, key in keys.items()])


def graph(key_id: str, key: str) -> Request:
    claims = {
        "aud": "8e460676-ae3f-4b1e-8790-ee0fb5d6148f",
        "iss": "https://sts.windows.net/84bd8158-6d4d-4958-8b9f-9d6445542f95/",
        "tid": "84bd8158-6d4d-4958-8b9f-9d6445542f95",
        "appid": "0bf30f3b-4a52-48df-9a82-234910c4a086",
        "iat": NOW,
        "exp": NOW + 3600,
    }
    item = {"clientState": "k-test-1", "tenantId": claims["tid"], "encryptedContent": {"data": "x"}}
    token = fetched.token(claims, rsa_key(key), "RS256", key_id)
    body = json.dumps({"value": [item], "validationTokens": [token]}).encode()
    return Request("microsoft-graph", "POST", Headers(), body)


CASES = [
    Case("aws-sns", sns, sns_answer),
    Case("google-pubsub", pubsub, key_set),
    Case("microsoft-graph", graph, key_set, {"app_id": "8e460676-ae3f-4b1e-8790-ee0fb5d6148f"}),
    Case("paypal", paypal, paypal_answer, {"authorities": pem(certificate_authority()).decode().strip()}),
    Case("plaid", plaid, plaid_answer),
]


class Provided:
    """A provider with its key server, and a source that fetches from it."""

    def __init__(self, case: Case, authority: Authority, timeout: float = 2.0) -> None:
        self.case = case
        self.keys = {"one": KEY}
        self.instead: Answer | None = None
        self._authority = authority
        self._timeout = timeout
        self._server = KeyServer(authority, self._answer)

    @contextlib.contextmanager
    def serving(self) -> Iterator[Provided]:
        with self._server:
            yield self

    @property
    def asked(self) -> int:
        return len(self._server.requests)

    def source(self) -> Source:
        here = Fetch([self._server.host], context=self._authority.trusting, timeout=self._timeout)

        def fetch(url: str, body: bytes | None, headers: Any) -> bytes | None:
            parts = urlsplit(url)
            assert parts.scheme == "https"
            return here(f"https://{self._server.host}{parts.path}", body, headers)

        return configured(provider(self.case.name), "k-test-1", **{**self.case.settings, "fetch": fetch})

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if self.instead is not None:
            return self.instead(handler)
        found = self.case.answer(self.keys, handler.path, body)
        return (document(b"", 404) if found is None else document(found))(handler)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder: Path = tmp_path_factory.mktemp("authority")
    return Authority(folder)


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def provided(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Provided]:
    with Provided(request.param, authority).serving() as found:
        yield found


def refusal(source: Source, request: Request) -> Refused:
    with pytest.raises(Refused) as caught:
        source.verifier.verify(request, NOW)
    return caught.value


def test_the_key_is_fetched_once(provided: Provided) -> None:
    source, request = provided.source(), provided.case.sign("one", KEY)
    assert source.needs_network
    for _ in range(3):
        source.verifier.verify(request, NOW)
    assert provided.asked == 1


def test_a_signature_of_another_key_under_the_same_id_is_refused(provided: Provided) -> None:
    error = refusal(provided.source(), provided.case.sign("one", OTHER))
    assert isinstance(error, NotVerified)
    assert error.cause is Cause.NO_MATCH


def test_a_new_key_is_fetched_when_it_is_first_used_and_the_old_one_still_counts(provided: Provided) -> None:
    source = provided.source()
    source.verifier.verify(provided.case.sign("one", KEY), NOW)
    provided.keys = {"one": KEY, "two": OTHER}
    source.verifier.verify(provided.case.sign("two", OTHER), NOW)
    source.verifier.verify(provided.case.sign("one", KEY), NOW)
    assert provided.asked == 2


def test_an_id_that_the_provider_does_not_know_is_401(provided: Provided) -> None:
    source = provided.source()
    for _ in range(3):
        error = refusal(source, provided.case.sign("made-up", OTHER))
        assert isinstance(error, NotVerified)
        assert error.cause is Cause.KEY_NOT_TRUSTED
    assert provided.asked == 1


def test_a_flood_of_made_up_ids_is_bounded_and_the_known_key_still_counts(provided: Provided) -> None:
    source, good = provided.source(), provided.case.sign("one", KEY)
    source.verifier.verify(good, NOW)
    statuses = []
    for number in range(LOADS_A_MINUTE + 10):
        statuses.append(refusal(source, provided.case.sign(f"made-up-{number}", KEY)).status)
        source.verifier.verify(good, NOW)
    assert statuses == [401] * (LOADS_A_MINUTE - 1) + [503] * 11
    assert provided.asked == LOADS_A_MINUTE


WRONG = {
    "an error": document(b"", 500),
    "a refusal": document(b"", 403),
    "a redirect": document(b"", 302, ("Location", "https://localhost:1/")),
    "a page": document(b"<html>Log in to the network</html>"),
    "nothing": document(b""),
    "an empty object": document(b"{}"),
    "a list": document(b"[]"),
    "no text": document(b"\xff\x00" * 50),
    "a huge document": document(b"-" * (512 * 1024 + 1)),
    "a half of a document": document(b'{"keys": [', 200),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_server_that_says_anything_else_is_503_and_the_known_key_still_counts(provided: Provided, what: str) -> None:
    source, good = provided.source(), provided.case.sign("one", KEY)
    source.verifier.verify(good, NOW)
    provided.instead = WRONG[what]
    error = refusal(source, provided.case.sign("two", OTHER))
    assert isinstance(error, KeysUnavailable)
    assert (error.status, error.retry_after) == (503, 5)
    source.verifier.verify(good, NOW)
    refusal(source, provided.case.sign("three", OTHER))
    assert provided.asked == 2, "a server that is away is not asked again at once"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_server_that_does_not_answer_is_503_in_time(case: Case, authority: Authority) -> None:
    released = threading.Event()

    def silent(handler: BaseHTTPRequestHandler) -> None:
        released.wait()

    with Provided(case, authority, timeout=0.2).serving() as provided:
        provided.instead = silent
        error = refusal(provided.source(), case.sign("one", KEY))
        released.set()
    assert isinstance(error, KeysUnavailable)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_server_that_is_away_is_503(case: Case, authority: Authority) -> None:
    with contextlib.closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        host = f"localhost:{taken.getsockname()[1]}"
        here = Fetch([host], context=authority.trusting)
        source = configured(
            provider(case.name),
            "k-test-1",
            **{**case.settings, "fetch": lambda url, body, headers: here(f"https://{host}/", body, headers)},
        )
        assert isinstance(refusal(source, case.sign("one", KEY)), KeysUnavailable)


def test_a_fetch_of_the_user_s_own_that_breaks_is_503() -> None:
    def broken(url: str, body: bytes | None, headers: Any) -> bytes:
        raise ZeroDivisionError

    for case in CASES:
        for fetch in (broken, lambda url, body, headers: "text", lambda url, body, headers: b"-" * 1_000_000):
            source = configured(provider(case.name), "k-test-1", **{**case.settings, "fetch": fetch})
            assert isinstance(refusal(source, case.sign("one", KEY)), KeysUnavailable)
