"""What the handlers of a batch may do, and what is written for it: `worker/batch.py` in short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.model.state import DEAD, PENDING, SETTLED, UNMOVED, Claim, Effect, Row, Setting, Writes


@dataclass(frozen=True)
class Result:
    """What became of a delivery in a batch: bits a handler, and whether one failed or was left for later."""

    ledger: int = 0
    done: int = 0
    failed: bool = False
    left: bool = False


Results = tuple[Result, ...]

BURIED = Row(DEAD, 0, False, False, True)
GONE = Row(SETTLED, 0, False, False, True)


def runs(setting: Setting, claims: Sequence[Claim], known: Sequence[int], mark: int) -> Iterator[Results | None]:
    """What each of the held deliveries may come to; None if the process ends in a handler.

    Args:
        setting: whose handlers.
        claims: those that are held.
        known: for each, the handlers that are known to be done.
        mark: the watermark that was read.
    """
    start = tuple(Result(ledger=bits) for bits in known)
    if setting.versions:
        yield from _contest(setting, claims, start, mark)
        return
    calls = [
        (position, handler)
        for position, claim in enumerate(claims)
        for handler in range(len(setting.deliveries[claim.delivery]))
        if not known[position] >> handler & 1
    ]
    yield from _calls(setting, claims, start, calls)


def _with(results: Results, position: int, result: Result) -> Results:
    return (*results[:position], result, *results[position + 1 :])


def _calls(
    setting: Setting, claims: Sequence[Claim], results: Results, calls: Sequence[tuple[int, int]]
) -> Iterator[Results | None]:
    if not calls:
        yield results
        return
    (position, handler), rest = calls[0], calls[1:]
    before = results[position]
    if setting.stops:
        left = results
        for later, _ in calls:
            left = _with(left, later, replace(left[later], left=True))
        yield left
    for word in _words(setting.deliveries[claims[position].delivery][handler]):
        if word == "poison":
            yield None
            continue
        bit = 1 << handler
        after = replace(before, failed=True) if word == "fails" else _succeeded(before, bit, bit)
        yield from _calls(setting, claims, _with(results, position, after), rest)


def _contest(setting: Setting, claims: Sequence[Claim], results: Results, mark: int) -> Iterator[Results | None]:
    """Snapshots of one resource: the newest is run, and only one that was applied makes the others superseded."""
    order = sorted(range(len(claims)), key=lambda position: -setting.versions[claims[position].delivery])
    candidates = []
    for position in order:
        if results[position].ledger:
            continue
        if setting.versions[claims[position].delivery] <= mark:
            results = _with(results, position, _succeeded(results[position], 1, 0))
        else:
            candidates.append(position)
    yield from _candidates(setting, claims, results, candidates)


def _candidates(
    setting: Setting, claims: Sequence[Claim], results: Results, candidates: Sequence[int]
) -> Iterator[Results | None]:
    if not candidates:
        yield results
        return
    first, rest = candidates[0], candidates[1:]
    for word in _words(setting.deliveries[claims[first].delivery][0]):
        if word == "poison":
            yield None
        elif word == "fails":
            failed = _with(results, first, replace(results[first], failed=True))
            yield from _candidates(setting, claims, failed, rest)
        else:
            after = _with(results, first, _succeeded(results[first], 1, 1))
            for position in rest:
                after = _with(after, position, _succeeded(after[position], 1, 0))
            yield after


def _words(handler: str) -> tuple[str, ...]:
    return ("good", "fails") if handler == "fails" else (handler,)


def _succeeded(result: Result, ledger: int, done: int) -> Result:
    return replace(result, ledger=result.ledger | ledger, done=result.done | done)


def written(setting: Setting, claims: Sequence[Claim], known: Sequence[int], results: Results) -> Writes:
    """What a batch writes for its results (`Batch._write`, `failing.write_failed`)."""
    rows: list[tuple[int, Row]] = []
    effects: list[Effect] = []
    mark = UNMOVED
    for claim, before, result in zip(claims, known, results, strict=True):
        exhausted = claim.attempts >= setting.max_attempts
        if result.failed and not (result.left and exhausted):
            rows.append((claim.delivery, BURIED if exhausted else Row(PENDING, claim.attempts, True, False, True)))
        elif result.left:
            rows.append((claim.delivery, given_back(claim, 1)))
        else:
            rows.append((claim.delivery, GONE))
        new = result.ledger & ~before
        if new:
            effects.append(Effect(claim.delivery, new, result.done))
        if setting.versions and result.done:
            mark = setting.versions[claim.delivery]
    return Writes(tuple(rows), tuple(effects), mark)


def given_back(claim: Claim, refund: int) -> Row:
    """The row as `give_back` writes it."""
    return Row(attempts=claim.attempts - refund, error=claim.error, due=True, revisited=True)
