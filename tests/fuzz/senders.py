"""The senders of the fuzzing: every provider of the catalogue, with keys of our own."""

from __future__ import annotations

from functools import cache

from hookledger import Source
from hookledger.sources.catalogue import provider
from hookledger.sources.checks import PUBLIC_KEYS
from tests.unit.sources.fetched import FETCHED
from tests.unit.sources.made import EVERY, OWN, Made, make


@cache
def every() -> dict[str, Made]:
    """All of them, by name."""
    return {name: make(provider(name)) for name in EVERY}


@cache
def shared() -> dict[str, Made]:
    """Those whose secret two processes can share, by name."""
    return {name: made for name, made in every().items() if name not in OWN and name not in FETCHED and _shared(made)}


def sources() -> list[Source]:
    """Those that a server in another process can have."""
    return [made.source for made in shared().values()]


def _shared(made: Made) -> bool:
    return not any(scheme.algorithm in PUBLIC_KEYS for scheme in made.provider.scheme_list)
