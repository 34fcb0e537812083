"""Failed attempts: each is tried again later, or becomes a dead letter (D10)."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random

from sqlalchemy import Connection

from hookledger.errors import Reject, Retry, UnreadableBody
from hookledger.inbox import Inbox
from hookledger.ledger.repository import Repository
from hookledger.ledger.rows import Buried, NewFailure, Postponed
from hookledger.retry import LONGEST_DELAY, RetryPolicy
from hookledger.worker.fingerprint import fingerprint
from hookledger.worker.outcome import Claimed, DeathReason, Failure, Settled, told
from hookledger.worker.raised import with_place, without_parameters

logger = logging.getLogger(__name__)

Failures = Mapping[int, Sequence[Failure]]
"""Those of a batch, by delivery id."""


def verdict(of_delivery: Sequence[Failure], attempts: int, inbox: Inbox) -> DeathReason | None:
    """Why a delivery is given up: a handler rejected it, or it cannot be read, or every handler that fails has
    used up its attempts. None if it is tried again."""
    errors = [failure.error for failure in of_delivery]
    if any(isinstance(error, Reject) for error in errors):
        return DeathReason.REJECTED
    if any(isinstance(error, UnreadableBody) for error in errors):
        return DeathReason.UNREADABLE
    if all(inbox.retry_of(failure.handler).exhausted(attempts) for failure in of_delivery):
        return DeathReason.FAILED
    return None


def delay(failure: Failure, policy: RetryPolicy, attempts: int, random: Random) -> float:
    """Seconds until the next attempt: what the handler asked for by Retry(after=...), else its policy's.

    What is no number is taken for the policy's, since a wrong argument must not cost the delivery.
    """
    after = getattr(failure.error, "after", None) if isinstance(failure.error, Retry) else None
    if isinstance(after, timedelta):
        after = after.total_seconds()
    if isinstance(after, int | float) and not math.isnan(min(after, LONGEST_DELAY)):
        return float(min(max(0.0, after), LONGEST_DELAY))
    return policy.delay(attempts, random.random())


def write_failed(
    repository: Repository,
    connection: Connection,
    inbox: Inbox,
    random: Random,
    failed: Sequence[Claimed],
    failures: Failures,
) -> list[Settled]:
    """Record failed attempts, and postpone or bury their deliveries. Returns what observers are told."""
    rows: list[NewFailure] = []
    postponed: list[Postponed] = []
    buried: list[Buried] = []
    settled: list[Settled] = []
    traced = logger.isEnabledFor(logging.DEBUG)
    for claimed in failed:
        id, attempts = claimed.delivery.id, claimed.attempts
        of_delivery = failures[id]
        first = of_delivery[0]
        places = [failure.place for failure in of_delivery]
        marks = [
            fingerprint(failure.handler.name, failure.error, place)
            for failure, place in zip(of_delivery, places, strict=True)
        ]
        rows += [
            NewFailure(id, attempts, failure.handler.name, with_place(failure.words, place), mark)
            for failure, place, mark in zip(of_delivery, places, marks, strict=True)
        ]
        text = with_place(first.words, places[0])
        # While a handler of it is paused, it is not given up: that one has not had its turn.
        reason = None if claimed.paused else verdict(of_delivery, attempts, inbox)
        if reason is None:
            policies = [inbox.retry_of(failure.handler) for failure in of_delivery]
            left = [not policy.exhausted(attempts) for policy in policies]
            delays = [
                delay(failure, policy, attempts, random)
                for failure, policy, may in zip(of_delivery, policies, left, strict=True)
                if may or not any(left)
            ]
            postponed.append(Postponed(id, attempts, min(delays), text))
        else:
            buried.append(Buried(id, attempts, reason.value, text, marks[0]))
        outcome = "failed" if reason is None else f"dead ({reason.value})"
        settled += [
            told(
                *(claimed.delivery, failure.handler.name, outcome),
                error=failure.words,
                place=place,
                raised=without_parameters(failure.error) if traced else None,
            )
            for failure, place in zip(of_delivery, places, strict=True)
        ]
    repository.write_failures(connection, rows)
    if postponed:
        repository.postpone(connection, postponed)
    if buried:
        repository.bury(connection, buried)
    return settled
