"""Which tests hold which case, read from the test files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent.parent
NAMED = re.compile(r"test((?:_b\d{3})+)_")


class Test(NamedTuple):
    """A test function."""

    __test__ = False

    path: str
    name: str


def holding() -> dict[str, list[Test]]:
    """The tests of each case, by its id."""
    found: dict[str, list[Test]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name in _functions(path):
            for number in _numbers(name):
                found.setdefault(f"B{number}", []).append(Test(path.relative_to(TESTS.parent).as_posix(), name))
    return dict(sorted(found.items()))


def _functions(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def _numbers(name: str) -> list[str]:
    named = NAMED.match(name)
    return re.findall(r"\d{3}", named[1]) if named else []
