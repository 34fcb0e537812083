"""Writes docs/providers.md from the descriptions of the providers, and docs/cases.md: `python -m tests.docs`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from hookledger.cli.sources import short
from hookledger.sources.catalogue import BUILT_IN, provider
from hookledger.sources.provider import Provider
from tests.cases.page import page as cases_page
from tests.unit.sources.vendors import LIBRARIES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "providers.md"
CASES_PAGE = ROOT / "docs" / "cases.md"
COMMAND = "python -m tests.docs"
VECTORS = ROOT / "tests" / "unit" / "sources" / "published_vectors.json"

HEAD = f"""<!-- Written by `{COMMAND}` from src/hookledger/sources/providers; change it there. -->

# Providers

What hookledger knows of each sender. `hookledger sources` prints the same, with the providers of plugins, and
[sources.md](sources.md) says how they are configured and how another one is described.

- *Event id* is what one event is known by; the provider's section has the reason. Where there is none, the digest of
  the bytes is the event id.
- *Version* orders the snapshots of a resource.
- *Handshakes* are requests of the provider that are answered, and carry no event.
- *Send* says whether `hookledger send` can sign for it: with a shared secret it can, with the provider's public key it
  cannot.
- *Vectors* are requests that somebody else published with their signatures, and that are verified in our tests; the
  number is that of `tests/unit/sources/published_vectors.json`, the link leads to where it was published. *Library* is
  the provider's own for Python: in our tests what it signs verifies here, and what is signed here it verifies. A
  provider with neither is described **from documentation only**: what its pages say was followed, and no request of it
  was seen.

"""
NUMBER = re.compile(r"\bV[0-9]{2,}\b")
COLUMNS = ("provider", "family", "event id", "version", "handshakes", "send", "vectors", "library")


def page() -> str:
    """The whole page."""
    providers = [provider(name) for name in sorted(BUILT_IN)]
    only_documented = sum(1 for each in providers if not each.verified_by and not LIBRARIES.get(each.name))
    counted = (
        f"{len(providers)} providers: {len(providers) - only_documented} are verified with vectors that others\n"
        f"published or with the provider's own library, {only_documented} are from documentation only.\n\n"
    )
    table = [_line(COLUMNS), _line(["---"] * len(COLUMNS)), *[_line(_row(each)) for each in providers]]
    sections = [_section(each) for each in providers]
    return HEAD + counted + "\n".join(table) + "\n\n" + "\n".join(sections)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _row(each: Provider) -> list[str]:
    described = each.described()
    library = ", ".join(LIBRARIES.get(each.name, ()))
    return [
        f"[{each.name}](#{each.name})",
        each.family.value,
        _code(short(described["event_id"])) or "digest",
        _code(short(described["version"])),
        described["handshakes"],
        "yes" if each.can_be_sent else "no",
        _linked(each) or ("" if library else "from documentation only"),
        library,
    ]


def _section(each: Provider) -> str:
    described = each.described()
    lines = [f"## {each.name}", "", f"[{each.title}]({each.documentation}): {each.family.value}.", ""]
    facts = [
        ("Event id", f"{_code(described['event_id']) or 'digest of the bytes'}. {each.survives}"),
        ("Event type", _code(described["event_type"])),
        ("Resource", _code(described["resource"])),
        ("Version", _code(described["version"])),
        ("Batches", "one request may carry many events" if described["batch"] else ""),
        ("Needs", "`url=`, the public URL, which is signed" if each.signs_url else ""),
        *[("Setting", f"`{option.name}`{_needed(option.required)}: {option.says}") for option in each.options],
        ("Caution", each.cautions),
        *[("Not confirmed", text) for text in each.unconfirmed],
    ]
    lines += [f"- {what}: {text}" for what, text in facts if text]
    return "\n".join(lines) + "\n"


def _needed(required: bool) -> str:
    return " (needed)" if required else ""


def _code(text: str) -> str:
    """One field as code; several, and what is computed, in words."""
    if text and re.fullmatch(r"[\w.<>*:/\[\]-]+", text):
        return f"`{text}`"
    return text.replace("<", "&lt;").replace("*", "\\*")


def vectors_of(name: str) -> dict[str, str]:
    """The published vectors of a provider, by number, and where each was published."""
    found = [each for each in json.loads(VECTORS.read_text()) if each["source"] == name and each["id"].startswith("V")]
    return {each["id"].partition(" ")[0]: each["from"] for each in found}


def _linked(described: Provider) -> str:
    """Whose vectors, each with a link to where it was published."""
    published = vectors_of(described.name)

    def link(found: re.Match[str]) -> str:
        where = published.get(found[0], "")
        repository = re.match(r"[\w.-]+/[\w.-]+(?= )", where)
        if repository is not None:
            where = f"https://github.com/{repository[0]}"
        return f"[{found[0]}]({where})" if where.startswith("https://") else found[0]

    return ", ".join(NUMBER.sub(link, each) for each in described.verified_by)


if __name__ == "__main__":
    PAGE.write_text(page())
    CASES_PAGE.write_text(cases_page())
