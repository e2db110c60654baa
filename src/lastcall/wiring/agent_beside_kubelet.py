"""Connects the agent to a runtime and a kubelet that other programs run: what ``lastcall agent`` starts."""

import contextlib
import functools
import logging
import os
from dataclasses import dataclass

from lastcall.adapters.cri.runtime import CriRuntime
from lastcall.adapters.csi.kubelet_directories import ROOT
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.connections import ConnectionTable
from lastcall.adapters.host.kernel_rules import KernelRules
from lastcall.adapters.kube.metrics_readers import MetricsReaders
from lastcall.adapters.kube.node_objects import KubeNodeObjects
from lastcall.adapters.kube.node_shutdown_recorder import NodeShutdownRecorder, RecordingNodeFace
from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.adapters.kube.secure_metrics import SecureMetrics, SecureMetricsSettings, serve_secure_metrics
from lastcall.adapters.kube.traffic_page import TRAFFIC_PATH, TrafficPage
from lastcall.adapters.logind.host_lock import HostLockKeeper, container_pipe
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.adapters.systemd.kubelet_service import KubeletService
from lastcall.adapters.systemd.standing_units import StandingUnits
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.errors import InvalidInput
from lastcall.ports.node import LockKeeper, NodeFace
from lastcall.wiring.agent import AgentProgram, AgentSettings
from lastcall.wiring.cluster import cluster_node_face
from lastcall.wiring.config import is_shutdown_under_way, load_starting_config
from lastcall.wiring.identities import agent_identities
from lastcall.wiring.own_pods import OwnPodSources, own_pod_sources
from lastcall.wiring.records import shutdown_recorder
from lastcall.wiring.standing import StandingReport
from lastcall.wiring.storage import storage_lease_reporter
from lastcall.wiring.watchdog import Keeping, watchdog_keeper

WITHOUT_KUBECONFIG = (
    "the API server is not informed, and there is no record in the API and no watchdog until the agent restarts"
)
"""What an agent lacks that restarted during a shutdown without a kubeconfig; the kubeconfig is read only at start."""

log = logging.getLogger("lastcall.wiring.agent")


@dataclass(frozen=True, kw_only=True)
class KubeletSettings:
    """How the agent reaches runtime, kubelet and API server.

    ``endpoint`` is that of the CRI runtime. ``unit`` is the systemd unit that would restart what is ended; "" if there is
    none. ``root`` is the kubelet's --root-dir, where the volumes of pods are mounted. ``kubeconfig`` serves the watchdog,
    the report of a lease on shared storage, the record of the node's shutdown, and the EndpointSlices. ``in_cluster``:
    these use the ServiceAccount of our pod, which is then never ended: $POD_UID names it; the lock outlives its
    container, and SIGTERM during a shutdown takes effect after it.
    """

    endpoint: str
    unit: str
    root: str = ROOT
    kubeconfig: str = ""
    in_cluster: bool = False
    secure_metrics: SecureMetricsSettings | None = None


async def run_agent_beside_kubelet(settings: AgentSettings, kubelet: KubeletSettings) -> None:
    """``lastcall agent``: ends the containers at a CRI endpoint, whichever program started them.

    Without an identity of its own the record is written with the node's identity, if that has been granted the right. The
    pods are watched, and the Node and the pods written, with the kubelet's identity if there is one (``find_node_access``).
    """
    async with contextlib.AsyncExitStack() as opened:
        program = await _AgentAssembly(settings, kubelet, opened).assemble()
        await program.run()


