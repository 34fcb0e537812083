"""What one source was configured with, for the code that a provider has of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hookledger.errors import SetupError
from hookledger.http import Request, Response


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that only this provider has, e.g. Meta's `verify_token`.

    Args:
        name: of the keyword argument.
        says: what it is, for messages and tables.
        required: whether the source cannot work without it.
        secret: whether it must not be shown.
        kind: the class or classes that its value is of; `collections.abc.Callable` for a function.
    """

    name: str
    says: str
    required: bool = False
    secret: bool = False
    kind: Any = str


@dataclass(frozen=True, slots=True)
class Settings:
    """What a source was configured with.

    Args:
        name: of the source.
        url: its public URL, as the provider has it.
        tolerance: how far a signed timestamp may be off our clock, in seconds; None for the provider's own limit.
        options: the provider's own settings.
        key_of: the key that signed a request, or the first one for a request that is not signed.
    """

    name: str
    url: str | None
    tolerance: float | None
    options: Mapping[str, Any] = field(repr=False)
    key_of: Callable[[Request], bytes] = field(repr=False)


Handshake = Callable[[Request, Settings], Response | None]
"""The answer to a request that carries no event; None for all other requests."""


def read_url(source: str, url: object) -> str:
    """The public URL of a source.

    Raises:
        SetupError: for what is no absolute http or https URL.
    """
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not isinstance(url, str) or not url.isprintable() or " " in url or "#" in url:
        raise SetupError(
            f"the source {source!r}: url={url!r} must be the public URL as the provider has it, such as "
            f'"https://example.com/webhooks/{source}"'
        )
    return url


def read_options(source: str, known: tuple[Option, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's own settings of a source.

    Raises:
        SetupError: for one that is not known, missing, blank or of another kind.
    """
    names = {option.name for option in known}
    for name in given:
        if name not in names:
            has = f"it has {', '.join(sorted(names))}" if names else "it has none of its own"
            raise SetupError(f"the source {source!r}: the setting {name}= is not known: {has}")
    options: dict[str, Any] = {}
    for option in known:
        value = given.get(option.name)
        if value is None:
            if option.required:
                raise SetupError(f"the source {source!r} needs {option.name}=..., {option.says}")
            continue
        if not isinstance(value, option.kind):
            raise SetupError(f"the source {source!r}: {option.name}= must be {option.says}")
        if isinstance(value, str) and (not value.strip() or value != value.strip()):
            raise SetupError(f"the source {source!r}: {option.name}= is blank or has white space around it")
        options[option.name] = value
    return options
