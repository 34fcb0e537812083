"""The senders: each event until it is acknowledged, as providers do, and what providers and strangers do besides."""

from __future__ import annotations

import contextlib
import http.client
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Sequence

from tests.faults.books import SOURCE, Journal
from tests.faults.forking import PREFIX
from tests.outcomes import shop
from tests.soak.plan import Manner, Plan, Sending, Sent
from tests.soak.stage import Process

ANSWERED_WITHIN = 12.0
"""Seconds, after which a sender hangs up."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds before an event is sent again."""
BEYOND = 10**9
"""Bytes that a request says it has."""

GONE = (OSError, http.client.HTTPException)
EXPECTED = {Manner.FORGED: frozenset({401, 503}), Manner.TOO_LARGE: frozenset({413, 503})}
ACKNOWLEDGED = 200
USUAL = frozenset({ACKNOWLEDGED, 503})


class Senders:
    """Sends what the plan says.

    Args:
        plan: of the run.
        receivers: that the events are sent to.
        threads: how many requests are under way at once, at the most.
    """

    def __init__(self, plan: Plan, receivers: Sequence[Process], threads: int = 16) -> None:
        self.journal = Journal()
        self.statuses: Counter[int] = Counter()
        self.manners: Counter[Manner] = Counter()
        self.unanswered = 0
        self.wrong: list[str] = []
        """Answers that should not have been given."""
        self._plan = plan
        self._receivers = receivers
        self._queue: queue.SimpleQueue[Sending | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        self._giving_up = threading.Event()
        self.given_up: list[str] = []

    def run(self, began: float) -> None:
        """Send all of it at its times; return when everything is acknowledged.

        Args:
            began: when the run did, as time.monotonic() tells it.
        """
        for thread in self._threads:
            thread.start()
        for sending in self._plan.sendings:
            time.sleep(max(0.0, began + sending.at - time.monotonic()))
            self.manners[sending.manner] += 1
            self._queue.put(sending)
            if sending.manner is Manner.AT_ONCE:
                self._queue.put(sending)
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def give_up(self) -> None:
        """Stop sending; what is not acknowledged is in `given_up`."""
        self._giving_up.set()

    def _work(self) -> None:
        while (sending := self._queue.get()) is not None:
            try:
                self._send_in_its_manner(sending)
            except Exception as error:  # a mistake of the sender's own must not pass for silence
                self.wrong.append(f"sending {sending.event.event_id} failed: {error!r}")

    def _send_in_its_manner(self, sending: Sending) -> None:
        match sending.manner:
            case Manner.FORGED | Manner.TOO_LARGE:
                self._send_bad(sending)
            case Manner.BROKEN_OFF:
                self._break_off(sending)
                self._send(sending)
            case Manner.AGAIN:
                self._send(sending)
                self._send(sending)
            case _:
                self._send(sending)

    def _send(self, sending: Sending) -> None:
        """Until it is acknowledged, to any of the receivers."""
        pause = FIRST_PAUSE
        for turn in range(10**6):
            self.journal.send(sending.event)
            status = self._try(sending.event, self._receiver(sending, turn))
            if status == ACKNOWLEDGED:
                self.journal.acknowledge(sending.event)
                return
            if status is not None and status not in USUAL:
                self.wrong.append(f"{sending.event.event_id} was answered {status}")
            if self._giving_up.wait(pause):
                self.given_up.append(sending.event.event_id)
                return
            pause = min(LONGEST_PAUSE, pause * 2)

    def _receiver(self, sending: Sending, turn: int) -> Process:
        return self._receivers[(int(sending.chance * 1000) + turn) % len(self._receivers)]

    def _try(self, event: Sent, receiver: Process) -> int | None:
        sign = shop().sign
        assert sign is not None
        body = event.body
        return self._request(receiver, body, dict(sign(body, time.time())))

    def _request(self, receiver: Process, body: bytes, headers: dict[str, str]) -> int | None:
        """The status of the answer; None if there was none."""
        connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=ANSWERED_WITHIN)
        try:
            connection.request("POST", f"{PREFIX}/{SOURCE}", body, headers)
            status = connection.getresponse().status
        except GONE:
            self.unanswered += 1
            return None
        finally:
            connection.close()
        self.statuses[status] += 1
        return status

    def _send_bad(self, sending: Sending) -> None:
        """What must not be taken; nobody notes it as sent, so it would be a stranger in the ledger."""
        body = sending.event.body
        sign = shop().sign
        assert sign is not None
        if sending.manner is Manner.FORGED:
            headers = dict(sign(body + b" ", time.time()))
        else:
            headers = {**dict(sign(body, time.time())), "Content-Length": str(BEYOND)}
        status = self._request(self._receiver(sending, 0), body, headers)
        if status is not None and status not in EXPECTED[sending.manner]:
            self.wrong.append(f"{sending.event.event_id}, sent {sending.manner}, was answered {status}")

    def _break_off(self, sending: Sending) -> None:
        body = sending.event.body
        sign = shop().sign
        assert sign is not None
        lines = [f"POST {PREFIX}/{SOURCE} HTTP/1.1", "Host: hooks.test", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in sign(body, time.time())]
        receiver = self._receiver(sending, 0)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", receiver.port), timeout=5) as wire:
            wire.sendall("\r\n".join([*lines, "", ""]).encode() + body[: len(body) // 2])
