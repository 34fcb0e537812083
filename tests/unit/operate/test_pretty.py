"""Bodies for people: any bytes are shown, nothing drives the terminal, no secret is told (B071)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookledger.operate.pretty import LONGEST_SHOWN, MOST_LINES, masked_text, shown_body

FORM = "application/x-www-form-urlencoded; charset=utf-8"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_json_is_indented_in_the_spelling_of_the_sender() -> None:
    body = b'{"a":1.10,"b":[1e400,9007199254740993,{"c":"\\u001b[31m"},[]],"a":{},"d":null,"e":"\\ud800"}'
    assert shown_body(body).split("\n") == [
        "{",
        '  "a": 1.10,',
        '  "b": [',
        "    1e400,",
        "    9007199254740993,",
        "    {",
        '      "c": "\\u001b[31m"',
        "    },",
        "    []",
        "  ],",
        '  "a": {},',
        '  "d": null,',
        '  "e": "\\ud800"',
        "}",
    ]


@given(st.lists(json_values) | st.dictionaries(st.text(), json_values), st.booleans())
def test_indented_json_means_the_same(document: object, ascii_only: bool) -> None:
    body = json.dumps(document, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    shown = shown_body(body)
    if ascii_only and "[masked, " not in shown and "lines more" not in shown:
        assert json.dumps(json.loads(shown)) == json.dumps(json.loads(body))


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")), st.sampled_from(["", FORM]))
def test_any_bytes_give_lines_that_can_be_printed(body: bytes, content_type: str) -> None:
    for line in shown_body(body, content_type).split("\n"):
        assert line.replace("\t", "").isprintable()


@pytest.mark.parametrize(
    "body",
    [
        b"\x1b]0;title\x07\x1b[2J",
        "\u202e\u2066evil\u200b".encode(),
        b"line\rover",
        b"\x9b31m",
        '{"\u202e": "\x1b[1m"}'.encode(),
    ],
)
def test_nothing_drives_the_terminal(body: bytes) -> None:
    shown = shown_body(body)
    assert not {"\x1b", "\x07", "\r", "\u202e", "\u2066", "\x9b", "\u200b"} & set(shown)


def test_html_stays_text() -> None:
    assert shown_body(b'{"type": "<img src=x onerror=alert(1)>"}').count("<img src=x onerror=alert(1)>") == 1


def test_binary_bytes_are_shown_as_digits() -> None:
    shown = shown_body(b"\x00\x01abc" + bytes(range(256)) * 4)
    assert shown.startswith("binary, 1,029 bytes:\n00000000  00 01 61 62 63 00 01")
    assert shown.endswith("... 517 bytes more, which --raw shows")
    assert shown_body("naïve".encode("latin-1")).startswith("binary, 5 bytes:")


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": {"api_key": "top-secret"}}',
        b'{"client_secret": ["top-secret", {"x": "top-secret"}]}',
        b'{"\\u0074oken": "top-secret"}',
        b'{"token": "top-secret',
        b'{"tokens": {"a": "top-secret", "b": top-secret',
        b'[{"password":\n"top-secret"}, oops]',
    ],
)
def test_secret_members_are_masked_even_in_broken_json(body: bytes) -> None:
    assert "top-secret" not in shown_body(body)
    assert "top-secret" not in masked_text(body.decode())
    assert "[masked" in shown_body(body)


def test_the_rest_of_a_masked_text_is_exact() -> None:
    text = ' {"a" : 1.0 ,\n\t"token":"top-secret" , "b":[ ]}\n'
    assert masked_text(text) == text.replace('"top-secret"', '"[masked, 10 characters]"')
    assert masked_text("plain token=top-secret") == "plain token=top-secret"
    assert masked_text("a=1&access%5Ftoken=top-secret&b=&token=", FORM) == (
        "a=1&access%5Ftoken=[masked, 10 characters]&b=&token="
    )


def test_large_and_deep_bodies_are_cut() -> None:
    deep = shown_body(b"[" * 1_000_000)
    assert deep.count("\n") <= MOST_LINES + 2
    assert f"{1_000_000 - LONGEST_SHOWN:,} bytes more" in deep
    long = shown_body(json.dumps({"a": "x" * 10, "text": "ü" * LONGEST_SHOWN}, ensure_ascii=False).encode())
    assert long.startswith('{\n  "a": "xxxxxxxxxx"')
    assert "bytes more, which --raw shows" in long
    assert len(long) < LONGEST_SHOWN + 1000
