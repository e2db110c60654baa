"""Connects the agent to the machine: the process, its signals, its status page and its service manager."""

import asyncio
import contextlib
import functools
import gc
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from lastcall.adapters.cri.runtime import CriRuntime
from lastcall.adapters.csi.kubelet_directories import ROOT
from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock, monotonic_usec
from lastcall.adapters.kube.metrics_readers import MetricsReaders
from lastcall.adapters.kube.node_objects import KubeNodeObjects
from lastcall.adapters.kube.node_shutdown_recorder import RecordingNodeFace
from lastcall.adapters.kube.secure_metrics import SecureMetrics, SecureMetricsSettings, serve_secure_metrics
from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall.adapters.logind.host_lock import HostLockKeeper, container_pipe
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper, choose_lock_keeper
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.state.agent_lock import AgentLock
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.adapters.systemd import notification
from lastcall.adapters.systemd.kubelet_service import KubeletService
from lastcall.adapters.systemd.standing_units import StandingUnits
from lastcall.adapters.systemd.units import SystemdUnits
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
from lastcall.wiring.cluster import cluster_node_face
from lastcall.wiring.config import is_shutdown_under_way, load_config, load_starting_config
from lastcall.wiring.deadlines import DeadlineSources
from lastcall.wiring.identities import agent_identities
from lastcall.wiring.own_pods import own_pod_sources
from lastcall.wiring.records import shutdown_recorder
from lastcall.wiring.standing import StandingReport
from lastcall.wiring.storage import storage_lease_reporter
from lastcall.wiring.watchdog import AgentWatchdog, Keeping, watchdog_keeper

CONFIG_SECONDS = 2.0
"""Seconds between two reads of a configuration that was invalid when the agent started during a shutdown."""

WITHOUT_KUBECONFIG = (
    "the API server is not informed, and there is no record in the API and no watchdog until the agent restarts"
)
"""What an agent lacks that restarted during a shutdown without a kubeconfig; the kubeconfig is read only at start."""

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


async def run_agent_beside_kubelet(
    settings: AgentSettings,
    endpoint: str,
    kubelet_unit: str,
    *,
    kubelet_root: str = ROOT,
    kubeconfig: str = "",
    in_cluster: bool = False,
    secure_metrics: SecureMetricsSettings | None = None,
) -> None:
    """``lastcall agent``: ends the containers at a CRI endpoint, whichever program started them.

    ``kubelet_unit`` is the systemd unit that would restart them; "" if there is none. ``kubelet_root`` is its
    --root-dir, where the volumes of pods are mounted. ``kubeconfig`` serves the watchdog, the report of a lease on
    shared storage, the record of the node's shutdown, and the EndpointSlices. ``in_cluster``: these use the
    ServiceAccount of our pod, which is then never ended: $POD_UID names it; the lock outlives its container, and SIGTERM
    during a shutdown takes effect after it. Without either, the record is written with the node's identity, if that has
    been granted the right. The pods are watched, and the Node and the pods written, with the kubelet's identity if there
    is one (``find_node_access``).
    """
    journals = JournalFiles(settings.state_dir)
    config, _ = load_starting_config(settings.config, journals)
    own_pod = os.environ.get("POD_UID", "") if in_cluster else ""
    systemd = StandingUnits()
    kubelet = KubeletService(kubelet_unit, SystemClock(), systemd.open)
    metrics = AgentMetrics()
    watchdog: Keeping | None = functools.partial(watchdog_keeper, node_name=settings.node_name, kubeconfig=kubeconfig)
    async with contextlib.AsyncExitStack() as opened:
        own_pods = await opened.enter_async_context(
            own_pod_sources(
                settings.node_name,
                settings.state_dir,
                static_pod_path=config.static_pod_path,
                kubeconfig=kubeconfig,
                root=settings.logind_root,
            )
        )
        listeners: list[Listener] = [own_pods.record_event]
        runtime = CriRuntime(
            endpoint,
            SystemClock(),
            node_name=settings.node_name,
            own_pod=own_pod,
            sources=own_pods.current_sources,
        )
        own_pods.on_change = runtime.refresh_soon
        await runtime.open()
        opened.push_async_callback(runtime.close)
        systemd.start()
        opened.push_async_callback(systemd.close)
        opened.push_async_callback(kubelet.close)
        node: NodeFace = await opened.enter_async_context(
            cluster_node_face(
                kubelet,
                settings.node_name,
                client=lambda: own_pods.client,
                kubeconfig=kubeconfig,
                in_cluster=in_cluster,
                traffic=config.traffic,
                observe_withdrawal=metrics.observe_withdrawal,
                find_pod=own_pods.find_pod,
                kubelet_root=kubelet_root,
            )
        )
        objects = KubeNodeObjects(lambda: own_pods.client, settings.node_name, SystemClock())
        standing = StandingReport(objects, SystemLogind(), pod_uid=own_pod)

        def report_identity(name: str, usable: bool) -> None:
            metrics.set_identity(name, usable)
            standing.set_identity(name, usable)

        await opened.enter_async_context(
            agent_identities(
                own_pods, report_identity, settings.node_name, kubeconfig=kubeconfig, in_cluster=in_cluster
            )
        )
        if secure_metrics:
            readers = MetricsReaders(lambda: own_pods.client, SystemClock())
            secure = SecureMetrics(secure_metrics, metrics.render_text, readers.judge)
            await opened.enter_async_context(serve_secure_metrics(secure))
        recorder = functools.partial(
            shutdown_recorder, settings.node_name, kubeconfig, node_client=lambda: own_pods.client
        )
        own = bool(kubeconfig or in_cluster or config.watchdog or config.storage_lease)
        try:
            records = await opened.enter_async_context(recorder(own=own))
            if own:
                await opened.enter_async_context(
                    storage_lease_reporter(config.storage_lease, settings.node_name, kubeconfig)
                )
        except InvalidInput as error:
            if not is_shutdown_under_way(journals):
                raise
            log.error("resuming the shutdown under way, but %s: %s", WITHOUT_KUBECONFIG, error)
            watchdog = None
            records = await opened.enter_async_context(recorder(own=False))
        node, listeners = RecordingNodeFace(node, records), [*listeners, records.record_event]
        await AgentProgram(
            settings,
            runtime=runtime,
            node=node,
            lock_keeper=_lock_keeper_in_pod(settings, kubelet_unit) if in_cluster else None,
            listeners=listeners,
            watchdog=watchdog,
            metrics=metrics,
            finishes_shutdown=in_cluster,
            node_objects=objects,
            standing=standing,
        ).run()


def _lock_keeper_in_pod(settings: AgentSettings, kubelet_unit: str) -> LockKeeper:
    """Keeps the lock also beyond the end of the pod's container."""
    clock = SystemClock()
    inside = HolderProcessKeeper(settings.state_dir, clock)
    return HostLockKeeper(inside, clock, SystemdUnits.open, kubelet_unit=kubelet_unit, pipe=container_pipe())
