"""The catalogue: built-in providers, those of plugins, and that none is imported before it is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hookledger
import hookledger.sources
from hookledger.errors import SetupError
from hookledger.http import Headers, Request
from hookledger.sources import Provider, catalogue
from hookledger.sources.catalogue import BUILT_IN, names, provider, providers
from hookledger.sources.describe import Expected, Family, Option, Places, Sample, Scheme, SecretRules
from hookledger.sources.handshakes import meta_hub_challenge

SAMPLES = Path(catalogue.__file__).with_name("samples")
FUNCTIONS = {"hmac_source"}
CLASSES = {"Account", "Event", "Provider", "Source", "Verified", "Verifier"}


def test_every_provider_can_be_imported_by_name_and_no_other_can() -> None:
    offered = set(hookledger.sources.__all__) - CLASSES - FUNCTIONS
    assert offered == {name.replace("-", "_") for name in BUILT_IN}
    for name in offered:
        assert callable(getattr(hookledger.sources, name))
    assert set(dir(hookledger.sources)) >= set(hookledger.sources.__all__)
    with pytest.raises(AttributeError, match="shopfy"):
        _ = hookledger.sources.shopfy


def test_type_checkers_see_what_is_imported_when_it_is_used() -> None:
    text = Path(str(hookledger.sources.__file__)).read_text("utf-8")
    block = text[text.index("if TYPE_CHECKING:") : text.index("__all__")]
    imports = [line.rpartition(" import ")[2] for line in block.splitlines() if " import " in line]
    seen = {name.strip() for line in imports for name in line.split(",")}
    assert seen == set(hookledger.sources.__all__)


def test_every_sample_belongs_to_a_provider() -> None:
    assert {path.stem for path in SAMPLES.glob("*.json")} == set(BUILT_IN)


def test_the_names_are_in_order_and_unique() -> None:
    assert list(BUILT_IN) == sorted(BUILT_IN)
    assert [each.name for each in providers()] == names()
    titles = [each.title for each in providers()]
    assert len(set(titles)) == len(titles)


def test_importing_hookledger_and_its_sources_imports_no_provider() -> None:
    code = (
        "import sys, hookledger, hookledger.sources, hookledger.sources.catalogue as c\n"
        "c.names()\n"
        "print(sorted(m for m in sys.modules if m.startswith('hookledger.sources.providers.')))\n"
        "from hookledger.sources import zoom, Source\n"
        "print(sorted(m for m in sys.modules if m.startswith('hookledger.sources.providers.')))\n"
        "print('cryptography' in sys.modules)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["[]", "['hookledger.sources.providers.zoom']", "False"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("shopfy", "did you mean 'shopify'"),
        ("standard_webhook", "did you mean 'standard-webhooks'"),
        ("qqqq", "`hookledger sources` lists the built-in"),
        (None, "no provider is named None"),
    ],
)
def test_an_unknown_provider_is_told(name: Any, told: str) -> None:
    with pytest.raises(SetupError, match=told):
        provider(name)


# Plugins


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that is installed, with providers of its own."""
    (tmp_path / "acme_hookledger.py").write_text(
        "from hookledger.sources.describe import Family, Places, Provider, Scheme\n"
        "def named(name):\n"
        "    return Provider(name=name, title='Acme ' + name, documentation='https://acme.example/webhooks',\n"
        "                    family=Family.BODY_HMAC, survives='The id.', schemes=Scheme((Places('X-Acme'),)))\n"
        "ACME, EVIL, OTHER = named('acme'), named('evil-stripe'), named('other')\n"
        "NO_PROVIDER = 5\n"
    )
    information = tmp_path / "acme_hookledger-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-hookledger\nVersion: 1\n")
    (information / "entry_points.txt").write_text(
        "[hookledger.sources]\n"
        "acme = acme_hookledger:ACME\n"
        "stripe = acme_hookledger:EVIL\n"
        "misnamed = acme_hookledger:OTHER\n"
        "broken = acme_no_such_module:ACME\n"
        "none = acme_hookledger:NO_PROVIDER\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_plugin_adds_a_provider(plugin: Path) -> None:
    acme = provider("acme")
    assert "acme" in names()
    source = acme(secrets="k-test-1")
    request = source.signed(b'{"id":"e1","type":"a"}', 0)
    source.verifier.verify(request, 0)
    assert source.read(request)[0].event_id == "e1"


def test_a_plugin_cannot_take_the_place_of_a_built_in_provider(plugin: Path) -> None:
    assert provider("stripe").title == "Stripe"


@pytest.mark.parametrize(
    ("name", "told"),
    [("broken", "ModuleNotFoundError"), ("none", "gives no Provider, but int"), ("misnamed", "the other name")],
)
def test_a_broken_plugin_is_told_and_spoils_no_other(
    plugin: Path, name: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SetupError, match=told):
        provider(name)
    found = {each.name for each in providers()}
    assert {"acme", *BUILT_IN} == found
    assert told in caplog.text


# Descriptions

COMPLETE: dict[str, Any] = {
    "name": "acme-pay",
    "title": "Acme Pay",
    "documentation": "https://acme.example/webhooks",
    "family": Family.BODY_HMAC,
    "survives": "The id.",
    "schemes": Scheme((Places("X-Acme-Signature"),)),
}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "Acme"}, "must be lower-case words"),
        ({"name": "acme_pay"}, "must be lower-case words"),
        ({"title": " "}, "needs title="),
        ({"survives": ""}, "needs survives="),
        ({"documentation": "http://acme.example"}, "https address"),
        ({"schemes": ()}, "needs schemes="),
        ({"verifier": lambda keys, settings: None}, "not both"),
    ],
)
def test_a_description_that_is_not_complete_is_told(change: dict[str, Any], told: str) -> None:
    with pytest.raises(SetupError, match=told):
        Provider(**{**COMPLETE, **change})


