"""Where an error was raised, as the ledger and the log tell it."""

from __future__ import annotations

import importlib.util
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from hookledger.worker.outcome import Failure
from hookledger.worker.raised import Place, parts, place_of, with_place, without_parameters, without_place
from tests.unit.worker.deliveries import handler

HOOKS = """
import json
from somewhere import charge

def save(delivery, tx):
    return steps[delivery]()

def look():
    return {}["how"]

steps = {"own": look, "library": lambda: json.loads("{"), "beside": lambda: charge()}
"""
SERVICES = "def charge():\n    raise LookupError('no card')\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Makes hooks.py, and a module that it imports from a folder; gives the handler."""

    def make(folder: str) -> Any:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "somewhere.py").write_text(SERVICES)
        (tmp_path / "hooks.py").write_text(HOOKS)
        monkeypatch.syspath_prepend(str(tmp_path / folder))
        monkeypatch.delitem(__import__("sys").modules, "somewhere", raising=False)
        spec = importlib.util.spec_from_file_location("hooks", tmp_path / "hooks.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.save

    return make


def caught(call: Callable[..., Any], *arguments: Any) -> BaseException:
    try:
        call(*arguments)
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


def test_the_line_of_the_handlers_code(load: Callable[[str], Any]) -> None:
    save = load("lib")
    assert str(place_of(caught(save, "own", None), save)) == "at hooks.py:9 in look"


def test_what_a_library_raised_is_told_after_the_line_that_called_it(load: Callable[[str], Any]) -> None:
    save = load("lib")
    place = place_of(caught(save, "library", None), save)
    assert place is not None
    assert (place.file, place.function, place.line) == ("hooks.py", "<lambda>", 11)
    assert str(place).startswith("at hooks.py:11 in <lambda>, raised at decoder.py:")


def test_code_beneath_the_handlers_folder_is_its_own(load: Callable[[str], Any]) -> None:
    save = load("code")
    assert str(place_of(caught(save, "beside", None), save)) == "at somewhere.py:2 in charge"


def test_what_is_installed_beneath_it_is_not(load: Callable[[str], Any]) -> None:
    save = load("venv/lib/site-packages")
    told = str(place_of(caught(save, "beside", None), save))
    assert told == "at hooks.py:11 in <lambda>, raised at somewhere.py:2 in charge"


def test_what_was_not_raised_in_a_handler_has_no_place(load: Callable[[str], Any]) -> None:
    save = load("lib")
    assert place_of(ValueError("never raised"), save) is None
    assert place_of(caught(json.loads, "{"), save) is None


def test_the_first_cause_tells_the_place_where_the_error_itself_has_none() -> None:
    def raising() -> None:
        raise ValueError("first")

    own = Failure(handler(), LookupError("later"), caught(raising))
    assert str(own.place).endswith(" in raising")
    assert Failure(handler(), LookupError("later")).place is None


def test_the_place_is_the_second_line_and_the_first_stays() -> None:
    place = Place("hooks.py", "save", 42, "cursor.py:97 in execute")
    told = with_place("KeyError: 'how'\nDETAIL: x\nand y", place)
    assert told == "KeyError: 'how'\nat hooks.py:42 in save, raised at cursor.py:97 in execute\nDETAIL: x\nand y"
    assert parts(told) == ("KeyError: 'how'", str(place), "DETAIL: x\nand y")
    assert without_place(told) == "KeyError: 'how'\nDETAIL: x\nand y"
    assert without_place(with_place("KeyError: 'how'", place)) == "KeyError: 'how'"
    assert with_place("a\nb", None) == without_place("a\nb") == "a\nb"


def test_a_traceback_leaves_out_parameters() -> None:
    hidden = IntegrityError("INSERT INTO x VALUES (%s)", ("a secret",), ValueError("duplicate"))
    outer = LookupError("later")
    outer.__cause__ = ExceptionGroup("two", [hidden])
    hidden.__context__ = outer
    assert "a secret" in "".join(traceback.format_exception(outer))
    assert "a secret" not in "".join(traceback.format_exception(without_parameters(outer)))
