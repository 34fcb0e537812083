"""`hookledger sources`: the providers that hookledger knows, its own and those of plugins."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hookledger.cli.errors import printable
from hookledger.cli.options import Debug, Json
from hookledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from hookledger.sources.provider import Provider

LINE = 120
WIDEST = 100
"""Characters of a line of the list, where it is piped."""
LONGEST_CELL = 44
HEADINGS = ("name", "family", "event id", "version", "handshakes", "send")
_SECTIONS = (
    ("documentation", "documentation"),
    ("family", "family"),
    ("event id", "event_id"),
    ("survives", "survives"),
    ("event type", "event_type"),
    ("resource", "resource"),
    ("version", "version"),
    ("batch", "batch"),
    ("handshakes", "handshakes"),
    ("cautions", "cautions"),
    ("unconfirmed", "unconfirmed"),
    ("verified by", "verified_by"),
)


def sources(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A provider, to be shown whole; all of them if not given.")
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List the providers that are known, or show one whole.

    Long fields are shortened in the list, and whole in --json. Without an event id, the digest of the bytes is it.
    The column `send` tells whether `hookledger send` can sign for it: with a shared secret it can, with the
    public key of a provider it cannot.

    Examples: hookledger sources, hookledger sources shopify
    """
    from hookledger.sources import catalogue

    if name is not None:
        provider = catalogue.provider(name)
        if json:
            print_json(as_document(provider))
        else:
            _print_whole(provider)
        return
    providers = list(catalogue.providers())
    if json:
        print_json({"providers": [as_document(each) for each in providers]})
    else:
        print_table(HEADINGS, [_row(each) for each in providers], numbers=False, widest=WIDEST)


def as_document(provider: Provider) -> dict[str, Any]:
    """The provider as the object that --json prints."""
    from hookledger.sources.catalogue import BUILT_IN

    described = provider.described()
    return {
        **described,
        "batch": bool(described["batch"]),
        "handshakes": described["handshakes"].split(", ") if described["handshakes"] else [],
        "verified_by": list(provider.verified_by),
        "unconfirmed": list(provider.unconfirmed),
        "can_be_sent": provider.can_be_sent,
        "takes_secrets": provider.takes_secrets,
        "needs_url": provider.signs_url,
        "signature_headers": list(provider.signature_places),
        "settings": [
            {"name": each.name, "says": each.says, "required": each.required, "secret": each.secret}
            for each in provider.options
        ],
        "built_in": provider.name in BUILT_IN,
    }


def _row(provider: Provider) -> tuple[str, ...]:
    described = provider.described()
    event_id = described["event_id"] or "digest of the bytes"
    fields = (event_id, described["version"] or "-", described["handshakes"] or "-")
    can_be_sent = "yes" if provider.can_be_sent else "no"
    family = provider.family.name.lower().replace("_", " ").replace("hmac", "HMAC")
    return (described["name"], family, *[short(each) for each in fields], can_be_sent)


def short(text: str) -> str:
    """A field in words, cut between two of its parts if it is long."""
    parts = re.split(r"(?= / |, )", text)
    kept = parts[0]
    for part in parts[1:]:
        if len(kept) + len(part) > LONGEST_CELL:
            return f"{kept} ..."
        kept += part
    return kept


def _print_whole(provider: Provider) -> None:
    from hookledger.sources.catalogue import BUILT_IN

    described = provider.described()
    print(printable(f"{described['title']} ({described['name']})"))
    if not provider.verified_by and provider.name not in BUILT_IN:
        described["verified_by"] = ""  # a plugin need not say how it was verified
    sections = [(heading, described[field]) for heading, field in _SECTIONS]
    sections.append(("secrets", _secrets(provider)))
    if provider.signs_url:
        sections.append(("url", f"needed, exactly as {provider.title} has it"))
    sections += [(each.name, each.says + (", needed" if each.required else "")) for each in provider.options]
    sections.append(("send", "yes" if provider.can_be_sent else "no"))
    width = max(len(heading) for heading, _ in sections) + 2
    for heading, text in sections:
        if text:
            lines = textwrap.wrap(
                printable(text),
                LINE - width,
                break_long_words=False,
                break_on_hyphens=False,
            )
            print(f"{heading:<{width}}{lines[0]}")
            for line in lines[1:]:
                print(" " * width + line)


def _secrets(provider: Provider) -> str:
    return "one or several, as the provider shows them" if provider.takes_secrets else "none"
