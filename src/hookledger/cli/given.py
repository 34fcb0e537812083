"""A source from options of the command line: its secrets, which need not be among them, and its settings."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hookledger.cli.captured import read_file
from hookledger.cli.errors import WrongUse

if TYPE_CHECKING:
    from hookledger.sources.provider import Provider
    from hookledger.sources.settings import Option
    from hookledger.sources.source import Source

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""What is surely the name of a variable, and no secret that somebody gave in its place."""

_SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def secrets_given(values: Sequence[str], variables: Sequence[str], files: Sequence[str]) -> list[str | bytes]:
    """The secrets in the order of the options: values, environment variables, files.

    Args:
        values: the secrets themselves.
        variables: names of environment variables, each with one secret.
        files: names of files, each with one secret; the line end that closes a file is no part of it.

    Raises:
        WrongUse: for a variable that is not set or a file that cannot be read. What was given is not repeated, as
            somebody may have put the secret there.
    """
    secrets: list[str | bytes] = list(values)
    secrets += [_from_environment(variable, "--secret-env") for variable in variables]
    for file in files:
        try:
            raw = read_file(file)
        except WrongUse as error:
            reason = str(error.__cause__.strerror) if isinstance(error.__cause__, OSError) else "it has no such name"
            raise WrongUse(f"a file given with --secret-file cannot be read: {reason}") from None
        secrets.append(raw.removesuffix(b"\n").removesuffix(b"\r"))
    return secrets


def settings_given(provider: Provider, texts: Sequence[str], variables: Sequence[str] = ()) -> dict[str, Any]:
    """The provider's own settings from `NAME=VALUE`.

    Args:
        provider: whose they are.
        texts: as they were given; the value is the rest, whatever it holds. A setting that may be a list can be given
            several times.
        variables: the same with the name of an environment variable in place of the value.

    Raises:
        WrongUse: for one that the provider does not have, or whose value is not of its kind. Values are not repeated.
    """
    known = {option.name: option for option in provider.options}
    settings: dict[str, Any] = {}
    for flag, text in (*[("--set", each) for each in texts], *[("--set-env", each) for each in variables]):
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none of its own"
            raise WrongUse(f"{flag} takes NAME=... with a setting of {provider.title}: {has}")
        found = _value(known[name], value if flag == "--set" else _from_environment(value, flag))
        earlier = settings.get(name)
        if earlier is not None and isinstance(known[name].kind, tuple) and list in known[name].kind:
            found = [*(earlier if isinstance(earlier, list) else [earlier]), found]
        settings[name] = found
    return settings


def _from_environment(variable: str, flag: str) -> str:
    found = os.environ.get(variable)
    if found is None:
        named = f"the variable {variable}" if _VARIABLE.fullmatch(variable) else "the variable"
        raise WrongUse(f"{named} of {flag} is not set: give the name of an environment variable that is")
    return found


def _value(option: Option, text: str) -> Any:
    kinds = option.kind if isinstance(option.kind, tuple) else (option.kind,)
    if str in kinds:
        return text
    if bool in kinds and text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    for kind, read in (
        (int, int),
        (float, float),
        (tuple, lambda listed: tuple(each.strip() for each in listed.split(","))),
        (list, lambda listed: [each.strip() for each in listed.split(",")]),
    ):
        if kind in kinds:
            try:
                return read(text)
            except ValueError:
                break
    if Callable in kinds:
        raise WrongUse(f"the setting {option.name} is a function: it cannot be given on the command line")
    raise WrongUse(f"the setting {option.name} must be {option.says}")


def source_given(
    provider: Provider,
    secrets: Sequence[str | bytes],
    *,
    url: str | None,
    settings: dict[str, Any],
    tolerance: float | None,
    content_encoding: Any,
) -> Source:
    """A source that verifies as one of an application would, and answers no handshakes.

    Args:
        provider: of the source.
        secrets: the current one first.
        url: the public URL, where it is signed.
        settings: the provider's own; those that only handshakes need may be missing.
        tolerance: seconds, as for any source.
        content_encoding: as for any source.

    Raises:
        WrongUse: if a secret, the URL or a setting is missing.
        SetupError: for one that cannot be the provider's.
    """
    if provider.takes_secrets and not secrets:
        raise WrongUse(
            f"{provider.title} shares a secret: give it with --secret, or with --secret-env or --secret-file if "
            "others can see your command line"
        )
    if provider.signs_url and url is None:
        raise WrongUse(f"{provider.title} signs the URL: give it with --url, exactly as {provider.title} has it")
    if provider.schemes:
        # A scheme knows no settings: all of them are for handshakes and for reading.
        wanted = tuple([option for option in provider.options if option.name in settings])
        provider = replace(provider, options=wanted, probe=None, handshake=None, unverified_handshake=None)
    for option in provider.options:
        if option.required and option.name not in settings:
            raise WrongUse(f"{provider.title} needs {option.says}: give it with --set {option.name}=...")
    given: dict[str, Any] = dict(settings)
    if provider.takes_secrets or secrets:
        given["secrets"] = secrets[0] if len(secrets) == 1 else list(secrets)
    return provider(
        url=url if provider.signs_url else None, tolerance=tolerance, content_encoding=content_encoding, **given
    )
