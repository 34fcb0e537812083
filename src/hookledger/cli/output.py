"""What commands print on standard output: tables for people, plain columns for pipes, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from typing import Any

from hookledger.cli.errors import printable


def print_json(document: Any) -> None:
    """One JSON object on one line."""
    print(json.dumps(document), flush=True)


def counted(number: int, one: str, many: str) -> str:
    """A count and what is counted: 1 delivery, 2,000 deliveries."""
    return f"{number:,} {one if number == 1 else many}"


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: bool = True,
    widest: int | None = None,
    whole: Collection[str] = (),
) -> None:
    """A table on a terminal; aligned columns in a pipe.

    Args:
        headings: of the columns.
        rows: the cells.
        numbers: whether all columns but the first hold numbers, which stand at the right.
        widest: characters of a line in a pipe, for which long cells are cut; None cuts nothing off.
        whole: headings of columns that are never broken over lines, such as what is copied from the terminal.
    """
    headings = [printable(heading) for heading in headings]
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(headings, cells, numbers=numbers, whole=whole)
        return
    widths = [max(len(row[column]) for row in [headings, *cells]) for column in range(len(headings))]
    while widest is not None and sum(widths) + 2 * (len(widths) - 1) > widest:
        widths[widths.index(max(widths))] -= 1
    for row in [headings, *cells]:
        line = "  ".join(
            _cut(cell, width).rjust(width) if column and numbers else _cut(cell, width).ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print(line.rstrip())
    sys.stdout.flush()


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else f"{cell[: width - 4].rstrip(' ,/')} ..."


def _print_rich(
    headings: Sequence[str], cells: Sequence[Sequence[str]], *, numbers: bool, whole: Collection[str]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, heading in enumerate(headings):
        widths = [len(row[column]) for row in cells] if heading in whole else []
        table.add_column(
            Text(heading),
            justify="right" if column and numbers else "left",
            overflow="fold",
            no_wrap=heading in whole,
            min_width=max(widths, default=None),
        )
    for row in cells:
        table.add_row(*[Text(cell) for cell in row])
    Console().print(table)
