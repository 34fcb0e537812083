"""The servers and frameworks that the conformance suite runs over."""

from __future__ import annotations

ASGI = ("starlette", "starlette-async", "fastapi", "asgi")
WSGI = ("flask-gunicorn", "flask-waitress", "flask-werkzeug")
KINDS = ASGI + WSGI
