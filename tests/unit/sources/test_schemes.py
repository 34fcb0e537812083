"""Every family of signature that a scheme can describe, and how wrong descriptions are told."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from hookledger.errors import Cause, NotVerified, SecretError, SetupError
from hookledger.http import Headers, Request
from hookledger.sources.any_scheme import AnyScheme
from hookledger.sources.places import Places
from hookledger.sources.scheme import Scheme, basic, bearer, shared_token
from hookledger.sources.scheme_signer import SchemeSigner
from hookledger.sources.scheme_verifier import SchemeVerifier
from hookledger.sources.secrets import SecretRules, read_secrets
from hookledger.sources.timestamps import TimestampUnit
from hookledger.sources.unverified import LARGEST_UNVERIFIED

NOW = 1_700_000_000
BODY = b'{"id":"e1"}'


def request(*headers: tuple[str, str], body: bytes = BODY, query: str = "", method: str = "POST") -> Request:
    return Request("s", method, Headers(headers), body, query=query)


def refused(verifier: SchemeVerifier | AnyScheme, sent: Request, now: float = NOW) -> NotVerified:
    with pytest.raises(NotVerified) as caught:
        verifier.verify(sent, now)
    return caught.value


def mac(message: bytes, algorithm: str = "sha256", key: bytes = b"k") -> bytes:
    return hmac.digest(key, message, algorithm)


# Shared secrets


def test_a_plain_digest_hashes_the_secret_along_whichever_of_them_it_is() -> None:
    for algorithm, name in (("digest-sha256", "sha256"), ("digest-sha1", "sha1")):
        scheme = Scheme((Places("X-Sig"),), algorithm, signed="{secret}{body}")  # type: ignore[arg-type]
        verifier = SchemeVerifier(scheme, [b"new", b"old"])
        for number, key in enumerate((b"new", b"old")):
            sent = request(("X-Sig", hashlib.new(name, key + BODY).hexdigest()))
            assert verifier.verify(sent, NOW).secret == number
        assert refused(verifier, request(("X-Sig", hashlib.new(name, b"third" + BODY).hexdigest())))


def test_base64url_is_for_hmacs_and_has_no_padding() -> None:
    verifier = SchemeVerifier(Scheme((Places("X-Sig"),), encoding="base64url"), [b"k"])
    written = base64.urlsafe_b64encode(mac(BODY)).decode()
    verifier.verify(request(("X-Sig", written.rstrip("="))), NOW)
    for other in (written, base64.b64encode(mac(BODY)).decode(), mac(BODY).hex()):
        refused(verifier, request(("X-Sig", other)))
    for algorithm in ("token", "ed25519"):
        with pytest.raises(SetupError, match="base64url"):
            Scheme((Places("X-Sig"),), algorithm, "base64url")  # type: ignore[arg-type]


def test_the_method_a_header_a_query_parameter_and_a_field_of_the_body_can_be_signed() -> None:
    scheme = Scheme((Places("X-Sig"),), signed="{method|lower}\n{header:X-Topic}\n{query:n}\n{body:id}\n{body}")
    verifier = SchemeVerifier(scheme, [b"k"])
    signature = mac(b"post\norders\n5\ne1\n" + BODY).hex()
    good = [("X-Sig", signature), ("X-Topic", "orders")]
    verifier.verify(request(*good, query="n=5"), NOW)
    refused(verifier, request(*good, query="n=6"))
    refused(verifier, request(*good, query="n=5", method="PUT"))
    refused(verifier, request(("X-Sig", signature), ("X-Topic", "refunds"), query="n=5"))


def test_the_url_is_the_configured_one_and_the_query_that_of_the_request() -> None:
    scheme = Scheme((Places("X-Sig"),), signed="{url}{body}")
    verifier = SchemeVerifier(scheme, [b"k"], url="https://example.com/hook")
    verifier.verify(request(("X-Sig", mac(b"https://example.com/hook" + BODY).hex()), ("Host", "evil.example")), NOW)
    with_query = mac(b"https://example.com/hook?a=1&b" + BODY).hex()
    verifier.verify(request(("X-Sig", with_query), query="a=1&b"), NOW)
    refused(verifier, request(("X-Sig", with_query), query="a=1"))
    fixed = SchemeVerifier(scheme, [b"k"], url="https://example.com/hook?app=1")
    fixed.verify(request(("X-Sig", mac(b"https://example.com/hook?app=1" + BODY).hex()), query="x=2"), NOW)
    with pytest.raises(SetupError, match="the URL is signed"):
        SchemeVerifier(scheme, [b"k"])


def test_hubspots_twelve_escapes_are_decoded_and_no_others() -> None:
    scheme = Scheme((Places("X-Sig"),), signed="{url|hubspot}{body}")
    for sent, signed in (
        ("https://example.com/a?b=%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B", "https://example.com/a?b=:/?@!$'()*,;"),
        ("https://example.com/a?b=%20%3D%3a%252F", "https://example.com/a?b=%20%3D:%252F"),
    ):
        verifier = SchemeVerifier(scheme, [b"k"], url=sent)
        verifier.verify(request(("X-Sig", mac(signed.encode() + BODY).hex())), NOW)


def test_several_numbered_headers_are_one_list() -> None:
    """https://developers.docusign.com/platform/webhooks/connect/hmac/"""
    verifier = SchemeVerifier(Scheme((Places("X-DocuSign-Signature-*"),), encoding="base64"), [b"new", b"old"])
    right = base64.b64encode(mac(BODY, key=b"old")).decode()
    sent = request(("X-DocuSign-Signature-1", "AAAA"), ("x-docusign-signature-12", right))
    assert verifier.verify(sent, NOW).secret == 1
    assert refused(verifier, request(("X-DocuSign-Signature-1", "AAAA"))).cause is Cause.NO_MATCH
    assert refused(verifier, request(("X-DocuSign", right))).cause is Cause.SIGNATURE_MISSING
    signed = SchemeSigner(verifier.scheme, b"new").sign(BODY, NOW)
    verifier.verify(request(*signed), NOW)


