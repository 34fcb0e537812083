"""What must hold for every provider of the catalogue, each run over its own sample.

A new provider is tested by being in the catalogue. One with code of its own whose requests its secret cannot sign tells
in `made.OWN` how they are made.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hookledger.errors import NotVerified, SecretError, SetupError
from hookledger.http import Headers, Request
from hookledger.sources.catalogue import provider
from hookledger.sources.fields import EACH_REQUEST
from hookledger.sources.provider import Provider
from tests.unit.sources.made import EVERY, NOW, Made, configured, deliveries, make, verifies

UNUSED_SECRETS = ["", " ", "\n", "\t \r\n", "\ufeff", None, [], [""], ["  "]]


# What it is


def test_a_provider_says_all_that_people_need_to_know(made: Made) -> None:
    described = made.provider.described()
    for what in ("name", "title", "documentation", "family", "survives", "verified_by"):
        assert described[what].strip(), what
    assert described["documentation"].startswith("https://")
    assert made.source.provider == made.provider.name
    assert described["survives"].endswith(".")


def test_a_sample_is_one_that_the_provider_sends(made: Made) -> None:
    assert made.sample.events, "say what is read of it"
    for expected in made.sample.events:
        assert expected.event.event_id or made.provider.event_id in (None, EACH_REQUEST) or made.provider.reads
        assert expected.event.event_type or made.provider.event_type is None
        assert expected.event.resource or made.provider.resource is None
        assert expected.event.version is not None or made.provider.version is None


# Verifying


def test_a_request_that_is_signed_with_the_secret_verifies(made: Made) -> None:
    assert verifies(made.source, made.request())


def test_a_request_that_is_signed_with_another_secret_does_not_verify(made: Made) -> None:
    other = make(made.provider, seed=1)
    if other.secret != made.secret:
        assert not verifies(made.source, other.request())
        assert not verifies(other.source, made.request())


def test_any_of_several_secrets_verifies_and_tells_which(made: Made) -> None:
    other = make(made.provider, seed=1)
    if other.secret == made.secret or not made.provider.takes_secrets:
        return  # it shares no secret
    both = configured(made.provider, [other.secret, made.secret])
    for which, each in enumerate((other, made)):
        verified = both.verifier.verify(each.request(), NOW)
        assert verified is not None
        assert verified.secret == which


def test_a_request_without_its_headers_does_not_verify(made: Made) -> None:
    request = made.request()
    assert not verifies(made.source, replace(request, headers=Headers(), query="", body=made.sample.body))


def test_no_bit_of_the_body_can_be_changed(made: Made) -> None:
    if not made.covers_body:
        return  # its caution says so
    request = made.request()
    for place in range(0, len(request.body), max(1, len(request.body) // 97)):
        for bit in (1, 32, 128):
            body = bytearray(request.body)
            body[place] ^= bit
            changed = replace(request, body=bytes(body))
            assert not verifies(made.source, changed) or says_the_same(made, request, changed), (place, bit)
    for body in (request.body + b"\n", request.body[:-1], request.body * 2, b""):
        assert not verifies(made.source, replace(request, body=body))


def says_the_same(made: Made, first: Request, second: Request) -> bool:
    """Whether two bodies are two spellings of the same fields, as %2B and %2b are: some sign the fields."""
    return [each.data for each in deliveries(made.source, first)] == [
        each.data for each in deliveries(made.source, second)
    ]


def test_a_provider_whose_body_is_not_covered_says_so(made: Made) -> None:
    if not made.covers_body:
        assert "whoever sees one request" in made.provider.cautions


def test_no_bit_of_a_signed_header_can_be_changed(made: Made) -> None:
    pairs = list(made.request().headers)
    for number, (name, value) in enumerate(pairs):
        if name.lower() not in made.signed_headers:
            continue
        for place in range(len(value)):
            changed = list(value)
            changed[place] = chr(ord(value[place]) ^ 1)
            text = "".join(changed)
            if text.lower() == value.lower():
                continue  # hex digits count in either case
            headers = Headers([*pairs[:number], (name, text), *pairs[number + 1 :]])
            assert not verifies(made.source, replace(made.request(), headers=headers)), (name, place)


def test_a_request_whose_time_is_over_is_refused_if_the_provider_sets_a_limit(made: Made) -> None:
    request = made.request()
    assert verifies(made.source, request, NOW + 10**6) is not made.timestamped
    if made.timestamped:
        with pytest.raises(NotVerified, match="seconds old"):
            made.source.verifier.verify(request, NOW + 10**6)


def test_a_tolerance_is_taken_where_a_timestamp_is_signed_and_nowhere_else(made: Made) -> None:
    if not any(scheme.timestamped for scheme in made.provider.scheme_list) and not made.provider.takes_tolerance:
        with pytest.raises(SetupError, match="signs no timestamp"):
            configured(made.provider, made.secret, tolerance=60)
        return
    strict = configured(made.provider, made.secret, tolerance=60)
    assert verifies(strict, made.request(NOW - 60))
    assert not verifies(strict, made.request(NOW - 62))
    assert not verifies(strict, made.request(NOW + 62))
    for unusable in (0, -1, float("nan"), "300", True):
        with pytest.raises(SetupError, match="tolerance="):
            configured(made.provider, made.secret, tolerance=unusable)


# Secrets and settings


@pytest.mark.parametrize("secret", UNUSED_SECRETS, ids=repr)
def test_a_source_does_not_start_without_a_secret(made: Made, secret: object) -> None:
    if made.provider.takes_secrets:
        with pytest.raises(SecretError, match=f"^the source '{made.provider.name}'"):
            configured(made.provider, secret)


def test_white_space_around_a_secret_is_refused_and_the_secret_is_not_shown(made: Made) -> None:
    if not made.provider.takes_secrets:
        return
    for spoilt in (f"{made.secret}\n", f" {made.secret}", f"{made.secret} "):
        with pytest.raises(SecretError) as caught:
            configured(made.provider, spoilt)
        assert made.secret not in str(caught.value)


def test_the_secret_is_in_no_repr(made: Made) -> None:
    shown = repr(made.source) + repr(made.source.verifier) + repr(made.provider) + repr(made.sample)
    assert made.secret not in shown


def test_a_missing_secret_and_unknown_settings_are_told(made: Made) -> None:
    if made.provider.takes_secrets:
        with pytest.raises(SecretError, match=r"secrets=\.\.\. is needed"):
            made.provider(url=made.sample.url, **made.sample.settings)
    with pytest.raises(SetupError, match="the setting colour= is not known"):
        configured(made.provider, made.secret, colour="red")


def test_a_url_is_wanted_where_it_is_signed_and_refused_where_not(made: Made) -> None:
    if made.provider.signs_url:
        assert made.sample.url is not None
        with pytest.raises(SetupError, match=r"url=\.\.\. is needed"):
            configured(made.provider, made.secret, url=None)
        for unusable in ("", "example.com", "/webhooks", "ftp://example.com", "https://", "https://exa mple.com/"):
            with pytest.raises(SetupError, match="must be the public URL"):
                configured(made.provider, made.secret, url=unusable)
        elsewhere = configured(made.provider, made.secret, url="https://elsewhere.example/webhooks")
        assert not verifies(elsewhere, made.request())
    else:
        with pytest.raises(SetupError, match="url= is not used"):
            configured(made.provider, made.secret, url="https://example.com/webhooks")


def test_a_provider_is_found_by_its_name_in_either_spelling() -> None:
    for name in EVERY:
        found = provider(name)
        assert isinstance(found, Provider)
        assert found.name == name
        assert provider(name.replace("-", "_")) is found
