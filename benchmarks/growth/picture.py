"""The tables as one picture: SVG, a panel of bars for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

PANEL_WIDTH, PANEL_HEIGHT = 420, 220
MARGIN, GAP = 20, 8
TITLE_HEIGHT, LABEL_HEIGHT = 44, 22
COLUMNS = 2
INK, PALE, BAR, ACCENT = "#1f2328", "#656d76", "#4c78a8", "#e45756"
FONT = "font-family='system-ui, sans-serif'"


class Panel(NamedTuple):
    """One panel: what it shows, in which unit, and a bar for each label."""

    title: str
    unit: str
    bars: Sequence[tuple[str, float]]
    marked: int | None = None


def draw(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The picture, as SVG."""
    panels = [panel for name, rows in tables.items() for panel in _panels(name, rows)]
    lines = -(-len(panels) // COLUMNS)
    width = MARGIN + COLUMNS * (PANEL_WIDTH + MARGIN)
    height = MARGIN + lines * (PANEL_HEIGHT + MARGIN)
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}'>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
    ]
    for number, panel in enumerate(panels):
        left = MARGIN + number % COLUMNS * (PANEL_WIDTH + MARGIN)
        top = MARGIN + number // COLUMNS * (PANEL_HEIGHT + MARGIN)
        parts.append(f"<g transform='translate({left} {top})'>{_panel(panel)}</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panels(name: str, rows: Sequence[Mapping[str, Any]]) -> list[Panel]:
    rate = "deliveries drained a second"

    def bars(label: str) -> list[tuple[str, float]]:
        return [(_short(row[label]), row["per_second"]) for row in rows]

    if name == "ledger":
        labels = [
            f"{_short(row['settled'])} settled" if row["settled"] else f"{_short(row['pending'])} pending"
            for row in rows
        ]
        rates = [row["per_second"] for row in rows]
        return [Panel("By what is in the ledger", rate, list(zip(labels, rates, strict=True)))]
    if name == "held":
        ended = next((number for number, row in enumerate(rows) if row["transaction"] == "ended"), None)
        names = {"to come": "before", "ended": "after"}
        times = [names.get(row["transaction"], f"{row['at_seconds']:.0f} s") for row in rows]
        sizes = [row["pending_mib"] + row["pending_index_mib"] for row in rows]
        rates = [row["per_second"] for row in rows]
        return [
            Panel("While a transaction is held open, and after", rate, list(zip(times, rates, strict=True)), ended),
            Panel("Size of the table pending meanwhile", "MiB", list(zip(times, sizes, strict=True)), ended),
        ]
    if name == "burst":
        labels = [_short(row["in_flight"]) for row in rows]
        memory = [row["memory_most_mib"] - row["memory_before_mib"] for row in rows]
        return [
            Panel("Memory that a burst takes, by deliveries in flight", "MiB", list(zip(labels, memory, strict=True)))
        ]
    titles = {
        "slots": "By slots of each of two processes",
        "processes": "By worker processes",
        "batch": "By the size of a batch",
        "body": "By bytes of a body",
        "resources": "By resources that the deliveries are about",
    }
    return [Panel(titles[name], rate, bars(name))]


def _panel(panel: Panel) -> str:
    most = max([value for _, value in panel.bars], default=0.0) or 1.0
    room = PANEL_HEIGHT - TITLE_HEIGHT - LABEL_HEIGHT - 14
    step = PANEL_WIDTH / max(1, len(panel.bars))
    bottom = TITLE_HEIGHT + 14 + room
    small = 9 if len(panel.bars) > 8 else 11
    parts = [
        _text(0, 14, panel.title, size=14, weight="600"),
        _text(0, 32, panel.unit, size=11, ink=PALE),
        f"<line x1='0' y1='{bottom}' x2='{PANEL_WIDTH}' y2='{bottom}' stroke='{PALE}' stroke-width='1'/>",
    ]
    for number, (label, value) in enumerate(panel.bars):
        height = room * value / most
        left, middle = number * step + GAP / 2, (number + 0.5) * step
        ink = ACCENT if number == panel.marked else BAR
        parts.append(
            f"<rect x='{left:.1f}' y='{bottom - height:.1f}' width='{step - GAP:.1f}' "
            f"height='{height:.1f}' fill='{ink}'/>"
        )
        parts.append(_text(middle, bottom - height - 4, _short(value), size=small, anchor="middle"))
        parts.append(_text(middle, bottom + 15, label, size=small, anchor="middle", ink=PALE))
    return "".join(parts)


def _text(
    x: float, y: float, words: str, *, size: int, ink: str = INK, anchor: str = "start", weight: str = "400"
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' font-weight='{weight}' fill='{ink}' "
        f"text-anchor='{anchor}'>{escape(words)}</text>"
    )


def _short(value: float) -> str:
    """A number in few characters: 950, 1.2k, 25k, 5M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{value / unit:.1f}".removesuffix(".0") + name
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")
