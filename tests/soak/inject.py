"""Brings the planned faults about, each at its time, and counts them."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tests.proxy import Proxy
from tests.soak.plan import Fault, Plan, Planned
from tests.soak.stage import Process, Stage

OURS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'hookledger%' ORDER BY pid"
TERMINATE = "SELECT pg_terminate_backend(:pid)"
TABLES = ("pending", "deliveries", "effects", "resource_state", "payloads", "failures")
MOST_CONNECTIONS = 60
READ_ONLY_ON = "ALTER SYSTEM SET default_transaction_read_only = on"
READ_ONLY_OFF = "ALTER SYSTEM RESET default_transaction_read_only"
RELOAD = "SELECT pg_reload_conf()"
LOST = (DBAPIError, OSError)


class Injector:
    """Runs the plan's faults in threads of their own.

    Args:
        plan: whose faults.
        stage: on which.
        tell: is told of each.
    """

    def __init__(self, plan: Plan, stage: Stage, tell: Callable[[str], None]) -> None:
        self.counts: Counter[Fault] = Counter()
        self._plan = plan
        self._stage = stage
        self._tell = tell
        self._server = threading.Lock()
        self._silence = threading.Lock()
        self._silent: Counter[Proxy] = Counter()
        self._over = threading.Event()

    def run(self, began: float) -> None:
        """Bring all of them about; return when the last is over.

        Args:
            began: when the run did, as time.monotonic() tells it.
        """
        threads = []
        for planned in self._plan.faults:
            time.sleep(max(0.0, began + planned.at - time.monotonic()))
            self._tell(f"{planned.at:6.1f} s  {planned.fault} {planned.seconds:.1f}")
            thread = threading.Thread(target=self._bring_about, args=(planned,), daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()

    def _bring_about(self, planned: Planned) -> None:
        # A server that is down, or a connection that another fault has cut: then this one falls on nothing.
        with contextlib.suppress(*LOST):
            self._do(planned)
            self.counts[planned.fault] += 1

    def _do(self, planned: Planned) -> None:
        match planned.fault:
            case Fault.WORKER_KILLED:
                self._one_of(self._stage.workers, planned).send_signal(signal.SIGKILL)
            case Fault.WORKER_STOPPED:
                self._one_of(self._stage.workers, planned).send_signal(signal.SIGTERM)
            case Fault.WORKER_FROZEN:
                process = self._one_of(self._stage.workers, planned)
                process.send_signal(signal.SIGSTOP)
                time.sleep(planned.seconds)
                process.send_signal(signal.SIGCONT)
            case Fault.RECEIVER_KILLED:
                self._one_of(self._stage.receivers, planned).send_signal(signal.SIGKILL)
            case Fault.RECEIVER_STOPPED:
                self._one_of(self._stage.receivers, planned).send_signal(signal.SIGTERM)
            case Fault.RESTARTED_FAST | Fault.RESTARTED_IMMEDIATE | Fault.POWER_FAILED:
                self._restart(planned.fault)
            case Fault.BACKEND_TERMINATED:
                with self._stage.connection() as connection:
                    pids = list(connection.execute(text(OURS)).scalars())
                    connection.execute(text(TERMINATE), {"pid": pids[int(planned.chance * len(pids))] if pids else 0})
            case Fault.RECEIVERS_SILENT:
                self._keep_silent(self._stage.receivers_proxy, planned.seconds)
            case Fault.WORKERS_SILENT:
                self._keep_silent(self._stage.workers_proxy, planned.seconds)
            case Fault.FORGOTTEN:
                proxy = self._stage.workers_proxy if planned.chance < 0.5 else self._stage.receivers_proxy
                with self._silence:
                    proxy.forget()
                    self._silent[proxy] = 0
            case Fault.READ_ONLY:
                self._read_only(planned.seconds)
            case Fault.CONNECTIONS_USED_UP:
                self._use_up(planned.seconds)
            case Fault.TABLE_LOCKED:
                self._lock(TABLES[int(planned.chance * len(TABLES))], planned.seconds)

    def _one_of(self, processes: list[Process], planned: Planned) -> Process:
        return processes[int(planned.chance * len(processes))]

    def _restart(self, fault: Fault) -> None:
        with self._server:
            if fault is Fault.POWER_FAILED:
                self._stage.server.kill()
                self._stage.server.start()
            else:
                self._stage.server.restart("fast" if fault is Fault.RESTARTED_FAST else "immediate")

    def _keep_silent(self, proxy: Proxy, seconds: float) -> None:
        with self._silence:
            self._silent[proxy] += 1
            proxy.pause()
        time.sleep(seconds)
        with self._silence:
            self._silent[proxy] -= 1
            if self._silent[proxy] <= 0:
                proxy.resume()

    def _read_only(self, seconds: float) -> None:
        with self._server:
            try:
                with self._stage.connection() as connection:
                    connection.exec_driver_sql(READ_ONLY_ON)
                    connection.exec_driver_sql(RELOAD)
                time.sleep(seconds)
            finally:
                with self._stage.connection() as connection:
                    connection.exec_driver_sql(READ_ONLY_OFF)
                    connection.exec_driver_sql(RELOAD)

    def _use_up(self, seconds: float) -> None:
        """Take all connections there are, ours too."""
        with contextlib.ExitStack() as stack, self._server:
            control = stack.enter_context(self._stage.connection())
            self._take_all(stack)
            for pid in list(control.execute(text(OURS)).scalars()):
                control.execute(text(TERMINATE), {"pid": pid})
                self._take_all(stack)
            time.sleep(seconds)

    def _take_all(self, stack: contextlib.ExitStack) -> list[Connection]:
        taken: list[Connection] = []
        with contextlib.suppress(DBAPIError):
            while len(taken) < MOST_CONNECTIONS:
                taken.append(stack.enter_context(self._stage.connection()))
        return taken

    def _lock(self, table: str, seconds: float) -> None:
        with self._stage.connection() as connection:
            connection.exec_driver_sql("BEGIN")
            connection.exec_driver_sql(f"LOCK TABLE hookledger.{table} IN ACCESS EXCLUSIVE MODE")
            time.sleep(seconds)
            connection.exec_driver_sql("ROLLBACK")


def wake_all(stage: Stage) -> None:
    """See that nothing is held up any more."""
    for proxy in (stage.receivers_proxy, stage.workers_proxy):
        proxy.resume()
    for worker in stage.workers:
        worker.send_signal(signal.SIGCONT)
