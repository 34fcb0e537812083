"""What handlers return, made ready for the state of a resource."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.errors import HandlerError
from hookledger.worker.state import DEEPEST, added_numbers, snapshot_state

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
odd_texts = st.text() | st.text(st.sampled_from("\x00\ud83d\ude00\\u0a☕"))
finite = st.integers(-(10**300), 10**300) | st.floats(allow_nan=False, allow_infinity=False)


def texts(value: Any) -> Iterator[str]:
    """All texts in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


@given(st.dictionaries(odd_texts, values | odd_texts))
def test_any_mapping_becomes_json_that_postgresql_holds(mapping: dict[str, Any]) -> None:
    text = snapshot_state(mapping)
    assert text is not None
    for held in texts(json.loads(text)):
        held.encode()
        assert "\x00" not in held


@given(st.dictionaries(st.text().filter(lambda name: "\x00" not in name), st.integers()))
def test_what_can_be_held_is_kept_as_it_is(mapping: dict[str, int]) -> None:
    text = snapshot_state(mapping)
    assert text is not None
    assert json.loads(text) == mapping


def test_nothing_is_no_state() -> None:
    assert snapshot_state(None) is None
    assert snapshot_state({}) == "{}"


@pytest.mark.parametrize("mapping", [OrderedDict(a=1), MappingProxyType({"a": 1}), {"a": 1}])
def test_any_kind_of_mapping(mapping: Any) -> None:
    assert snapshot_state(mapping) == '{"a":1}'


def test_keys_become_text_and_tuples_lists() -> None:
    assert snapshot_state({1: (1, 2), None: MappingProxyType({"x": ()})}) == '{"1":[1,2],"None":{"x":[]}}'


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"in": value}
    return value


def test_nesting_has_an_end() -> None:
    assert snapshot_state(nested(DEEPEST - 1)) is not None
    with pytest.raises(HandlerError, match="nested deeper"):
        snapshot_state(nested(DEEPEST + 1))


def test_a_mapping_within_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["in"] = endless
    with pytest.raises(HandlerError, match="nested deeper"):
        snapshot_state(endless)


@pytest.mark.parametrize("returned", ["text", [], 1, True, object(), {1, 2}])
def test_a_snapshot_handler_returns_a_mapping_or_none(returned: Any) -> None:
    with pytest.raises(HandlerError, match=type(returned).__name__):
        snapshot_state(returned)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), object(), b"bytes", Decimal(1), {1}])
def test_what_json_cannot_hold_is_told(value: Any) -> None:
    with pytest.raises(HandlerError, match="cannot be stored as JSON"):
        snapshot_state({"a": value})


@given(st.dictionaries(st.text(), finite))
def test_numbers_are_kept_exactly(mapping: dict[str, Any]) -> None:
    numbers = added_numbers(mapping)
    for name, value in mapping.items():
        found = numbers[name.replace("\x00", "\ufffd")] if "\x00" not in name else None
        if found is not None:
            assert found == (Decimal(repr(value)) if isinstance(value, float) else value)


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20)))
def test_sums_do_not_depend_on_the_order(values: list[Decimal]) -> None:
    numbers = [added_numbers({"n": value})["n"] for value in values]
    assert sum(numbers) == sum(reversed(numbers))


class Amount(float):
    """A float that shows itself otherwise, as those of numpy do."""

    def __repr__(self) -> str:
        return f"Amount({float(self)})"


def test_a_float_of_another_class_is_a_number() -> None:
    assert added_numbers({"n": Amount(0.1)}) == {"n": Decimal("0.1")}


def test_nothing_adds_nothing() -> None:
    assert added_numbers(None) == {}


@pytest.mark.parametrize("returned", ["text", [1], 1, object()])
def test_an_accumulate_handler_returns_a_mapping_or_none(returned: Any) -> None:
    with pytest.raises(HandlerError, match=type(returned).__name__):
        added_numbers(returned)


@pytest.mark.parametrize("value", ["1", True, None, [1], 1j, b"1"])
def test_what_is_no_number_is_told(value: Any) -> None:
    with pytest.raises(HandlerError, match="not a number"):
        added_numbers({"n": value})


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), Decimal("sNaN"), Decimal("-Infinity"), 10**1001, 10**5000, Decimal("1e-2000")],
    ids=["nan", "inf", "snan", "-inf", "long", "longest", "deep"],
)
def test_what_cannot_be_added_is_told(value: Any) -> None:
    with pytest.raises(HandlerError, match="cannot be added"):
        added_numbers({"n": value})