# Tokens


@pytest.mark.parametrize(
    ("scheme", "right", "wrong"),
    [
        (bearer(), "Bearer to,k en", ["Bearer to,k e", "Basic to,k en", "to,k en", "Bearer", ""]),
        (bearer(), "bearer to,k en", []),
        (basic(), "Basic dG8sayBlbg==", ["Basic dG8sayBlbg", "Basic to,k en", "Basic dG8sayBlbh==", "Basic \xe9"]),
        (shared_token("Authorization"), "to,k en", ["TO,K EN", "to,k en ", "Bearer to,k en"]),
    ],
)
def test_a_token_in_a_header(scheme: Scheme, right: str, wrong: list[str]) -> None:
    verifier = SchemeVerifier(scheme, [b"to,k en"])
    verifier.verify(request(("authorization", right)), NOW)
    for value in wrong:
        if value.strip(" ") != right:
            refused(verifier, request(("authorization", value)))
    verifier.verify(request(*SchemeSigner(scheme, b"to,k en").sign(BODY, NOW)), NOW)


def test_a_token_in_the_query() -> None:
    verifier = SchemeVerifier(shared_token("query:access_token"), [b"a b&c"])
    verifier.verify(request(query="x=1&access_token=a+b%26c"), NOW)
    verifier.verify(request(query="access_token=wrong&access_token=a%20b%26c"), NOW)
    for query in ("access_token=a", "access_token=", "", "Access_token=a+b%26c", "&" * 5000 + "access_token=a+b%26c"):
        refused(verifier, request(query=query))
    assert "query parameter access_token is missing" in str(refused(verifier, request()))
    signer = SchemeSigner(shared_token("query:access_token"), b"a b&c\xe9")
    assert (signer.query, list(signer.sign(b"{}", NOW))) == ("access_token=a+b%26c%E9", [])
    SchemeVerifier(shared_token("query:access_token"), [b"a b&c\xe9"]).verify(request(query=signer.query), NOW)
    with pytest.raises(SetupError, match="only a token can be put there"):
        SchemeSigner(Scheme((Places("query:sig"),)), b"x")


@pytest.mark.parametrize("body_format", ["json", "form"])
def test_a_token_in_the_body(body_format: Any) -> None:
    scheme = Scheme((Places("body:auth"),), "token", separator=None, covers_body=False, body_format=body_format)
    verifier = SchemeVerifier(scheme, ["café".encode()])
    bodies = {"json": '{"auth":"café"}'.encode(), "form": b"auth=caf%C3%A9&x=1"}
    verifier.verify(request(body=bodies[body_format]), NOW)
    for body in (b"", b"[]", b'{"auth":null}', b"auth=caf%E9", b'{"auth":["caf"]}', b"\xff", b'{"auth":"\\ud800"}'):
        refused(verifier, request(body=body))


