"""A kubelet: one node and its pods, on top of a runtime and an API client."""

from random import Random

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.aio import wait_first
from lastcall.errors import LastcallError
from lastcall.ports.node import Clock
from lastcall_lab.kubelet.base.next_tick import next_tick
from lastcall_lab.kubelet.base.node_runtime import NodeRuntime
from lastcall_lab.kubelet.base.settings import KubeletSettings, NodeProfile
from lastcall_lab.kubelet.cluster.config_sources import ConfigSources
from lastcall_lab.kubelet.cluster.event_recorder import KubeletEventRecorder
from lastcall_lab.kubelet.cluster.lease_renewals import LeaseRenewals
from lastcall_lab.kubelet.cluster.node_object import NodeFacts
from lastcall_lab.kubelet.cluster.node_reporter import NodeReporter
from lastcall_lab.kubelet.node.logs_and_exec import LogsAndExec
from lastcall_lab.kubelet.node.mirror_pods import ManifestSource
from lastcall_lab.kubelet.node.pod_manager import PodManager
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.volumes.driver_port import NodeVolumeDriver, VolumeDirectories
from lastcall_lab.kubelet.volumes.volume_manager import VolumeManager


class LabKubelet:
    """Cancelling ``run`` simulates a kubelet crash: its pods keep running and the next instance adopts them.

    ``directories`` hold the volumes of the pods; every kubelet instance of the node uses the same ones. ``manifests`` are
    those of its static pods; without any it takes mirror pods for ordinary ones.
    """

    def __init__(
        self,
        profile: NodeProfile,
        runtime: NodeRuntime,
        *,
        client: Client,
        clock: Clock,
        random: Random,
        directories: VolumeDirectories,
        volumes: NodeVolumeDriver | None = None,
        settings: KubeletSettings | None = None,
        renewals: LeaseRenewals | None = None,
        manifests: ManifestSource | None = None,
    ) -> None:
        self.profile = profile
        self.runtime = runtime
        self.going_down = False
        """While true, the node is not ready and pods are refused."""
        self.frozen = False
        """While true, another component ends the pods: this kubelet does not start, restart or end anything."""
        self.leaving: set[str] = set()
        """The uids of pods that another component has begun to end."""
        self.withdrawn: set[str] = set()
        """The uids of pods that are not ready because they are about to end."""
        self.told_shutdown = False
        """Whether an event has reported the node shutdown."""
        self._client, self._clock, self._random = client, clock, random
        self._settings = settings or KubeletSettings()
        self._runtime_fault = ""
        self.events = KubeletEventRecorder(client, clock, random, host=profile.name)
        self.node = self._new_node_reporter(renewals)
        self._sources = ConfigSources(client, clock, random, retry=self._settings.retry)
        self._volumes = self._new_volume_manager(directories, volumes)
        self.means = self._new_deps()
        self.pods = PodManager(self.means, manifests)
        self.api = LogsAndExec(self.pods, runtime, clock)

    def _new_node_reporter(self, renewals: LeaseRenewals | None) -> NodeReporter:
        return NodeReporter(
            self.profile,
            self._node_facts,
            client=self._client,
            clock=self._clock,
            random=self._random,
            events=self.events,
            settings=self._settings,
            renewals=renewals,
        )

    def _new_volume_manager(self, directories: VolumeDirectories, volumes: NodeVolumeDriver | None) -> VolumeManager:
        return VolumeManager(
            directories,
            volumes,
            client=self._client,
            sources=self._sources,
            node=self.node,
            clock=self._clock,
            settings=self._settings,
        )

    def _new_deps(self) -> KubeletDeps:
        return KubeletDeps(
            client=self._client,
            clock=self._clock,
            random=self._random,
            settings=self._settings,
            profile=self.profile,
            runtime=self.runtime,
            events=self.events,
            node=self.node,
            sources=self._sources,
            volumes=self._volumes,
            refusal=self._admission_refusal,
            held=lambda uid: self.frozen or uid in self.leaving,
            leaving=lambda uid: uid in self.leaving,
            withdrawn=lambda uid: uid in self.withdrawn,
        )

    async def run(self) -> None:
        """Runs all loops of the kubelet; raises the first error that ends one of them."""
        await wait_first(
            self.events.run(), self._sources.run(), self.pods.run(), self._watch_runtime(), self.node.run()
        )

    def release_pods(self) -> None:
        """Returns the pods to this kubelet's control."""
        self.frozen = False
        for worker in self.pods.workers.values():
            worker.record.moved.set()

    def _node_facts(self) -> NodeFacts:
        return NodeFacts(
            going_down=self.going_down,
            runtime_fault=self._runtime_fault,
            volumes_in_use=self._volumes.in_use,
        )

    def _admission_refusal(self) -> tuple[str, str] | None:
        return (names.REFUSED_REASON, names.REFUSED_MESSAGE) if self.going_down else None

    async def _watch_runtime(self) -> None:
        began = tick = self._clock.boottime()
        period = self._settings.status_update
        while True:
            before = self._runtime_fault
            try:
                await self.runtime.list_pods()
                self._runtime_fault = ""
            except LastcallError:
                self._runtime_fault = "container runtime is down"
            if self._runtime_fault != before:
                self.node.request_status_write()
            tick += period
            await self.runtime.wait_for_probe_change()
            now = self._clock.boottime()
            tick = next_tick(began, period, max(tick, now))
            await self._clock.sleep(tick - now)
