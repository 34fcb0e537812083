"""Errors in words, and fingerprints that are the same for one cause."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from hookledger.storable import LONGEST_ERROR
from hookledger.worker.fingerprint import fingerprint, in_words
from hookledger.worker.outcome import Failure
from tests.unit.worker.deliveries import handler


class Unspeakable(Exception):
    """Its text cannot be made."""

    def __str__(self) -> str:
        raise SystemExit(1)


class NoText(Exception):
    """Its text is no text."""

    def __str__(self) -> str:
        return None  # type: ignore[return-value]


def test_the_class_and_the_message() -> None:
    assert in_words(ValueError("no")) == "ValueError: no"
    assert in_words(ValueError()) == "ValueError"
    assert in_words(KeyError("id")) == "KeyError: 'id'"


def test_statements_and_their_parameters_are_left_out() -> None:
    error = IntegrityError("INSERT INTO x VALUES (%s)", ("a secret",), psycopg.IntegrityError("duplicate key"))
    assert in_words(error) == "IntegrityError: duplicate key"


@pytest.mark.parametrize("error", [Unspeakable(), NoText()])
def test_an_error_without_a_text_is_told_all_the_same(error: Exception) -> None:
    assert in_words(error).startswith(f"{type(error).__name__}: its text could not be made")
    assert len(fingerprint("save", error)) == 16


@given(st.text() | st.text(st.sampled_from("\x00\ud83d\ude00a☕")))
def test_any_message_can_be_stored(message: str) -> None:
    told = in_words(ValueError(message))
    told.encode()
    assert "\x00" not in told


def test_a_long_message_is_cut() -> None:
    assert len(in_words(ValueError("x" * 10**6))) < LONGEST_ERROR + 100


def test_the_first_cause_is_told_too() -> None:
    assert Failure(handler(), LookupError("later"), ValueError("first")).words == (
        "LookupError: later; the first error was: ValueError: first"
    )
    assert Failure(handler(), LookupError("later")).words == "LookupError: later"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no customer 17", "no customer 18"),
        ("key 'a' is missing", "key 'b c' is missing"),
        ('relation "x" is gone', 'relation "y" is gone'),
        ("at 0x7f00aa", "at 0x7f00bb"),
        ("Key (id)=(1) exists", "Key (id)=(2) exists"),
        ("same first line\nother second", "same first line\nand another"),
    ],
)
def test_numbers_and_names_make_no_difference(one: str, other: str) -> None:
    assert fingerprint("save", ValueError(one)) == fingerprint("save", ValueError(other))


def test_what_makes_a_difference() -> None:
    marks = {
        fingerprint("save", ValueError("no customer 17")),
        fingerprint("keep", ValueError("no customer 17")),
        fingerprint("save", LookupError("no customer 17")),
        fingerprint("save", ValueError("no order 17")),
    }
    assert len(marks) == 4


@given(st.text(max_size=300))
def test_a_fingerprint_is_sixteen_hexadecimal_digits(message: str) -> None:
    mark = fingerprint("save", ValueError(message))
    assert len(mark) == 16
    int(mark, 16)
