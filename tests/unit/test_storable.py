"""Values from a sender's bytes become text that PostgreSQL stores, and that still tells them apart (D2)."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookledger.storable import LONGEST_ERROR, LONGEST_KEY, LONGEST_LABEL, identifier, key, label, message, text

# Every code point of Python, the halves of surrogate pairs and NUL among them, which st.text() leaves out in part.
anything = (
    st.text(st.characters(exclude_categories=()))
    | st.text(st.sampled_from("a\x00\ud83d\ude00\ufffdü"))
    | st.text(min_size=400)
)


def storable(value: str) -> bool:
    """Whether a text column of PostgreSQL in UTF-8 holds it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in value


@given(anything)
def test_everything_becomes_storable_and_short(value: str) -> None:
    for made in (text(value), key(value), label(value), message(value)):
        assert storable(made)
    assert len(key(value).encode()) <= LONGEST_KEY
    assert len(label(value)) <= LONGEST_LABEL
    assert len(message(value)) <= LONGEST_ERROR + 50


@given(anything)
def test_what_can_be_stored_stays_as_it_is(value: str) -> None:
    if storable(value):
        assert text(value) == value
        if len(value.encode()) <= LONGEST_KEY:
            assert key(value) == value


@given(anything)
def test_a_key_is_its_own_key(value: str) -> None:
    """It may be made by a source, and then by the receiver again."""
    assert key(key(value)) == key(value)


@given(anything, anything)
@example("a\x00b", "a\ufffdb")
@example("a\ud83d", "a\ud83e")
@example("a\ud83d", "a\ufffd")
@example("\x00", "\ud800")
@example("x" * 600, "x" * 601)
@example("x" * 600 + "a", "x" * 600 + "b")
@example("ü" * 257, "ü" * 258)
def test_distinct_names_have_distinct_keys(left: str, right: str) -> None:
    if left not in (right, key(right)) and right != key(left):
        assert key(left) != key(right)


@given(st.lists(anything, unique=True, max_size=20))
def test_distinct_names_have_distinct_identifiers(names: list[str]) -> None:
    named = [name for name in names if name.strip() and key(name) == name]
    assert len({identifier(name) for name in named}) == len(named)


@pytest.mark.parametrize("value", ["", " ", "\t\r\n", "\u3000", None, 0, -0, False, True, 1.5, {}, [], {"a": 1}, b"x"])
def test_b026_a_blank_names_nothing(value: object) -> None:
    assert identifier(value) is None


@given(st.integers().filter(bool))
@example(9007199254740993)
@example(9007199254740992)
@example(10**400)
@example(10**5000)
@example(-(10**5000))
def test_b016_an_integer_is_its_digits_as_long_as_python_writes_them(number: int) -> None:
    made = identifier(number)
    assert made is not None
    assert storable(made)
    if abs(number) < 10**100:
        assert made == str(number)
    assert made != identifier(number + 1)


def test_b016_python_s_limit_for_digits_costs_no_event() -> None:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert identifier(10**700) != identifier(10**700 + 1)
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_long_message_says_how_much_is_missing() -> None:
    assert message("x" * (LONGEST_ERROR + 7)).endswith("(7 characters more)")
    assert message("x" * LONGEST_ERROR) == "x" * LONGEST_ERROR
