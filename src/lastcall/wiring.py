"""Joins the agent to the real world: one process, its signals, its status page, its service manager."""

import asyncio
import contextlib
import functools
import logging
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lastcall.adapters import systemd_notify
from lastcall.adapters.agent_lock import AgentLock
from lastcall.adapters.boot import boot_id
from lastcall.adapters.clock import SystemClock, monotonic_usec
from lastcall.adapters.cri.runtime import CriRuntime
from lastcall.adapters.journal_files import JournalFiles
from lastcall.adapters.kube.shutdown_records import RecordedFace
from lastcall.adapters.kubelet_beside import BesideKubelet
from lastcall.adapters.lock_keeper import keeper
from lastcall.adapters.logind import SystemLogind
from lastcall.adapters.logind_conf import LogindConf
from lastcall.adapters.manifests import StaticPods
from lastcall.adapters.metrics import Metrics
from lastcall.adapters.status_server import TEXT, alive, serving
from lastcall.aio import cancel
from lastcall.errors import InvalidInput
from lastcall.graceful.agent import Agent, Outside, Status
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.lines import Lines, worrying
from lastcall.graceful.machine import State
from lastcall.graceful.recorder import Listener
from lastcall.model.record import fold
from lastcall.model.shutdown import Event, PodStarted, from_lines
from lastcall.ports import DelayLimitFiles, LockKeeper, Logind, NodeFace, PodRuntime
from lastcall.wiring_config import load_config, starting_config, under_way
from lastcall.wiring_records import recorded
from lastcall.wiring_storage import told
from lastcall.wiring_watchdog import Keeping, MachinesWatchdog, kept

CONFIG_SECONDS = 2.0
"""Between two looks at a configuration that was not valid when the program was started in a shutdown."""

WITHOUT_KUBECONFIG = "the API server is not told of it, and there is no record in the API and no watchdog until the agent is started again"
"""What an agent goes without that was killed in a shutdown and finds no kubeconfig; it is read at the start only."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line says. ``metrics`` is host and port, None for no status page."""

    config: Path
    state_dir: Path
    node_name: str
    metrics: tuple[str, int] | None
    logind_root: Path = Path("/")
    """Where ``etc/systemd`` lies; another than / only for a private logind."""


class Program:
    """The agent as a process. ``run`` ends on SIGTERM or SIGINT."""

    def __init__(
        self,
        settings: Settings,
        *,
        runtime: PodRuntime,
        node: NodeFace,
        logind: Logind | None = None,
        lock_keeper: LockKeeper | None = None,
        limit_files: DelayLimitFiles | None = None,
        listeners: Sequence[Listener] = (),
        watchdog: Keeping | None = None,
    ) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._metrics = Metrics()
        self._journals = JournalFiles(settings.state_dir)
        self._journals.prepare()
        self._status: Status | None = None
        self._first_round = asyncio.Event()
        config, self._unread = starting_config(settings.config, self._journals)
        self._static_pod_path = config.static_pod_path
        self._storage_lease = config.storage_lease
        self._machines_watchdog = MachinesWatchdog(config.watchdog, watchdog, self._metrics)
        self._tell_warnings(config)
        self._metrics.reloaded(ok=self._unread is None)
        self._show_last_shutdown()
        self.agent = Agent(
            config,
            Outside(
                clock=self._clock,
                logind=logind or SystemLogind(),
                keeper=lock_keeper or keeper(settings.state_dir, self._clock),
                limit_files=limit_files or LogindConf(settings.logind_root),
                runtime=runtime,
                node=node,
                journals=self._journals,
            ),
            node_name=settings.node_name,
            boot_id=boot_id(),
            listeners=[_log_events(since=self._clock.boottime()), self._metrics.event, *listeners],
            on_status=self._on_status,
        )

    async def run(self) -> None:
        """Until SIGTERM or SIGINT; RefusedForSafety if another agent has the state directory."""
        with AgentLock(self._settings.state_dir):
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._leave)
            loop.add_signal_handler(signal.SIGHUP, self.reload)
            async with self._status_page(), self._watchdog(), self._mended(), self._machines_watchdog.kept():
                await self.agent.run()

    def _leave(self) -> None:
        systemd_notify.stopping()
        self.agent.leave()

    async def first_round(self) -> None:
        """Returns when the agent has looked at logind and at its journal once."""
        await self._first_round.wait()

    def reload(self) -> None:
        """Reads the configuration again; a bad one is told and the old one kept."""
        systemd_notify.reloading(monotonic_usec())
        try:
            config = load_config(self._settings.config)
        except InvalidInput as error:
            log.error("the configuration is kept as it was, the new one is not valid:\n%s", error)
            self._metrics.reloaded(ok=False)
        else:
            log.info(
                "the configuration was read again: %s s in %s phases", config.requested_seconds, len(config.groups)
            )
            self._tell_warnings(config)
            if config.static_pod_path != self._static_pod_path:
                log.warning("configuration: staticPodPath: is taken over when the agent is started again")
            if config.storage_lease != self._storage_lease:
                log.warning("configuration: storageLease: is taken over when the agent is started again")
            self._machines_watchdog.reconfigure(config.watchdog)
            self._metrics.reloaded(ok=True)
            self.agent.reconfigure(config)
        systemd_notify.ready()

    # -- what others see -----------------------------------------------------------------------------------------------

    def _on_status(self, status: Status) -> None:
        before, self._status = self._status, status
        self._machines_watchdog.hold(going_down=status.state in (State.ENDING, State.LEAVING))
        self._metrics.status(
            armed=status.armed,
            logind_reachable=status.logind_reachable,
            requested=status.requested,
            granted=status.granted,
            degraded=status.degraded,
        )
        if status.retries > (before.retries if before else 0):
            self._metrics.retried()
        if before is None:
            systemd_notify.ready(status.sentence)
            self._first_round.set()
        elif before.sentence != status.sentence:
            systemd_notify.status(status.sentence)

    @contextlib.asynccontextmanager
    async def _watchdog(self) -> AsyncIterator[None]:
        """Where systemd watches this service, tells it twice in each period that the loop turns."""
        period = systemd_notify.watchdog_seconds()
        if period is None:
            yield
            return

        async def tell() -> None:
            while True:
                systemd_notify.watchdog()
                await self._clock.sleep(period / 2)

        telling = asyncio.create_task(tell(), name="watchdog")
        try:
            yield
        finally:
            await cancel(telling)

    @contextlib.asynccontextmanager
    async def _mended(self) -> AsyncIterator[None]:
        """Started in a shutdown without its configuration: should the machine stay up, it is to have one again."""
        if self._unread is None:
            yield
            return
        log.error("going on with the shutdown that is under way, without the configuration:\n%s", self._unread)
        trying = asyncio.create_task(self._until_valid(), name="configuration")
        try:
            yield
        finally:
            await cancel(trying)

    async def _until_valid(self) -> None:
        while True:
            await self._clock.sleep(CONFIG_SECONDS)
            with contextlib.suppress(InvalidInput):
                load_config(self._settings.config)
                return self.reload()

    def _status_page(self) -> contextlib.AbstractAsyncContextManager[None]:
        paths = {"/metrics": self._metrics_page, "/healthz": alive, "/readyz": self._readiness}
        return serving(paths, self._settings.metrics)

    def _metrics_page(self) -> tuple[int, str, bytes]:
        return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics.text()

    def _readiness(self) -> tuple[int, str, bytes]:
        """Ready means that a shutdown would be handled: armed, ending, or told to do nothing."""
        status = self._status
        good = status is not None and (status.armed or status.state in (State.IDLE, State.LEAVING))
        return 200 if good else 503, TEXT, f"{status.sentence if status else 'starting'}\n".encode()

    def _show_last_shutdown(self) -> None:
        """After a boot the metrics tell of the shutdown before it, as the kubelet's do."""
        with contextlib.suppress(OSError, ValueError):
            latest = self._journals.latest()
            if latest:
                record = fold(from_lines(latest[1]))
                self._metrics.last_shutdown(record.wall, None if record.ended is None else record.wall + record.ended)

    @staticmethod
    def _tell_warnings(config: AgentConfig) -> None:
        for warning in config.warnings:
            log.warning("configuration: %s", warning)


