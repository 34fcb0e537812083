"""Every case has a test under its id, and the page says which."""

from __future__ import annotations

import re

from tests.cases.holding import holding
from tests.cases.table import CASES
from tests.docs import CASES_PAGE, COMMAND, cases_page

IDS = [f"B{number:03}" for number in range(1, 73)]


def test_the_table_has_every_case_in_order() -> None:
    assert [case.id for case in CASES] == IDS


def test_every_case_has_a_test_under_its_id() -> None:
    held = holding()
    assert [id for id in IDS if id not in held] == []
    assert set(held) <= set(IDS), "a test is named after a case that is not in the table"


def test_every_case_says_where_it_was_reported() -> None:
    for case in CASES:
        assert case.sources
        for source in case.sources:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+#[1-9][0-9]*", source), case


def test_the_page_of_cases_is_what_would_be_written() -> None:
    assert CASES_PAGE.read_text() == cases_page(), (
        f"docs/cases.md is out of date: run `{COMMAND}` and commit what it writes"
    )
