"""Header lines as people capture them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.cli.captured import read_headers
from hookledger.cli.errors import WrongUse


@pytest.mark.parametrize(
    ("raw", "pairs"),
    [
        (b"A: 1\r\nB: 2\r\n\r\n", [("A", "1"), ("B", "2")]),
        (b"A: 1\nB:2", [("A", "1"), ("B", "2")]),
        (b"\n\nA: 1\n\n \n", [("A", "1")]),
        (b"A: 1\na: 1\n", [("A", "1"), ("a", "1")]),
        (b"A:  t=1, v1=a:b \t\n", [("A", "t=1, v1=a:b")]),
        (b"A:\nB: \xe9\xff\n", [("A", ""), ("B", "\xe9\xff")]),
        (b"A: one\r\n two\r\n\tthree\r\n", [("A", "one two three")]),
        (b"\xef\xbb\xbfA: 1\n", [("A", "1")]),
        (b"", []),
    ],
)
def test_lines_that_end_in_either_way(raw: bytes, pairs: list[tuple[str, str]]) -> None:
    captured = read_headers(raw, "headers.txt")
    assert list(captured.headers) == pairs
    assert (captured.method, captured.target) == (None, None)


def test_a_request_line_may_stand_before_them() -> None:
    captured = read_headers(b"PUT /hook?a=1 HTTP/1.1\r\nHost: x\r\n\r\n", "headers.txt")
    assert (captured.method, captured.target) == ("PUT", "/hook?a=1")
    assert list(captured.headers) == [("Host", "x")]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b'{"id":1}', "line 1 of headers.txt is no header"),
        (b"A: 1\nnothing\n", "line 2 of headers.txt is no header"),
        (b"A: 1\n: 2\n", "line 2 of headers.txt is no header"),
        (b"A B: 1\n", "line 1 of headers.txt is no header"),
        (b"A: 1\r\n\r\n{}", "after the blank line 2, where headers end"),
        (b"A: 1\nPOST / HTTP/1.1\n", "line 2 of headers.txt is no header"),
    ],
)
def test_what_is_no_header_is_told_by_its_line_and_not_repeated(raw: bytes, words: str) -> None:
    with pytest.raises(WrongUse, match=words) as caught:
        read_headers(raw, "headers.txt")
    assert "nothing" not in str(caught.value)


@given(st.binary())
def test_anything_else_is_headers_or_wrong_use(raw: bytes) -> None:
    with contextlib.suppress(WrongUse):
        read_headers(raw, "headers.txt")
