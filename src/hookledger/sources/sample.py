"""A realistic request of a provider, as data: tests run every provider over its own, and users can send it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from hookledger.delivery import Event


@dataclass(frozen=True, slots=True)
class Expected:
    """What is read of one event of a sample.

    Args:
        event: as the source reads it; `content` is not compared.
        deleted: whether it says that its resource is gone.
    """

    event: Event
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """One request, without its signature.

    Args:
        body: the exact bytes.
        events: what is read of it.
        headers: those that carry the id or the type.
        secret: one of the right spelling; for a provider with public keys it is not used.
        url: the public URL, where it is signed.
        settings: the provider's own.
    """

    body: bytes = field(repr=False)
    events: tuple[Expected, ...]
    headers: tuple[tuple[str, str], ...] = ()
    secret: str = field(default="k-test-1-k-test-1", repr=False)
    url: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> Sample:
        """A sample from a JSON document with the fields above; a `body` that is no text is written as JSON."""
        document = json.loads(text)
        body = document["body"]
        if not isinstance(body, str):
            body = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        events = [_expected(each) for each in document["events"]]
        given = {name: document[name] for name in ("secret", "url", "settings") if name in document}
        headers = tuple((name, value) for name, value in document.get("headers", ()))
        return cls(body=body.encode(), events=tuple(events), headers=headers, **given)


def _expected(document: dict[str, Any]) -> Expected:
    fields = dict(document)
    deleted = fields.pop("deleted", False)
    return Expected(Event(**{"event_id": None, "event_type": "", **fields}), deleted)


@cache
def read_sample(name: str) -> Sample:
    """The sample of a built-in provider.

    Raises:
        FileNotFoundError: if it has none.
    """
    return Sample.from_json(files("hookledger.sources").joinpath("samples", f"{name}.json").read_text("utf-8"))
