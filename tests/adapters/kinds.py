"""The servers and frameworks that the conformance suite runs over."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

ASGI = ("starlette", "starlette-async", "fastapi", "asgi")
WSGI = ("flask-gunicorn", "flask-waitress", "flask-werkzeug")
KINDS = ASGI + WSGI


def over(kinds: Iterable[str]) -> pytest.MarkDecorator:
    """Runs a test over these kinds only."""
    return pytest.mark.parametrize("served", tuple(kinds), indirect=True)


def but(*kinds: str) -> tuple[str, ...]:
    """All kinds but these."""
    return tuple(kind for kind in KINDS if kind not in kinds)
