"""Connects the agent to the machine: the process, its signals, its status page and its service manager."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock, monotonic_usec
from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall.adapters.logind.lock_keeper import choose_lock_keeper
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.state.agent_lock import AgentLock
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.adapters.systemd import notification
from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.adapters.telemetry.status_server import TEXT, alive_answer, serve_status
from lastcall.aio import cancel_and_wait
from lastcall.errors import InvalidInput
from lastcall.graceful.agent import AgentPorts, AgentStatus, ShutdownAgent
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.shutdown.event_text import EventFormatter, needs_attention
from lastcall.graceful.shutdown.journal_recorder import Listener
from lastcall.graceful.state_machine import AgentState
from lastcall.model.shutdown import JournalEvent, PodStarted, from_lines
from lastcall.model.shutdown_fold import fold_events
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import DelayLimitFiles, LockKeeper, Logind, NodeFace, PodRuntime
from lastcall.wiring.config import load_config, load_starting_config
from lastcall.wiring.deadlines import DeadlineSources
from lastcall.wiring.standing import StandingReport
from lastcall.wiring.watchdog import AgentWatchdog, Keeping

CONFIG_SECONDS = 2.0
"""Seconds between two reads of a configuration that was invalid when the agent started during a shutdown."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The command line's settings. ``metrics`` is host and port, None for no status page."""

    config: Path
    state_dir: Path
    node_name: str
    metrics: tuple[str, int] | None
    logind_root: Path = Path("/")
    """The directory that holds ``etc`` and ``proc``; not / only for a private logind."""


