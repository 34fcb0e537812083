"""`hookledger verify`: what it says of a captured request, and how it ends."""

from __future__ import annotations

import gzip
import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hookledger.errors import KeysUnavailable
from hookledger.http import Headers, Request
from hookledger.sources import Source, standard_webhooks, stripe
from hookledger.sources.catalogue import provider
from hookledger.sources.describe import Family, Option, Provider, Settings
from tests.unit.cli.calling import Ended, call
from tests.unit.sources.made import EVERY, NOW, make

SECRET = "k-test-1"
OLD = "k-test-2"
BODY = b'{"id":"m1"}'
SENT = stripe(secrets=SECRET)
AT = ("--at", NOW)

Verify = Callable[..., Ended]


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
    """Writes a request into files and calls the command on them."""

    def called(name: str, request: Request, *more: object) -> Ended:
        lines = [f"{key}: {value}\r\n" for key, value in request.headers]
        (tmp_path / "headers.txt").write_bytes("".join(lines).encode("latin-1"))
        (tmp_path / "body").write_bytes(request.body)
        return call(capsys, "verify", name, "--headers", tmp_path / "headers.txt", "--body", tmp_path / "body", *more)

    return called


def sent(body: bytes = BODY, by: Source = SENT, now: float = NOW) -> Request:
    return by.signed(body, now)


def document(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended.stdout)
    assert ended.status == (0 if found["verified"] else 1)
    assert ended.stderr == ""
    return found


def test_a_request_that_verifies(verify: Verify) -> None:
    assert verify("stripe", sent(), "--secret", SECRET, *AT) == Ended(0, "verified: the request verifies\n", "")
    assert document(verify("stripe", sent(), "--secret", SECRET, *AT, "--json")) == {
        "provider": "stripe",
        "verified": True,
        "status": 200,
        "says": "the request verifies",
        "cause": None,
        "details": {},
        "secret": 1,
    }


OWN = """
from hookledger.sources.describe import Family, Places, Provider, Scheme

acme = Provider(
    name="acme-pay",
    title="Acme Pay",
    documentation="https://acme.example/docs",
    family=Family.BODY_HMAC,
    schemes=Scheme((Places("Acme-Signature"),)),
    survives="The id.",
)
"""


