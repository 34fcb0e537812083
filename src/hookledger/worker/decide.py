"""Stale, superseded or winner: the decision of the watermark (D7). Pure, and total: for any two snapshots of a
resource it says which one stays, so the end state does not depend on the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from hookledger.errors import Reject, UncomparableVersion
from hookledger.ledger.rows import Watermark
from hookledger.version import comparable, in_words, seconds_ahead
from hookledger.worker.outcome import Snapshot


class Contest(NamedTuple):
    """The snapshots of one resource in a batch, for one handler.

    Args:
        candidates: those newer than the watermark, the newest first; they are run until one succeeds.
        stale: those that the watermark refuses.
        uncomparable: those whose version has another shape, with the reason; they fail.
    """

    candidates: tuple[Snapshot, ...]
    stale: tuple[Snapshot, ...]
    uncomparable: tuple[tuple[Snapshot, UncomparableVersion], ...]


def contest(snapshots: Sequence[Snapshot], watermark: Watermark) -> Contest:
    """Order the snapshots of one resource against its watermark.

    A delivery that is itself the watermark is no staler than it: it may run again, as after its effects were
    forgotten.
    """
    if len(snapshots) == 1:
        (only,) = snapshots
        if watermark.version is None:
            return Contest((only,), (), ())
        if len(only.version) == len(watermark.version) and only.rank >= (watermark.version, watermark.delivery_id or 0):
            return Contest((only,), (), ())
    in_order = sorted(snapshots, key=lambda snapshot: snapshot.claimed.delivery.id)
    shape = watermark.version if watermark.version is not None else in_order[0].version
    fitting: list[Snapshot] = []
    stale: list[Snapshot] = []
    uncomparable: list[tuple[Snapshot, UncomparableVersion]] = []
    for snapshot in in_order:
        if not comparable(snapshot.version, shape):
            error = UncomparableVersion(
                f"the version ({in_words(snapshot.version)}) has {len(snapshot.version)} parts, that of the resource "
                f"{snapshot.resource!r} ({in_words(shape)}) has {len(shape)}: make version= give one shape"
            )
            uncomparable.append((snapshot, error))
        elif watermark.version is not None and snapshot.rank < (watermark.version, watermark.delivery_id or 0):
            stale.append(snapshot)
        else:
            fitting.append(snapshot)
    fitting.sort(key=lambda snapshot: snapshot.rank, reverse=True)
    return Contest(tuple(fitting), tuple(stale), tuple(uncomparable))


def higher(one: Watermark, other: Watermark) -> Watermark:
    """The watermark that holds for a handler that has one under its name and one under a name that it had before."""
    if one.version is None or other.version is None:
        return one if other.version is None else other
    return max(one, other, key=lambda watermark: (watermark.version or (), watermark.delivery_id or 0))


def refuse_far_future(snapshot: Snapshot, tolerance: timedelta) -> None:
    """Refuse a version that would put the watermark above all that is to follow.

    Raises:
        Reject: if the version is a time, further after the receipt than the tolerance.
    """
    ahead = seconds_ahead(snapshot.version, snapshot.claimed.delivery.received_at)
    if ahead > tolerance.total_seconds():
        raise Reject(
            f"the version {in_words(snapshot.version)} lies {timedelta(seconds=round(ahead))} after its receipt: "
            f"it was not applied, because nothing newer could follow it (future_tolerance is {tolerance})"
        )