class _AgentAssembly:
    """The agent's parts, which ``opened`` closes."""

    def __init__(self, settings: AgentSettings, kubelet: KubeletSettings, opened: contextlib.AsyncExitStack) -> None:
        self._settings = settings
        self._kubelet = kubelet
        self._opened = opened
        self._journals = JournalFiles(settings.state_dir)
        self._config, _ = load_starting_config(settings.config, self._journals)
        self._own_pod = os.environ.get("POD_UID", "") if kubelet.in_cluster else ""
        self._metrics = AgentMetrics()
        self._watchdog: Keeping | None = functools.partial(
            watchdog_keeper, node_name=settings.node_name, kubeconfig=kubelet.kubeconfig
        )

    async def assemble(self) -> AgentProgram:
        """Opens all parts. InvalidInput if the kubeconfig cannot be read, unless a shutdown is under way."""
        own_pods = await self._opened.enter_async_context(
            own_pod_sources(
                self._settings.node_name,
                self._settings.state_dir,
                static_pod_path=self._config.static_pod_path,
                kubeconfig=self._kubelet.kubeconfig,
                root=self._settings.logind_root,
            )
        )
        runtime = await self._open_runtime(own_pods)
        node = await self._open_node_face(own_pods)
        objects = KubeNodeObjects(lambda: own_pods.client, self._settings.node_name, SystemClock())
        standing = StandingReport(objects, SystemLogind(), pod_uid=self._own_pod)
        await self._check_identities(own_pods, standing)
        await self._serve_secure_metrics(own_pods)
        records = await self._open_records(own_pods)
        return AgentProgram(
            self._settings,
            runtime=runtime,
            node=RecordingNodeFace(node, records),
            lock_keeper=self._lock_keeper_in_pod() if self._kubelet.in_cluster else None,
            listeners=[own_pods.record_event, records.record_event],
            watchdog=self._watchdog,
            metrics=self._metrics,
            finishes_shutdown=self._kubelet.in_cluster,
            node_objects=objects,
            standing=standing,
        )

    async def _open_runtime(self, own_pods: OwnPodSources) -> CriRuntime:
        runtime = CriRuntime(
            self._kubelet.endpoint,
            SystemClock(),
            node_name=self._settings.node_name,
            own_pod=self._own_pod,
            sources=own_pods.current_sources,
        )
        own_pods.on_change = runtime.refresh_soon
        await runtime.open()
        self._opened.push_async_callback(runtime.close)
        return runtime

    async def _open_node_face(self, own_pods: OwnPodSources) -> NodeFace:
        systemd = StandingUnits()
        service = KubeletService(self._kubelet.unit, SystemClock(), systemd.open)
        systemd.start()
        self._opened.push_async_callback(systemd.close)
        self._opened.push_async_callback(service.close)
        return await self._opened.enter_async_context(
            cluster_node_face(
                service,
                self._settings.node_name,
                client=lambda: own_pods.client,
                kubeconfig=self._kubelet.kubeconfig,
                in_cluster=self._kubelet.in_cluster,
                traffic=self._config.traffic,
                observe_withdrawal=self._metrics.observe_withdrawal,
                find_pod=own_pods.find_pod,
                kubelet_root=self._kubelet.root,
            )
        )

    async def _check_identities(self, own_pods: OwnPodSources, standing: StandingReport) -> None:
        def report_identity(name: str, usable: bool) -> None:
            self._metrics.set_identity(name, usable)
            standing.set_identity(name, usable)

        await self._opened.enter_async_context(
            agent_identities(
                own_pods,
                report_identity,
                self._settings.node_name,
                kubeconfig=self._kubelet.kubeconfig,
                in_cluster=self._kubelet.in_cluster,
            )
        )

    async def _serve_secure_metrics(self, own_pods: OwnPodSources) -> None:
        if self._kubelet.secure_metrics:
            readers = MetricsReaders(lambda: own_pods.client, SystemClock())
            traffic = TrafficPage(
                KubeProxyMetrics(),
                ConnectionTable().count_connections,
                SystemClock(),
                find_named=KernelRules(SystemClock()).find_named,
                observe=self._metrics.observe_propagation,
            )
            secure = SecureMetrics(
                self._kubelet.secure_metrics,
                self._metrics.render_text,
                readers.judge,
                more={TRAFFIC_PATH: traffic.render_text},
            )
            await self._opened.enter_async_context(serve_secure_metrics(secure))

    async def _open_records(self, own_pods: OwnPodSources) -> NodeShutdownRecorder:
        """With the own identity if one is configured; a shutdown under way goes on without it."""
        node_name, kubeconfig, config = self._settings.node_name, self._kubelet.kubeconfig, self._config
        recorder = functools.partial(shutdown_recorder, node_name, kubeconfig, node_client=lambda: own_pods.client)
        own = bool(kubeconfig or self._kubelet.in_cluster or config.watchdog or config.storage_lease)
        try:
            records = await self._opened.enter_async_context(recorder(own=own))
            if own:
                await self._opened.enter_async_context(
                    storage_lease_reporter(config.storage_lease, node_name, kubeconfig)
                )
        except InvalidInput as error:
            if not is_shutdown_under_way(self._journals):
                raise
            log.error("resuming the shutdown under way, but %s: %s", WITHOUT_KUBECONFIG, error)
            self._watchdog = None
            records = await self._opened.enter_async_context(recorder(own=False))
        return records

    def _lock_keeper_in_pod(self) -> LockKeeper:
        """Keeps the lock also beyond the end of the pod's container."""
        clock = SystemClock()
        inside = HolderProcessKeeper(self._settings.state_dir, clock)
        return HostLockKeeper(inside, clock, SystemdUnits.open, kubelet_unit=self._kubelet.unit, pipe=container_pipe())