def test_a_signature_in_a_large_body_is_not_looked_for() -> None:
    scheme = Scheme((Places("body:auth"),), "token", separator=None, covers_body=False)
    error = refused(SchemeVerifier(scheme, [b"k"]), request(body=b" " * LARGEST_UNVERIFIED + b'{"auth":"k"}'))
    assert "that are parsed before they are verified" in str(error)


# Timestamps


def test_a_time_in_the_signed_body_is_checked_after_the_signature() -> None:
    scheme = Scheme(
        (Places("X-Sig", "body:at"),), timestamp_unit="milliseconds", tolerance_past=60, tolerance_future=60
    )
    verifier = SchemeVerifier(scheme, [b"k"])
    body = b'{"at":%d}' % (NOW * 1000)
    good = request(("X-Sig", mac(body).hex()), body=body)
    verifier.verify(good, NOW + 60)
    late = refused(verifier, good, NOW + 61.4)
    assert (late.cause, late.details["tolerance"]) == (Cause.CLOCK, 60)
    assert late.details["clock_offset"] == pytest.approx(61.4)
    assert refused(verifier, good, NOW - 61).details["clock_offset"] == -61
    assert refused(verifier, request(("X-Sig", mac(body).hex()), body=body + b" "), NOW).cause is Cause.NO_MATCH
    for odd in (b"{}", b"[]", b"no json", b'{"at":"soon"}', b'{"at":true}', b'{"at":1e3}', b'{"at":%d}' % 10**50):
        error = refused(verifier, request(("X-Sig", mac(odd).hex()), body=odd), NOW)
        assert error.cause is not Cause.NO_MATCH
    signer = SchemeSigner(scheme, b"k")
    assert signer.signs_body
    stamped = signer.sign_body(b'{"at":5,"x":1}', NOW)
    assert stamped == b'{"at":1700000000000,"x":1}'
    verifier.verify(request(*signer.sign(stamped, NOW), body=stamped), NOW)


def test_a_scheme_without_a_limit_still_wants_a_time() -> None:
    scheme = Scheme(
        (Places("X-Sig", "X-Time"),), signed="{timestamp}{body}", tolerance_past=None, tolerance_future=None
    )
    verifier = SchemeVerifier(scheme, [b"k"])
    signature = ("X-Sig", mac(b"1500000000" + BODY).hex())
    verifier.verify(request(signature, ("X-Time", "1500000000")), NOW)
    # The boundary between time and body cannot be moved: what is left of the time would be none, or too short.
    for left in ("", "1", "150000000"):
        body = b"1500000000"[len(left) :] + BODY
        sent = request(signature, ("X-Time", left), body=body)
        assert refused(verifier, sent).cause is Cause.TIMESTAMP_MALFORMED


def test_a_written_time_is_signed_as_it_stands() -> None:
    scheme = Scheme((Places("X-Sig", "X-Time"),), signed="{timestamp}{body}", timestamp_unit="iso8601")
    verifier = SchemeVerifier(scheme, [b"k"])
    for written in ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20.123456789Z", "2023-11-14T23:13:20+01:00"):
        sent = request(("X-Sig", mac(written.encode() + BODY).hex()), ("X-Time", written))
        verifier.verify(sent, NOW)
    assert refused(verifier, sent, NOW + 301).cause is Cause.CLOCK


# Several schemes

STRONG = Scheme((Places("X-Sig"),), key_encoding="whsec")
WEAK = shared_token("X-Token")


def test_the_weaker_scheme_has_no_turn_when_the_stronger_ones_signature_is_there() -> None:
    both = AnyScheme([SchemeVerifier(STRONG, [b"k"], numbers=[1]), SchemeVerifier(WEAK, [b"token"], numbers=[0])])
    right, token = ("X-Sig", mac(BODY).hex()), ("X-Token", "token")
    assert both.verify(request(right), NOW).secret == 1
    assert both.verify(request(token), NOW).secret == 0
    assert both.verify(request(right, ("X-Token", "wrong")), NOW).secret == 1
    assert refused(both, request(("X-Sig", "00"), token)).cause is Cause.NO_MATCH
    assert refused(both, request(("X-Sig", ""), token)).cause is Cause.SIGNATURE_MALFORMED
    assert str(refused(both, request())) == "the header X-Sig or X-Token is missing"
    assert both.key_of(request(token)) == b"token"
    assert both.key_of(request(right)) == b"k"


