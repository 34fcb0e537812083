"""The demo from beginning to end: start, send, kill, wait until nothing is pending, check, clean up."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from sqlalchemy import Engine

from hookledger import migrate
from hookledger.demo.check import Verdict, check
from hookledger.demo.evidence import Counts, Evidence, count, gather
from hookledger.demo.framework import HOST, Framework, require_installed
from hookledger.demo.hooks import inbox, make_tables
from hookledger.demo.processes import Children
from hookledger.demo.progress import Progress
from hookledger.demo.report import Result
from hookledger.demo.sender import Sender
from hookledger.demo.traffic import Traffic, make_traffic
from hookledger.embedded import EmbeddedPostgres
from hookledger.engine import create

CONNECTIONS = 16
"""Of the sender."""

KILL_WORKER_AT, RESTART_RECEIVER_AT = 0.4, 0.7
"""After which part of the requests."""

LOOK_EVERY_SECONDS = 0.1
STALLED_SECONDS = 60.0
"""Without anything being settled, after which what is pending counts as lost."""

CONNECTIONS_PER_WORKER = 8
OTHER_CONNECTIONS = 40


@dataclass(frozen=True, slots=True)
class Options:
    """How to run the demo.

    Args:
        deliveries: different events to send, 1 or more; the copies come on top.
        workers: worker processes, 1 or more.
        framework: which adapter receives.
        kill: kill a worker and the receiver on the way.
    """

    deliveries: int = 10_000
    workers: int = 2
    framework: Framework = Framework.STARLETTE
    kill: bool = True


@dataclass
class Demo:
    """One run.

    Args:
        options: how.
        progress: is told how far it is.
    """

    options: Options
    progress: Progress
    workers_killed: int = 0
    verdict: Verdict = field(default_factory=Verdict)

    def run(self) -> Result:
        """Run it in a loop of its own. Whatever happens, no process and no file is left behind.

        Raises:
            SetupError: something that it needs is not installed.
            DemoFailed: a part of it gave up.
            KeyboardInterrupt: by SIGINT or SIGTERM, after all was cleaned up.
        """
        require_installed(self.options.framework)
        return asyncio.run(self._interruptible())

    async def _interruptible(self) -> Result:
        """Turn the first signal into a cancellation, which comes where the cleaning up is prepared for it; further
        ones change nothing."""
        loop, running = asyncio.get_running_loop(), asyncio.current_task()
        assert running is not None
        signals: list[int] = []

        def interrupt(number: int) -> None:
            signals.append(number)
            if len(signals) == 1:
                running.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt, number)
        try:
            return await self._run()
        except BaseException:
            if signals:
                raise KeyboardInterrupt from None
            raise
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def _run(self) -> Result:
        options = self.options
        traffic = make_traffic(options.deliveries)
        with ExitStack() as stack:
            server = stack.enter_context(_postgres(options.workers))
            self.progress.note(f"PostgreSQL {server.version} started, in a folder that is removed at the end")
            engine = create(server.url, pool_size=2, application_name="hookledger demo")
            stack.callback(engine.dispose)
            migrate.upgrade(engine, schema=inbox.schema)
            with engine.begin() as connection:
                make_tables(connection)
            children = stack.enter_context(Children(options.framework, server.url))
            for _ in range(options.workers):
                children.start_worker()
            await children.start_receiver()
            self.progress.note(
                f"receiver ({options.framework.value}) at http://{HOST}:{children.port}/webhooks, "
                f"{options.workers} worker process{'es' if options.workers > 1 else ''}"
            )
            sender = self._sender(traffic, children)
            begun = time.monotonic()
            await self._send_and_settle(sender, traffic, children, engine)
            seconds = time.monotonic() - begun
            with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
                evidence = gather(connection)
            self.verdict = check(traffic.events, sender.acknowledged, evidence)
        return self._result(traffic, sender, evidence, seconds)

    def _sender(self, traffic: Traffic, children: Children) -> Sender:
        requests = len(traffic.order)
        kill_worker_at = max(1, round(requests * KILL_WORKER_AT))
        restart_receiver_at = max(1, round(requests * RESTART_RECEIVER_AT))

        def acknowledged(accepted: int) -> None:
            if not self.options.kill:
                return
            if accepted == kill_worker_at:
                children.kill_worker()
                self.workers_killed += 1
                self.progress.note("killed a worker with SIGKILL and started another")
            if accepted == restart_receiver_at:
                children.restart_receiver()
                self.progress.note("killed the receiver with SIGKILL and started it again; the sender retries")

        return Sender(HOST, children.port, traffic.order, connections=CONNECTIONS, on_acknowledged=acknowledged)

    async def _send_and_settle(self, sender: Sender, traffic: Traffic, children: Children, engine: Engine) -> None:
        """Send, and wait until nothing is pending or nothing moves."""
        self.progress.begin(len(traffic.order), len(traffic.events))
        sending = asyncio.create_task(sender.run())
        try:
            moved, last = time.monotonic(), -1
            while True:
                sent = sending.done()
                if sent:
                    sending.result()
                children.check()
                counts = _count(engine)
                self.progress.update(sender.accepted, counts.settled)
                if sent and counts.pending == 0:
                    return
                now = time.monotonic()
                if counts.settled + sender.accepted != last:
                    moved, last = now, counts.settled + sender.accepted
                elif now - moved > STALLED_SECONDS:
                    self.progress.note(f"nothing was settled for {STALLED_SECONDS:g} s; {counts.pending} are pending")
                    return
                if sent:
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
                else:
                    await asyncio.wait([sending], timeout=LOOK_EVERY_SECONDS)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    def _result(self, traffic: Traffic, sender: Sender, evidence: Evidence, seconds: float) -> Result:
        outcomes = list(evidence.outcomes.values())
        return Result(
            sent=len(traffic.order),
            accepted=sender.accepted,
            unique=len(evidence.deliveries),
            applied=outcomes.count("applied"),
            stale=outcomes.count("stale"),
            superseded=outcomes.count("superseded"),
            resent=traffic.copies + sender.tries - len(traffic.order),
            lost=self.verdict.lost,
            doubled=self.verdict.doubled,
            misordered=self.verdict.misordered,
            workers_killed=self.workers_killed,
            seconds=round(seconds, 2),
            p50=evidence.p50,
            p99=evidence.p99,
        )


def _postgres(workers: int) -> EmbeddedPostgres:
    settings = {
        "max_connections": str(OTHER_CONNECTIONS + CONNECTIONS_PER_WORKER * workers),
        # Tells when something was committed, not only when its transaction began.
        "track_commit_timestamp": "on",
    }
    return EmbeddedPostgres(settings=settings)


def _count(engine: Engine) -> Counts:
    with engine.connect() as connection:
        return count(connection)