def _log_events(*, since: float) -> Listener:
    """What an earlier life of this program has told is not told again."""
    lines = Lines()

    def tell(event: Event) -> None:
        level = _level(event)
        if event.at < since or not log.isEnabledFor(level):
            lines.know(event)
        elif line := lines.line(event):
            log.log(level, "%s", line)

    return tell


def _level(event: Event) -> int:
    """That a pod's end begins is told of a hundred pods at once, and each line would hold up the first SIGTERM."""
    if isinstance(event, PodStarted):
        return logging.DEBUG
    return logging.WARNING if worrying(event) else logging.INFO


def host_name() -> str:
    """The name under which a kubelet registers this machine if it is not told another (lower case)."""
    return socket.gethostname().lower()


async def agent_beside_kubelet(settings: Settings, endpoint: str, kubelet_unit: str, *, kubeconfig: str = "") -> None:
    """``lastcall agent``: ends the containers at a CRI endpoint, whoever started them.

    ``kubelet_unit`` is the unit that would start them again; "" if there is none. ``kubeconfig`` is for the watchdog,
    for what is told of a lease on shared storage, and for the node's last word, which is told if any of them is there.
    """
    journals = JournalFiles(settings.state_dir)
    config, _ = starting_config(settings.config, journals)
    path = config.static_pod_path
    specs = {"specs": StaticPods(Path(path), settings.node_name)} if path else {}
    runtime = CriRuntime(endpoint, SystemClock(), node_name=settings.node_name, **specs)
    node: NodeFace = BesideKubelet(kubelet_unit, SystemClock())
    listeners: list[Listener] = []
    watchdog: Keeping | None = functools.partial(kept, node_name=settings.node_name, kubeconfig=kubeconfig)
    async with contextlib.AsyncExitStack() as opened:
        await runtime.open()
        opened.push_async_callback(runtime.close)
        if kubeconfig or config.watchdog or config.storage_lease:
            try:
                records = await opened.enter_async_context(recorded(settings.node_name, kubeconfig))
                await opened.enter_async_context(told(config.storage_lease, settings.node_name, kubeconfig))
                node, listeners = RecordedFace(node, records), [records.hear]
            except InvalidInput as error:
                if not under_way(journals):
                    raise
                log.error("going on with the shutdown that is under way, but %s: %s", WITHOUT_KUBECONFIG, error)
                watchdog = None
        await Program(settings, runtime=runtime, node=node, listeners=listeners, watchdog=watchdog).run()