def test_of_two_schemes_in_one_header_the_one_that_came_nearest_tells_the_reason() -> None:
    first, second = (Scheme((Places("X-Sig"),), prefixes=(prefix,)) for prefix in ("v1=", "v2="))
    both = AnyScheme([SchemeVerifier(first, [b"a"], numbers=[0]), SchemeVerifier(second, [b"b"], numbers=[1])])
    assert both.verify(request(("X-Sig", f"v2={mac(BODY, key=b'b').hex()}")), NOW).secret == 1
    for value in ("v1=00", "v2=00", "v3=00,v2=00"):
        assert refused(both, request(("X-Sig", value))).cause is Cause.NO_MATCH
    assert refused(both, request(("X-Sig", "v3=00"))).cause is Cause.SIGNATURE_MALFORMED


# Descriptions that could not work


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"algorithm": "hmac-md5"}, "algorithm='hmac-md5'"),
        ({"places": ()}, "name of the header"),
        ({"signed": "{secret}{body}"}, "belongs to a plain digest"),
        ({"algorithm": "digest-sha256"}, "belongs to a plain digest"),
        ({"signed": "{timestamp}", "places": (Places("X-Sig", "X-Time"),)}, r"lacks \{body\}"),
        ({"signed": "{url|rot13}{body}"}, "'rot13' is none of"),
        ({"signed": "{query:}{body}"}, "lacks a name"),
        ({"signed": "{headers:x}{body}"}, "is not the name of a header"),
        ({"algorithm": "token", "places": (Places("X-Sig", "body:at"),)}, "proves nothing"),
        ({"places": (Places("X-Sig", "query:at"),)}, "proves nothing"),
        ({"tolerance_past": 0}, "tolerance=0"),
        ({"begins": "{"}, "must be the bytes"),
    ],
)
def test_a_scheme_that_would_not_check_what_it_seems_to_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        Scheme(**{"places": (Places("X-Sig"),), **options})


@pytest.mark.parametrize("place", ["", "X Sig", "body:", "body:a..b", "query:", "*", None, "X:Y"])
def test_a_place_that_is_none_is_refused(place: Any) -> None:
    with pytest.raises(SetupError):
        Places(place)


# Spelling of secrets


@pytest.mark.parametrize(
    ("rules", "secret", "told"),
    [
        (SecretRules(pattern="[a-z]{3}", pattern_says="three letters"), "abcd", "must be three letters"),
        (SecretRules(pattern="[a-z]{3}", pattern_says="three letters"), b"\xff", "no text"),
        (SecretRules(refused=("published",)), "published", "anybody could sign with it"),
        (SecretRules(prefix="pdl_"), "abc", "must begin with 'pdl_'"),
        (SecretRules(foreign_prefixes=("sk_",)), "sk_live_1", "API key"),
    ],
)
def test_the_rules_of_a_provider_for_its_secrets(rules: SecretRules, secret: Any, told: str) -> None:
    with pytest.raises(SecretError, match=told) as caught:
        read_secrets("shop", secret, "utf-8", rules)
    assert "live_1" not in str(caught.value)


@pytest.mark.parametrize(
    ("unit", "written", "moved"),
    [
        ("seconds", str(NOW), 1),
        ("seconds", str(NOW), 10),
        ("milliseconds", str(NOW * 1000), 3),
        ("iso8601", "2023-11-14T22:13:20.123Z", 1),
        ("iso8601", "2023-11-14T22:13:20.123+00:00", 6),
        ("iso8601", "2023-11-14T22:13:20.123+00:00", 9),
    ],
)
def test_the_end_of_a_time_cannot_be_moved_into_the_body(unit: TimestampUnit, written: str, moved: int) -> None:
    places = (Places("X-Sig", "X-Time"),)
    scheme = Scheme(places, signed="{timestamp}{body}", timestamp_unit=unit, tolerance_past=None, tolerance_future=None)
    verifier = SchemeVerifier(scheme, [b"key"])
    signature = hmac.new(b"key", written.encode() + b"{}", "sha256").hexdigest()

    def sent(time: str, body: bytes) -> Request:
        return Request("s", "POST", Headers([("X-Sig", signature), ("X-Time", time)]), body)

    verifier.verify(sent(written, b"{}"), NOW)
    with pytest.raises(NotVerified):
        verifier.verify(sent(written[:-moved], written[-moved:].encode() + b"{}"), NOW)
