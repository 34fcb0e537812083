"""`hookledger sources`: the list, and one provider whole."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from hookledger.cli.sources import LONGEST_CELL, WIDEST, short
from hookledger.sources.catalogue import names, provider
from tests.unit.cli.calling import call
from tests.unit.sources.made import make

ACME = replace(provider("stripe"), name="acme-pay", verified_by=())


def test_the_list_has_every_provider(capsys: pytest.CaptureFixture[str]) -> None:
    ended = call(capsys, "sources")
    assert (ended.status, ended.stderr) == (0, "")
    heading, *rows = ended.stdout.splitlines()
    assert heading.split("  ")[0] == "name"
    assert [row.split()[0] for row in rows] == names()
    assert max(map(len, [heading, *rows])) <= WIDEST
    (stripe,) = [row for row in rows if row.startswith("stripe ")]
    assert [cell.strip() for cell in stripe.split("  ") if cell.strip()] == [
        "stripe",
        "timed HMAC",
        "id",
        "created",
        "-",
        "yes",
    ]


def test_the_list_as_json_is_each_provider_whole(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(call(capsys, "sources", "--json").stdout)["providers"]
    assert [each["name"] for each in listed] == names()
    for each in listed:
        assert each == json.loads(call(capsys, "sources", each["name"], "--json").stdout)
        assert each["documentation"].startswith("https://")
        assert each["family"]
        assert each["survives"]


@pytest.mark.parametrize("name", names())
def test_one_whole(capsys: pytest.CaptureFixture[str], name: str) -> None:
    found = provider(name)
    ended = call(capsys, "sources", name)
    assert (ended.status, ended.stderr) == (0, "")
    said = " ".join(ended.stdout.split())
    for text in (found.title, found.documentation, found.survives, found.cautions, *found.unconfirmed):
        assert " ".join(text.split()) in said
    for option in found.options:
        assert f"{option.name} {option.says}" in said
    for each in found.verified_by:
        assert each in said


@pytest.mark.parametrize("name", names())
def test_whether_it_can_be_sent_is_true_of_a_source(name: str) -> None:
    found = provider(name)
    assert found.can_be_sent == (make(found).source.sign is not None)


def test_a_plugin_is_listed_and_one_that_breaks_is_told_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = [
        EntryPoint("acme-pay", "tests.unit.cli.test_sources:ACME", "hookledger.sources"),
        EntryPoint("broken", "tests.unit.cli.nothing:HERE", "hookledger.sources"),
    ]
    monkeypatch.setattr("hookledger.sources.catalogue.entry_points", lambda group: plugins)
    ended = call(capsys, "sources", "--json")
    (acme,) = [each for each in json.loads(ended.stdout)["providers"] if each["name"] == "acme-pay"]
    assert (acme["built_in"], acme["can_be_sent"], acme["verified_by"]) == (False, True, [])
    assert "documentation only" not in call(capsys, "sources", "acme-pay").stdout
    ended = call(capsys, "sources", "broken")
    assert (ended.status, ended.stdout) == (2, "")
    assert "cannot be loaded" in ended.stderr


def test_an_unknown_name(capsys: pytest.CaptureFixture[str]) -> None:
    ended = call(capsys, "sources", "shoppify")
    assert (ended.status, ended.stdout) == (2, "")
    assert "did you mean 'shopify'?" in ended.stderr


def test_a_long_field_is_cut_between_its_parts() -> None:
    assert short("id") == "id"
    assert (
        short("portalId / subscriptionId / eventId / objectId / occurredAt")
        == "portalId / subscriptionId / eventId ..."
    )
    assert short("x" * (LONGEST_CELL + 9)) == "x" * (LONGEST_CELL + 9)
