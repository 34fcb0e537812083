"""Keys that are fetched: kept by their id, and fetched again within bounds (D3).

What an id is, is the provider's affair: the URL of a certificate, or the `kid` of a token.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from hookledger.errors import Cause, KeysUnavailable, NotVerified

Key = TypeVar("Key")

DAY = 86_400.0
MOST_KEYS = 100
UNKNOWN_FOR = 60.0
"""Seconds for which an id that the key server does not know is refused without asking again."""
AWAY_FOR = 2.0
"""Seconds for which a key server that did not answer is not asked again."""
LOADS_A_MINUTE = 20
WAIT_FOR_ANOTHER = 2.5
"""Seconds that a thread waits while another one loads."""


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Key]):
    key: Key | None
    until: float


class FetchedKeys(Generic[Key]):
    """Keys by their id. May be used by many threads; only one of them loads at a time.

    Ids come from requests that are not verified. Made-up ones can use up the loads of a minute, so that a new key of
    the provider is told to come again (503); keys that are known, or were, are not touched by them.

    Args:
        load: asks the key server for an id, and gives all keys that it learned by that, by id; may raise
            KeysUnavailable, and NotVerified for an id that cannot be one.
        expiry: seconds for which a key is good.
        most: keys that are kept; the one that was not used for the longest is dropped first. As many ids are
            remembered that the key server does not know.
        loads_a_minute: how often the key server is asked for ids that were never known, whatever senders make up.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        load: Callable[[str], Mapping[str, Key]],
        *,
        expiry: float = DAY,
        most: int = MOST_KEYS,
        loads_a_minute: int = LOADS_A_MINUTE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._expiry = expiry
        self._most = most
        self._loads_a_minute = loads_a_minute
        self._clock = clock
        self._kept: OrderedDict[str, _Kept[Key]] = OrderedDict()
        self._unknown: OrderedDict[str, _Kept[Key]] = OrderedDict()
        self._loads: deque[float] = deque()
        self._away_until = float("-inf")
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    def get(self, key_id: str) -> Key:
        """The key of an id.

        Raises:
            NotVerified: if the key server does not know the id.
            KeysUnavailable: if it does not answer, or has been asked too often.
        """
        found = self._look(key_id)
        if found is None:
            if not self._loading.acquire(timeout=WAIT_FOR_ANOTHER):
                raise KeysUnavailable("the key server is slow, and others wait for it already")
            try:
                # Another thread may have loaded it while this one waited.
                found = self._look(key_id) or self._learn(key_id)
            finally:
                self._loading.release()
        if found.key is None:
            raise NotVerified(
                "the request names a key that the provider's key server does not know", Cause.KEY_NOT_TRUSTED
            )
        return found.key

    def _look(self, key_id: str) -> _Kept[Key] | None:
        with self._lock:
            found = self._kept.get(key_id) or self._unknown.get(key_id)
            if found is None or found.until <= self._clock():
                return None
            if found.key is not None:
                self._kept.move_to_end(key_id)
            return found

    def _learn(self, key_id: str) -> _Kept[Key]:
        now = self._clock()
        if now < self._away_until:
            raise KeysUnavailable("the key server did not answer just now, and is not asked again yet")
        if key_id not in self._kept:
            self._count_load(now)
        try:
            learned = self._load(key_id)
        except KeysUnavailable:
            self._away_until = self._clock() + AWAY_FOR
            raise
        with self._lock:
            self._kept.pop(key_id, None)  # it may have been withdrawn
            for each, key in learned.items():
                self._unknown.pop(each, None)
                _keep(self._kept, each, _Kept(key, now + self._expiry), self._most)
            found = self._kept.get(key_id)
            if found is None:
                found = _keep(self._unknown, key_id, _Kept(None, now + UNKNOWN_FOR), self._most)
        return found

    def _count_load(self, now: float) -> None:
        while self._loads and self._loads[0] <= now - 60:
            self._loads.popleft()
        if len(self._loads) >= self._loads_a_minute:
            raise KeysUnavailable(f"the key server has been asked {self._loads_a_minute} times within a minute")
        self._loads.append(now)


def _keep(among: OrderedDict[str, _Kept[Key]], key_id: str, kept: _Kept[Key], most: int) -> _Kept[Key]:
    among[key_id] = kept
    among.move_to_end(key_id)
    while len(among) > most:
        among.popitem(last=False)
    return kept