class AgentProgram:
    """The agent as a process. ``run`` returns on SIGTERM or SIGINT."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        runtime: PodRuntime,
        node: NodeFace,
        logind: Logind | None = None,
        lock_keeper: LockKeeper | None = None,
        limit_files: DelayLimitFiles | None = None,
        listeners: Sequence[Listener] = (),
        watchdog: Keeping | None = None,
        metrics: AgentMetrics | None = None,
        finishes_shutdown: bool = False,
        node_objects: NodeObjects | None = None,
        standing: StandingReport | None = None,
    ) -> None:
        self._settings = settings
        self._standing = standing
        self._node_objects = node_objects
        self._clock = SystemClock()
        self._metrics = metrics or AgentMetrics()
        self._journals = JournalFiles(settings.state_dir)
        self._journals.prepare()
        self._status: AgentStatus | None = None
        self._first_round = asyncio.Event()
        config, self._unread = load_starting_config(settings.config, self._journals)
        self._static_pod_path = config.static_pod_path
        self._storage_lease = config.storage_lease
        self._machines_watchdog = AgentWatchdog(config.watchdog, watchdog, self._metrics)
        self._deadlines = config.deadlines
        self._log_warnings(config)
        self._metrics.set_reload_result(ok=self._unread is None)
        self._show_last_shutdown()
        self.agent = ShutdownAgent(
            config,
            AgentPorts(
                clock=self._clock,
                logind=logind or SystemLogind(),
                keeper=lock_keeper or choose_lock_keeper(settings.state_dir, self._clock),
                limit_files=limit_files or LogindConf(settings.logind_root),
                runtime=runtime,
                node=node,
                journals=self._journals,
            ),
            node_name=settings.node_name,
            boot_id=boot_id(),
            listeners=[_log_events(since=self._clock.boottime()), self._metrics.count_event, *listeners],
            on_status=self._on_status,
            finishes_shutdown=finishes_shutdown,
        )

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT. RefusedForSafety if another agent uses the state directory."""
        with AgentLock(self._settings.state_dir):
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._request_stop)
            loop.add_signal_handler(signal.SIGHUP, self.reload_config)
            async with (
                self._status_page(),
                self._notify_systemd_watchdog(),
                self._retry_config(),
                self._machines_watchdog.keep(),
                self._deadline_sources().watch(),
                self._report_standing(),
            ):
                await self.agent.run()

    def _deadline_sources(self) -> DeadlineSources:
        return DeadlineSources(
            settings=self._deadlines,
            agent=self.agent,
            clock=self._clock,
            state_dir=self._settings.state_dir,
            metrics=self._metrics,
            objects=self._node_objects,
        )

    def _report_standing(self) -> contextlib.AbstractAsyncContextManager[None]:
        if self._standing is None:
            return contextlib.nullcontext()
        return self._standing.keep(lambda: self._status, lambda: self.agent.outlook.observes)

    def _request_stop(self) -> None:
        notification.notify_stopping()
        self.agent.request_stop()

    async def wait_for_first_round(self) -> None:
        """Returns when the agent has read logind and its journal once."""
        await self._first_round.wait()

    def reload_config(self) -> None:
        """Reads the configuration again; logs an invalid one and keeps the old one."""
        notification.notify_reloading(monotonic_usec())
        try:
            config = load_config(self._settings.config)
        except InvalidInput as error:
            log.error("the configuration stays unchanged, the new one is not valid:\n%s", error)
            self._metrics.set_reload_result(ok=False)
        else:
            log.info("the configuration was reloaded: %s s in %s phases", config.requested_seconds, len(config.groups))
            self._log_warnings(config)
            if config.static_pod_path != self._static_pod_path:
                log.warning("configuration: staticPodPath: a change takes effect when the agent restarts")
            if config.storage_lease != self._storage_lease:
                log.warning("configuration: storageLease: a change takes effect when the agent restarts")
            if structs.replace(config.deadlines, lead_seconds=self._deadlines.lead_seconds) != self._deadlines:
                log.warning("configuration: deadlines: a change of a source takes effect when the agent restarts")
            self._machines_watchdog.reconfigure(config.watchdog)
            self._metrics.set_reload_result(ok=True)
            self.agent.reconfigure(config)
        notification.notify_ready()

    # -- status and metrics --------------------------------------------------------------------------------------------

    def _on_status(self, status: AgentStatus) -> None:
        before, self._status = self._status, status
        if before and before.state is not status.state:
            _spare_garbage_collection(status.state)
        self._machines_watchdog.set_going_down(going_down=status.state in (AgentState.ENDING, AgentState.RELEASED))
        self._metrics.set_status(
            armed=status.armed,
            logind_reachable=status.logind_reachable,
            requested=status.requested,
            granted=status.granted,
            degraded=status.degraded,
        )
        self._metrics.set_notices(
            {notice.source.value: notice.deadline for notice in self.agent.notices},
            since_boot=self._clock.wall() - self._clock.boottime(),
        )
        if status.retries > (before.retries if before else 0):
            self._metrics.count_retry()
        if before is None:
            notification.notify_ready(status.sentence)
            self._first_round.set()
        elif before.sentence != status.sentence:
            notification.notify_status(status.sentence)

    @contextlib.asynccontextmanager
    async def _notify_systemd_watchdog(self) -> AsyncIterator[None]:
        """If systemd's WatchdogSec is set, notifies it twice per period that the event loop runs."""
        period = notification.watchdog_seconds()
        if period is None:
            yield
            return

        async def notify_repeatedly() -> None:
            while True:
                notification.notify_watchdog()
                await self._clock.sleep(period / 2)

        notifying = asyncio.create_task(notify_repeatedly(), name="watchdog")
        try:
            yield
        finally:
            await cancel_and_wait(notifying)

    @contextlib.asynccontextmanager
    async def _retry_config(self) -> AsyncIterator[None]:
        """Retries an invalid configuration after a start in a shutdown: the machine may yet stay up."""
        if self._unread is None:
            yield
            return
        log.error("resuming the shutdown under way without the configuration:\n%s", self._unread)
        trying = asyncio.create_task(self._reload_when_valid(), name="configuration")
        try:
            yield
        finally:
            await cancel_and_wait(trying)

    async def _reload_when_valid(self) -> None:
        while True:
            await self._clock.sleep(CONFIG_SECONDS)
            with contextlib.suppress(InvalidInput):
                load_config(self._settings.config)
                return self.reload_config()

    def _status_page(self) -> contextlib.AbstractAsyncContextManager[None]:
        paths = {"/metrics": self._metrics_page, "/healthz": alive_answer, "/readyz": self._readiness_page}
        return serve_status(paths, self._settings.metrics)

    def _metrics_page(self) -> tuple[int, str, bytes]:
        return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.render_text()

    def _readiness_page(self) -> tuple[int, str, bytes]:
        """Ready means that the agent would handle a shutdown, or is configured not to."""
        status = self._status
        good = status is not None and (status.armed or status.state in (AgentState.IDLE, AgentState.RELEASED))
        return 200 if good else 503, TEXT, f"{status.sentence if status else 'starting'}\n".encode()

    def _show_last_shutdown(self) -> None:
        """After a boot the metrics show the shutdown before it, as the kubelet's do."""
        with contextlib.suppress(OSError, ValueError):
            latest = self._journals.latest()
            if latest:
                record = fold_events(from_lines(latest[1]))
                self._metrics.set_last_shutdown(
                    record.wall, None if record.ended is None else record.wall + record.ended
                )

    @staticmethod
    def _log_warnings(config: AgentConfig) -> None:
        for warning in config.warnings:
            log.warning("configuration: %s", warning)


def _log_events(*, since: float) -> Listener:
    """A listener that logs events; it skips those of an earlier process."""
    lines = EventFormatter()

    def log_event(event: JournalEvent) -> None:
        level = _log_level(event)
        if event.at < since or not log.isEnabledFor(level):
            lines.remember_pod(event)
        elif line := lines.format_event(event):
            log.log(level, "%s", line)

    return log_event


def _log_level(event: JournalEvent) -> int:
    """The level for an event. A pod's start is DEBUG: lines for a hundred pods would hold up the first SIGTERM."""
    if isinstance(event, PodStarted):
        return logging.DEBUG
    return logging.WARNING if needs_attention(event) else logging.INFO


def _spare_garbage_collection(state: AgentState) -> None:
    """During a shutdown the collector passes over what is there already.

    A full collection takes some 25 ms of CPU, and what a shutdown allocates for its pods brings one about: it came in
    front of the first SIGTERM.
    """
    if state is AgentState.ENDING:
        gc.freeze()
    elif gc.get_freeze_count():
        gc.unfreeze()


def host_name() -> str:
    """The name under which a kubelet registers this machine by default (lower case)."""
    return socket.gethostname().lower()
