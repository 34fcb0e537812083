"""How refused requests that were kept are shown: secrets masked, on a terminal, in a pipe, and as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from hookledger.cli.errors import printable
from hookledger.cli.output import print_json, print_table
from hookledger.operate.masking import without_password

if TYPE_CHECKING:
    from hookledger.operate.quarantine import Group, Kept

SHOWN = 4_096
"""Characters of a body that are shown, without --raw."""


def document(kept: Kept, *, whole: bool = False) -> dict[str, Any]:
    """What --json prints of a request: secrets masked, times as ISO 8601 with zone."""
    from hookledger.operate.masking import mask_headers

    told: dict[str, Any] = {
        "id": kept.id,
        "at": kept.at.isoformat(),
        "source": kept.source,
        "status": kept.status,
        "reason": kept.reason,
        "diagnosis": kept.diagnosis,
        "size": kept.size,
        "released_at": kept.released_at and kept.released_at.isoformat(),
        "deliveries": kept.delivery_ids,
    }
    if whole:
        told["method"] = kept.request.method
        told["url"] = _without_query(kept.request.url)
        told["headers"] = mask_headers(kept.request.headers)
        told["body"] = _shown_body(kept) if kept.is_whole else None
    return told


def _shown_body(kept: Kept) -> str:
    """The body as text, without what its headers and members say is secret."""
    import json

    from hookledger.operate.masking import mask_members, scrub, secret_values

    text = kept.request.body.decode("utf-8", "replace")
    try:
        document = json.loads(text)
        masked = mask_members(document)
        # As it came, where that shows nothing: writing it anew could change numbers.
        if masked != document:
            text = json.dumps(masked, ensure_ascii=False)
    except (ValueError, RecursionError):
        pass
    return scrub(text, secret_values(kept.request.headers))


def _without_query(url: str) -> str:
    # Some providers have the secret in it.
    place, mark, query = without_password(url).partition("?")
    return place if not mark else f"{place}?[{len(query)} characters are not shown]"


def _moment(moment: datetime) -> str:
    from hookledger.operate.moments import shown_moment

    return shown_moment(moment)


def print_groups(found: list[Group], *, json: bool) -> None:
    """Print the groups of refused requests."""
    if json:
        document = [
            {
                "source": group.source,
                "reason": group.reason,
                "count": group.count,
                "released": group.released,
                "first_at": group.first_at.isoformat(),
                "last_at": group.last_at.isoformat(),
                "example": group.example,
            }
            for group in found
        ]
        print_json({"groups": document})
        return
    if not found:
        print("No refused requests kept.")
        return
    rows = [
        [
            group.source,
            group.reason,
            f"{group.count:,}",
            f"{group.released:,}",
            _moment(group.first_at),
            _moment(group.last_at),
            str(group.example),
        ]
        for group in found
    ]
    print_table(["source", "reason", "count", "let in", "first", "last", "example"], rows, numbers=False)


def print_each(rows: list[Kept], *, json: bool) -> None:
    """Print refused requests, a line each."""
    if json:
        print_json({"requests": [document(row) for row in rows]})
        return
    if not rows:
        print("No refused requests kept.")
        return
    cells = [
        [
            str(row.id),
            _moment(row.at),
            row.source,
            str(row.status),
            row.reason,
            f"{row.size:,}",
            "" if row.released_at is None else _moment(row.released_at),
        ]
        for row in rows
    ]
    print_table(["id", "received", "source", "status", "reason", "bytes", "let in"], cells, numbers=False)


def print_one(kept: Kept) -> None:
    """Print one refused request."""
    from hookledger.operate.masking import mask_headers

    request = kept.request
    print(f"{kept.source} {kept.id}, received {_moment(kept.at)}, refused with {kept.status}")
    print(f"why: {kept.reason}: {printable(kept.diagnosis)}")
    if kept.released_at is not None:
        ids = ", ".join(str(id) for id in kept.delivery_ids or ()) or "none"
        print(f"let in {_moment(kept.released_at)}, deliveries: {ids}")
    print()
    print(printable(f"{request.method} {_without_query(request.url)}"))
    for name, value in mask_headers(request.headers):
        print(printable(f"{name}: {value}"))
    print()
    if not kept.is_whole:
        print(f"[the body of {kept.size:,} bytes was not kept]")
        return
    text = _shown_body(kept)
    print("\n".join(printable(line) for line in text[:SHOWN].split("\n")))
    if len(text) > SHOWN:
        print(f"[{len(text) - SHOWN:,} more characters: --raw gives the exact bytes]")
