"""A kubelet: one node with its pods, on a runtime and a client of the API."""

from random import Random

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.aio import first
from lastcall.errors import LastcallError
from lastcall.lab.kubelet.api import Api
from lastcall.lab.kubelet.events import Recorder
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.node import Node
from lastcall.lab.kubelet.node_object import NodeFacts
from lastcall.lab.kubelet.pods import Pods
from lastcall.lab.kubelet.renewals import Renewals
from lastcall.lab.kubelet.runtime import NodeRuntime
from lastcall.lab.kubelet.settings import Profile, Settings
from lastcall.lab.kubelet.sources import Sources
from lastcall.lab.kubelet.ticks import next_tick
from lastcall.lab.kubelet.volume_port import Directories, Volumes
from lastcall.lab.kubelet.volumes import VolumeManager
from lastcall.ports import Clock


class Kubelet:
    """``run`` until cancelled, which is a kubelet's death: its pods run on, and the next one takes them over.

    ``directories`` hold the volumes of its pods; they are the same for each life of the node's kubelet.
    """

    def __init__(
        self,
        profile: Profile,
        runtime: NodeRuntime,
        *,
        client: Client,
        clock: Clock,
        random: Random,
        directories: Directories,
        volumes: Volumes | None = None,
        settings: Settings | None = None,
        renewals: Renewals | None = None,
    ) -> None:
        self.profile = profile
        self.runtime = runtime
        self.going_down = False
        """While true, the node is not ready and pods are refused."""
        self.frozen = False
        """While true, somebody else ends the pods: nothing is started, restarted or ended by this kubelet."""
        self.leaving: set[str] = set()
        """The uids of the pods whose end somebody else has begun."""
        self.told_shutdown = False
        """Whether an event has said that the node goes down."""
        self._client, self._clock, self._random = client, clock, random
        self._settings = settings or Settings()
        self._runtime_fault = ""
        self.events = Recorder(client, clock, random, host=profile.name)
        self.node = self._its_node(renewals)
        self._sources = Sources(client, clock, random, retry=self._settings.retry)
        self._volumes = self._its_volumes(directories, volumes)
        self.means = self._its_means()
        self.pods = Pods(self.means)
        self.api = Api(self.pods, runtime, clock)

    def _its_node(self, renewals: Renewals | None) -> Node:
        return Node(
            self.profile,
            self._facts,
            client=self._client,
            clock=self._clock,
            random=self._random,
            events=self.events,
            settings=self._settings,
            renewals=renewals,
        )

    def _its_volumes(self, directories: Directories, volumes: Volumes | None) -> VolumeManager:
        return VolumeManager(
            directories,
            volumes,
            client=self._client,
            sources=self._sources,
            node=self.node,
            clock=self._clock,
            settings=self._settings,
        )

    def _its_means(self) -> Means:
        return Means(
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
            refusal=self._refusal,
            held=lambda uid: self.frozen or uid in self.leaving,
            leaving=lambda uid: uid in self.leaving,
        )

    async def run(self) -> None:
        """All of it; what breaks off is raised."""
        await first(self.events.run(), self._sources.run(), self.pods.run(), self._look_at_runtime(), self.node.run())

    def thaw(self) -> None:
        """The pods are this kubelet's again."""
        self.frozen = False
        for worker in self.pods.workers.values():
            worker.record.moved.set()

    def _facts(self) -> NodeFacts:
        return NodeFacts(
            going_down=self.going_down,
            runtime_fault=self._runtime_fault,
            volumes_in_use=self._volumes.in_use,
        )

    def _refusal(self) -> tuple[str, str] | None:
        return (names.REFUSED_REASON, names.REFUSED_MESSAGE) if self.going_down else None

    async def _look_at_runtime(self) -> None:
        began = tick = self._clock.boottime()
        period = self._settings.status_update
        while True:
            before = self._runtime_fault
            try:
                await self.runtime.pods()
                self._runtime_fault = ""
            except LastcallError:
                self._runtime_fault = "container runtime is down"
            if self._runtime_fault != before:
                self.node.look()
            tick += period
            await self.runtime.unsettled()
            now = self._clock.boottime()
            tick = next_tick(began, period, max(tick, now))
            await self._clock.sleep(tick - now)
