"""The result as it is printed."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from hookledger.demo.progress import Lines
from hookledger.demo.report import Result, as_document, as_table

RIGHT = Result(12_000, 12_000, 10_000, 7_500, 1_500, 1_000, 2_016, 0, 0, 0, 1, 20.0, 0.25, 3.5)


def test_the_keys_of_the_document() -> None:
    document = json.loads(json.dumps(as_document(RIGHT)))
    assert document == {
        "sent": 12_000,
        "accepted": 12_000,
        "unique": 10_000,
        "applied": 7_500,
        "stale": 1_500,
        "superseded": 1_000,
        "resent": 2_016,
        "lost": 0,
        "doubled": 0,
        "misordered": 0,
        "workers_killed": 1,
        "seconds": 20.0,
    }


def test_the_table_holds_all_numbers() -> None:
    lines = {line[:20].strip(): line.split() for line in as_table(RIGHT).splitlines()}
    for name in ("sent", "accepted", "unique", "applied", "stale", "superseded", "resent", "lost", "doubled"):
        assert f"{getattr(RIGHT, name):,}" in lines[name]
    assert "0" in lines["misordered"]
    assert "500" in lines["rate"]
    assert "250 ms" in as_table(RIGHT)
    assert "3.50 s" in as_table(RIGHT)


@pytest.mark.parametrize("fault", ["lost", "doubled", "misordered"])
def test_one_fault_is_enough_to_be_wrong(fault: str) -> None:
    assert RIGHT.right
    assert not replace(RIGHT, **{fault: 1}).right


def test_nothing_at_all_has_no_rate() -> None:
    nothing = Result(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
    assert nothing.rate == 0
    assert "-" in as_table(nothing)


def test_plain_lines_are_few() -> None:
    output = io.StringIO()
    lines = Lines(output)
    lines.begin(120, 100)
    for sent in range(121):
        lines.update(sent, max(0, sent - 20))
    told = output.getvalue().splitlines()
    assert len(told) == 10
    assert told[-1] == "sent 120 of 120, settled 100 of 100"