def test_a_provider_of_an_application(verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_provider.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    acme = importlib.import_module("own_provider").acme
    request = sent(by=acme(secrets=SECRET))
    assert document(verify("own_provider:acme", request, "--secret", SECRET, "--json"))["provider"] == "acme-pay"
    ended = verify("own_provider:nothing", request, "--secret", SECRET)
    assert (ended.status, ended.stdout) == (2, "")
    assert "own_provider:nothing is no Provider" in ended.stderr


def test_the_previous_secret(verify: Verify) -> None:
    ended = verify("stripe", sent(), "--secret", OLD, "--secret", SECRET, *AT)
    assert ended.status == 0
    assert "verifies with secret 2" in ended.stdout
    assert document(verify("stripe", sent(), "--secret", OLD, "--secret", SECRET, *AT, "--json"))["secret"] == 2


REFUSED = {
    "another secret": (sent(by=stripe(secrets="another")), "wrong-secret", "secret is probably another one's"),
    "a clock": (sent(now=NOW - 1000), "clock", "1000 seconds old, 300 are allowed"),
    "a clock that is behind": (sent(now=NOW + 1000), "clock", "1000 seconds in the future"),
    "a body that was serialised again": (
        Request("stripe", "POST", sent(b'{"id": "m1"}').headers, BODY),
        "body-reserialised",
        "pass the raw bytes on",
    ),
    "a newline that was lost": (
        Request("stripe", "POST", sent(BODY + b"\n").headers, BODY),
        "line-end-changed",
        "a newline at the end was lost",
    ),
    "no header": (Request("stripe", "POST", Headers(), BODY), "signature-missing", "Stripe-Signature is missing"),
    "a malformed header": (
        Request("stripe", "POST", Headers([("Stripe-Signature", "v0=00")]), BODY),
        "signature-malformed",
        "does not hold t=<timestamp> with v1=<hex>",
    ),
    "the scheme of another provider": (
        sent(by=provider("slack")(secrets="8f742231b10e8888abcd99yyyzzz85a5")),
        "other-provider",
        "the signature of Slack",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_request_that_does_not_verify_and_why(verify: Verify, what: str) -> None:
    request, cause, words = REFUSED[what]
    found = document(verify("stripe", request, "--secret", SECRET, *AT, "--json"))
    assert (found["verified"], found["status"], found["cause"], found["secret"]) == (False, 401, cause, None)
    assert words in found["says"]
    ended = verify("stripe", request, "--secret", SECRET, *AT)
    assert (ended.status, ended.stdout) == (1, f"refused: {found['says']}\n")


def test_the_clock_of_a_request_that_was_captured_long_ago(verify: Verify) -> None:
    found = document(verify("stripe", sent(), "--secret", SECRET, "--json"))
    assert found["cause"] == "clock"
    assert f"--at {NOW}" in found["says"]
    assert found["details"]["tolerance"] == 300
    assert verify("stripe", sent(), "--secret", SECRET, "--tolerance", 10**12).status == 0


def test_secrets_of_the_environment_and_of_files(
    verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("", "\n", "\r\n"):
        (tmp_path / "secret").write_bytes(f"{SECRET}{end}".encode())
        assert verify("stripe", sent(), "--secret-file", tmp_path / "secret", *AT).status == 0
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    assert verify("stripe", sent(), "--secret-env", "HOOK_SECRET", *AT).status == 0
    ended = verify("stripe", sent(), "--secret-env", "HOOK_SECRET", "--secret", OLD, *AT)
    assert "secret 2" in ended.stdout


def test_a_url_that_is_signed(verify: Verify) -> None:
    square = provider("square")(secrets=SECRET, url="https://example.com/hook")
    request = sent(by=square)
    assert verify("square", request, "--secret", SECRET, "--url", "https://example.com/hook").status == 0
    wrong = verify("square", request, "--secret", SECRET, "--url", "https://example.com/hook/", "--json")
    assert document(wrong)["cause"] == "wrong-url"
    missing = verify("square", request, "--secret", SECRET)
    assert (missing.status, missing.stdout) == (2, "")
    assert "--url" in missing.stderr


def test_a_method_and_a_query_that_are_signed(
    verify: Verify, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hubspot = provider("hubspot")(secrets=SECRET, url="https://example.com/hook?a=1")
    request = sent(by=hubspot)
    url = ("--url", "https://example.com/hook?a=1")
    assert verify("hubspot", request, "--secret", SECRET, *AT, *url, "--method", "post").status == 0
    assert verify("hubspot", request, "--secret", SECRET, *AT, *url, "--method", "PUT").status == 1
    assert verify("hubspot", request, "--secret", SECRET, *AT, *url, "--method", "P T").status == 2


def test_a_compressed_body(verify: Verify) -> None:
    request = sent()
    packed = Request(
        "stripe", "POST", Headers([*request.headers, ("Content-Encoding", "gzip")]), gzip.compress(request.body)
    )
    found = document(verify("stripe", packed, "--secret", SECRET, *AT, "--json"))
    assert (found["status"], found["cause"]) == (415, "unsupported-encoding")
    plain = verify("stripe", packed, "--secret", SECRET, *AT, "--content-encoding", "signed-plain")
    assert plain.status == 0
    assert verify("stripe", packed, "--secret", SECRET, "--content-encoding", "br").status == 2


@pytest.mark.parametrize("name", EVERY)
def test_every_provider_without_settings_that_only_handshakes_need(verify: Verify, name: str) -> None:
    made = make(provider(name))
    request = made.request()
    found = provider(name)
    secret = ("--secret", made.secret) if found.takes_secrets else ()
    if made.source.needs_network:
        return  # the keys of its provider's own server are not asked for here
    url = ("--url", made.sample.url or f"https://example.com/?{request.query}")
    settings = [] if found.schemes else [("--set", f"{key}={value}") for key, value in made.sample.settings.items()]
    more = (*secret, *(each for pair in settings for each in pair))
    ended = verify(name, request, *more, *url, *AT)
    assert ended.status == 0, ended
    spoilt = Request(name, "POST", Headers(), made.sample.body)
    assert verify(name, spoilt, *more, "--url", made.sample.url or "https://example.com/", *AT).status == 1


def test_the_settings_of_a_provider_with_code_of_its_own(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def made(keys: tuple[bytes, ...], settings: Settings) -> Any:
        given.append(settings.options)
        return stripe(secrets=str(settings.options["key"])).verifier

    acme = Provider(
        name="acme-pay",
        title="Acme Pay",
        documentation="https://acme.example/",
        family=Family.BODY_HMAC,
        verifier=made,
        options=(
            Option("key", "the other half of the secret", required=True, secret=True),
            Option("n", "a number", kind=int),
            Option("some", "texts", kind=(str, list, tuple)),
        ),
        survives="Nothing.",
    )
    monkeypatch.setattr("hookledger.sources.catalogue.provider", lambda name: acme)
    monkeypatch.setenv("OTHER_HALF", SECRET)
    common = ("acme-pay", sent(), "--secret", "unused", *AT)
    assert verify(*common, "--set", f"key={SECRET}", "--set", "n=3", "--set", "some=a,b").status == 0
    assert verify(*common, "--set", f"key={SECRET}", "--set", "some=a", "--set", "some=b").status == 0
    assert given == [{"key": SECRET, "n": 3, "some": "a,b"}, {"key": SECRET, "some": ["a", "b"]}]
    assert verify(*common, "--set-env", "key=OTHER_HALF").status == 0
    for wrong in ((), ("--set", f"kee={SECRET}"), ("--set", f"{SECRET}"), ("--set", f"n={SECRET}")):
        ended = verify(*common, *wrong)
        assert (ended.status, ended.stdout) == (2, "")
        assert ended.stderr.startswith("error: ")
        assert SECRET not in ended.stderr


def test_keys_that_cannot_be_had(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def verify(self, request: Request, now: float) -> None:
            raise KeysUnavailable("the key server keys.example cannot be reached")

    found = replace(provider("stripe"), schemes=(), verifier=lambda keys, settings: Away())
    monkeypatch.setattr("hookledger.sources.catalogue.provider", lambda name: found)
    told = document(verify("stripe", sent(), "--secret", SECRET, "--json"))
    assert (told["status"], told["cause"], told["secret"]) == (503, "keys-unavailable", None)
    assert "keys.example cannot be reached" in told["says"]


def test_headers_that_stand_elsewhere_than_the_signature_do_not_matter(verify: Verify) -> None:
    request = Request("stripe", "POST", Headers([("Host", "x"), *sent().headers, ("X", "\xe9")]), BODY)
    assert verify("stripe", request, "--secret", SECRET, *AT).status == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give it with --secret"),
        (("--secret", ""), "is empty"),
        (("--secret", "  "), "is blank"),
        (("--secret", f"{SECRET} "), "ends with white space"),
        (("--secret", f"sk_{SECRET}"), "is an API key"),
        (("--secret-env", "HOOKS_NOT_SET"), "the variable HOOKS_NOT_SET of --secret-env is not set"),
        (("--secret-env", f"whsec_{SECRET}"), "the variable of --secret-env is not set"),
        (("--secret-file", f"/nowhere/{SECRET}"), "cannot be read"),
        (("--secret-file", f"{SECRET}\x00"), "cannot be read"),
        (("--secret", SECRET, "--at", "nan"), "--at"),
        (("--secret", SECRET, "--url", f"https://[?token={SECRET}"), "the --url is no URL"),
        (("--secret", SECRET, "--at", "yesterday"), "--at"),
        (("--secret", SECRET, "--at", "1e300"), "--at"),
        (("--secret", SECRET, "--at", "-1"), "--at"),
        (("--secret", SECRET, "--tolerance", "0"), "above 0"),
        (("--secret", SECRET, "--set", f"a={SECRET}"), "it has none of its own"),
        (("--secret", SECRET, "--secret-file", "-", "--headers", "-"), "standard input can be read once"),
    ],
)
def test_wrong_use_is_told_in_one_sentence_without_the_secret(
    verify: Verify, arguments: tuple[str, ...], words: str
) -> None:
    ended = verify("stripe", sent(), *arguments)
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert words in ended.stderr
    assert SECRET not in ended.stderr


def test_no_output_shows_a_secret_or_a_right_signature(verify: Verify) -> None:
    for request, _, _ in REFUSED.values():
        right = str(SENT.signed(request.body, NOW).headers.get("Stripe-Signature"))
        for more in ((), ("--json",), ("--debug",)):
            ended = verify("stripe", request, "--secret", SECRET, "--secret", OLD, *AT, *more)
            for hidden in (SECRET, OLD, right):
                assert hidden not in ended.stdout + ended.stderr


def test_the_wrong_spelling_of_a_secret_of_standard_webhooks(verify: Verify) -> None:
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
    request = sent(by=standard_webhooks(secrets=secret))
    assert verify("standard-webhooks", request, "--secret", secret, *AT).status == 0
    ended = verify("standard-webhooks", request, "--secret", f"v1,{secret}", *AT)
    assert ended.status == 2
    assert "has something in front of 'whsec_'" in ended.stderr
