"""The documentation says what is so."""

from __future__ import annotations

import pytest

from hookledger.doctor.examine import NAMES
from hookledger.errors import Cause
from hookledger.sources.catalogue import BUILT_IN, provider
from tests.docs import COMMAND, NUMBER, PAGE, ROOT, page, vectors_of
from tests.unit.sources.vendors import LIBRARIES, WITH_TESTS_OF_THEIR_OWN


def test_the_page_of_providers_is_what_would_be_written() -> None:
    assert PAGE.read_text() == page(), f"docs/providers.md is out of date: run `{COMMAND}` and commit what it writes"


def test_every_provider_is_in_the_page_with_what_is_not_confirmed() -> None:
    text = PAGE.read_text()
    for name in BUILT_IN:
        found = provider(name)
        assert f"\n## {name}\n" in text
        for said in (found.survives, found.cautions, *found.unconfirmed):
            assert said in text
        if not found.verified_by and name not in LIBRARIES:
            (row,) = [line for line in text.splitlines() if line.startswith(f"| [{name}]")]
            assert "from documentation only" in row


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_vectors_that_a_provider_names_are_those_of_the_tests(name: str) -> None:
    named = {number for each in provider(name).verified_by for number in NUMBER.findall(each)}
    assert named == set(vectors_of(name))


def test_the_libraries_that_are_named_have_tests() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests/unit/sources").glob("test_vendor_libraries*.py"))
    for _, test in WITH_TESTS_OF_THEIR_OWN.values():
        assert f"def {test}(" in tests
    assert set(LIBRARIES) <= set(BUILT_IN)


@pytest.mark.parametrize("cause", Cause, ids=lambda cause: cause.value)
def test_every_cause_of_a_refusal_is_explained(cause: Cause) -> None:
    assert f"`{cause.value}`" in (ROOT / "docs" / "sources.md").read_text()


@pytest.mark.parametrize("check", NAMES)
def test_every_check_of_the_doctor_is_explained(check: str) -> None:
    assert f"\n| `{check}` |" in (ROOT / "docs" / "doctor.md").read_text()