def test_a_field_that_could_not_be_read_is_told_with_the_name_of_the_source() -> None:
    broken = Provider(**{**COMPLETE, "event_id": "a..b"})
    with pytest.raises(SetupError, match=r"^the source 'shop': event_id="):
        broken("shop", secrets="k")


def test_ten_lines_make_a_provider() -> None:
    acme = Provider(
        name="acme-pay",
        title="Acme Pay",
        documentation="https://acme.example/webhooks",
        family=Family.TIMED_HMAC,
        schemes=Scheme((Places("X-Acme-Signature", "X-Acme-Time"),), prefixes=("v1=",), signed="{timestamp}.{body}"),
        secret=SecretRules(foreign_prefixes=("api_",)),
        event_id="event.id",
        resource="event.object.id",
        survives="event.id is the same at every attempt.",
        sample=Sample(b'{"event":{"id":"e1"}}', (Expected(hookledger.Event("e1", "")),)),
    )
    source = acme(secrets=["new", "old"])
    request = source.signed(b'{"event":{"id":"e1","object":{"id":7}},"type":"paid"}', 1_700_000_000)
    source.verifier.verify(request, 1_700_000_000)
    assert source.read(request) == (hookledger.Event("e1", "paid", "7"),)
    assert acme.example().body == b'{"event":{"id":"e1"}}'
    with pytest.raises(SetupError, match="has no sample"):
        Provider(**COMPLETE).example()


def test_settings_of_a_provider_s_own_are_checked_at_start() -> None:
    options = (
        Option("verify_token", "the token that you typed in", required=True, secret=True),
        Option("on_secret", "a function", kind=Callable),
    )
    meta = Provider(**{**COMPLETE, "options": options, "probe": meta_hub_challenge})
    source = meta(secrets="k", verify_token="t-1", on_secret=print)
    query = "hub.mode=subscribe&hub.verify_token=t-1&hub.challenge=5"
    answer = source.answer_probe(Request("acme-pay", "GET", Headers(), b"", query=query))
    assert answer is not None
    assert answer.body == b"5"
    for given, told in (
        ({}, "needs verify_token=..., the token that you typed in"),
        ({"verify_token": None}, "needs verify_token="),
        ({"verify_token": " "}, "is blank"),
        ({"verify_token": "t-1\n"}, "white space around it"),
        ({"verify_token": 5}, "must be the token that you typed in"),
        ({"verify_token": "t-1", "on_secret": "f"}, "must be a function"),
        ({"verify_token": "t-1", "verifytoken": "t-1"}, "verifytoken= is not known: it has on_secret, verify_token"),
    ):
        with pytest.raises(SetupError, match=told.replace(".", r"\.")) as caught:
            meta("shop", secrets="k", **given)
        assert str(caught.value).startswith("the source 'shop'")
        assert "t-1" not in str(caught.value)
    assert "t-1" not in repr(source)


def test_a_provider_that_shares_no_secret_takes_none() -> None:
    class Any:
        def verify(self, request: Request, now: float) -> None:
            return None

    fetched = Provider(
        **{
            **COMPLETE,
            "schemes": (),
            "verifier": lambda keys, settings: Any(),
            "takes_secrets": False,
        }
    )
    source = fetched()
    assert source.sign is None
    source.verifier.verify(Request("acme-pay", "POST", Headers(), b""), 0)
    with pytest.raises(SetupError, match="shares no secret"):
        fetched(secrets="k")
