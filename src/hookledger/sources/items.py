"""One request, many events: where a batch has its items (D5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from hookledger.errors import SetupError, UnreadableBody
from hookledger.sources.reading import Path, in_document, read_json

EACH = "*"
CACHED_BODIES = 4
"""Bodies whose items are kept apart, so that a batch is not parsed anew for each of its deliveries."""


Split = Callable[[Any], Sequence[Any]]
"""Gives the items of a parsed body, for senders whose items no path leads to; raises UnreadableBody if it has none."""


class Item(NamedTuple):
    """One event's part of a body, and the object whose list it is in."""

    part: Any
    outer: Any


class ItemPaths:
    """Where the lists of items are in a body.

    Args:
        paths: "events", "entry.*.changes" (a list in each object of a list), or "" for a body that is a list;
            several, if the items are in several lists; or a function of the parsed body that gives the items.

    Raises:
        SetupError: for a path that leads nowhere.
    """

    def __init__(self, paths: str | tuple[str, ...] | Split) -> None:
        self._split = paths if callable(paths) else None
        self._written: tuple[str, ...] = () if callable(paths) else paths if isinstance(paths, tuple) else (paths,)
        self._lists = tuple([self._levels(each) for each in self._written])
        if not self._lists and self._split is None:
            raise SetupError('items=() leads nowhere: say where the list is, as in "events", or "" for the body itself')

    @staticmethod
    def _levels(path: str) -> tuple[Path, ...]:
        if not isinstance(path, str) or (path and not all(path.split("."))) or path.endswith(EACH):
            raise SetupError(f'items={path!r} must be a path to a list, such as "events" or "entry.*.changes"')
        levels: list[list[str]] = [[]]
        for step in path.split(".") if path else []:
            if step == EACH:
                levels.append([])
            else:
                levels[-1].append(step)
        return tuple([tuple(level) for level in levels])

    def of(self, document: Any) -> list[Item]:
        """The items of a parsed body, in order.

        Raises:
            UnreadableBody: if there is no list where the items should be.
        """
        if self._split is not None:
            return [Item(part, document) for part in self._split(document)]
        found: list[Item] = []
        lists = 0
        for (first, *deeper), written in zip(self._lists, self._written, strict=True):
            outermost = in_document(document, first)
            if isinstance(outermost, dict) and not first:
                outermost = [outermost]  # a sender with one event may leave the list out
            if outermost is None:
                continue
            if not isinstance(outermost, list):
                raise UnreadableBody(f"the body has no list of events at {written or 'its top'!r}")
            lists += 1
            items = [Item(part, document) for part in outermost]
            for path in deeper:
                items = [inner for item in items for inner in self._within(item, path)]
            found += items
        if not lists:
            raise UnreadableBody(f"the body has no list of events at {' or '.join(self._written) or 'its top'!r}")
        return found

    @staticmethod
    def _within(item: Item, path: Path) -> list[Item]:
        if not isinstance(item.part, dict):
            return [item]  # shown as the one bad item that it is
        inner = in_document(item.part, path)
        if inner is None:
            return []
        if not isinstance(inner, list):
            return [Item(inner, item.part)]
        return [Item(part, item.part) for part in inner]

    def document(self, body: bytes, position: int) -> Any:
        """The item at a position of a body, parsed anew.

        Raises:
            UnreadableBody: if there is none.
        """
        contents = _contents(body, self._split or self._written)
        if position >= len(contents):
            raise UnreadableBody(f"the body has no item {position}: it holds {len(contents)}")
        return read_json(contents[position])


@lru_cache(maxsize=CACHED_BODIES)
def _contents(body: bytes, paths: tuple[str, ...] | Split) -> tuple[bytes, ...]:
    return tuple([written(item.part) for item in ItemPaths(paths).of(read_json(body))])


def written(part: Any, *, sort: bool = False) -> bytes:
    """The bytes of an item; sorted they are the same however the sender orders its keys.

    Raises:
        UnreadableBody: if it is nested too deeply to be written.
    """
    try:
        return json.dumps(part, separators=(",", ":"), sort_keys=sort).encode()
    except RecursionError:
        raise UnreadableBody("the item is nested too deeply to be read") from None
