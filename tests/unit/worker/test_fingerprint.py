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
from hookledger.worker.raised import Place
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


UUIDS = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no customer 17", "no customer 18"),
        ("no customer cus_NffrFeUfNV2Hib for payout", "no customer cus_Qa8bCdefG1hiJk for payout"),
        ("no customer cus_NffrFeUfNVHib", "no customer cus_QaxbCdefGvhiJk"),
        ("no order " + UUIDS[0], "no order " + UUIDS[1]),
        ("no order " + UUIDS[0].replace("-", ""), "no order deadbeefdeadbeefdeadbeefdeadbeef"),
        ("token qWmRtYuIoPaS is spent", "token ZxKvBnMqWeRt is spent"),
        ("to ann@example.com", "to bob.smith@example.org"),
        ("nothing since 2031-05-04T13:58:02.17Z", "nothing since 2032-06-05T14:59:03Z"),
        ("12.50 is too much", "-1,250 is too much"),
        ("key 'a b' is missing", "key 'b c' is missing"),
        ("no 'evt_17'", "no 'evt_18'"),
        ("no 'cus_NffrFeUfNVHib'", "no 'cus_QaxbCdefGvhiJk'"),
        ('no "in_1Nabc"', 'no "in_2Nabd"'),
        ("at 0x7f00aa", "at 0x7f00bb"),
        ("Key (id)=(1) exists", "Key (id)=(2) exists"),
        ("got b'17'", "got b'18'"),
        ("same first line\nother second", "same first line\nand another"),
    ],
)
def test_what_changes_with_each_delivery_makes_no_difference(one: str, other: str) -> None:
    assert fingerprint("save", ValueError(one)) == fingerprint("save", ValueError(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("'amount'", "'how'"),
        ('relation "a" does not exist', 'relation "b" does not exist'),
        ('column "paid_at" is null', 'column "sent_at" is null'),
        ("no getCustomerName", "no getCustomerEmail"),
        ("no get_CustomerName", "no get_CustomerEmail"),
        ("it can't be found, isn't it", "it can't be sent, isn't it"),
        ("pre-paid only", "post-paid only"),
        ("is_in_an_x", "is_in_an_y"),
        ("CERTIFICATE_VERIFY_FAILED", "CERTIFICATE_HAS_EXPIRED"),
        ("shop.billing is down", "shop.orders is down"),
    ],
)
def test_plain_words_make_a_difference(one: str, other: str) -> None:
    assert fingerprint("save", ValueError(one)) != fingerprint("save", ValueError(other))


def test_what_makes_a_difference() -> None:
    marks = {
        fingerprint("save", ValueError("no customer 17")),
        fingerprint("keep", ValueError("no customer 17")),
        fingerprint("save", LookupError("no customer 17")),
        fingerprint("save", ValueError("no order 17")),
        fingerprint("save", ValueError("no customer 17"), Place("hooks.py", "save", 3)),
        fingerprint("save", ValueError("no customer 17"), Place("hooks.py", "keep", 3)),
        fingerprint("save", ValueError("no customer 17"), Place("orders.py", "save", 3)),
    }
    assert len(marks) == 7


def test_the_line_makes_no_difference() -> None:
    marks = {
        fingerprint("save", ValueError("no"), Place("hooks.py", "save", line, raised))
        for line, raised in ((3, None), (4, None), (4, "decoder.py:355 in raw_decode"))
    }
    assert len(marks) == 1


def test_the_class_stays_whole() -> None:
    first, second = type("Http404", (Exception,), {}), type("Http500", (Exception,), {})
    assert fingerprint("save", first("no")) != fingerprint("save", second("no"))
    assert fingerprint("save", first()) != fingerprint("save", second())


@given(st.text(max_size=300))
def test_a_fingerprint_is_sixteen_hexadecimal_digits(message: str) -> None:
    mark = fingerprint("save", ValueError(message))
    assert len(mark) == 16
    int(mark, 16)
