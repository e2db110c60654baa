"""The cluster of ``guard.world`` with EvictionRequests: they are at the lab's API server, which checks every write.

Pods, policies and the application are the world's own, and an eviction is asked of its guards as the API server asks them.
"""

import asyncio
from random import Random

from msgspec.structs import replace
from support.guard.world import GuardWorld

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.eviction_requests import (
    EVICTIONS,
    REQUESTS,
    KubeEvictionCluster,
    KubeEvictionObjects,
    KubeEvictionRequests,
)
from lastcall.adapters.kube.resources import NAMESPACES
from lastcall.aio import wait_first
from lastcall.errors import TooManyRequests
from lastcall.guard.controller.guarded_pod_controller import GuardedPodController, GuardedPodPorts
from lastcall.guard.controller.preparation_controller import PreparationController
from lastcall.guard.eviction_requests.eviction_request_controller import EvictionRequestController
from lastcall.guard.eviction_requests.eviction_request_loop import EvictionRequestLoop
from lastcall.guard.eviction_requests.eviction_requester import EvictionRequester
from lastcall.guard.eviction_requests.guard_responder import GuardResponder
from lastcall.guard.eviction_requests.pod_evictor import PodEvictor
from lastcall.model.eviction_requests import EvictablePod, EvictableSpec, EvictableStatus, PodResponder
from lastcall.names import GUARD_RESPONDER, GUARD_USER
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.catalog.optional_resources import LIFECYCLE
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import UserInfo


class _Cluster(KubeEvictionCluster):
    """Pods are the world's. ``evictions``: the uids of pods whose eviction was asked for, with the answers."""

    def __init__(self, client, world):
        super().__init__(client)
        self._world = world

    async def find_pod(self, namespace, name):
        await self._world.clock.sleep(0.01)
        pod = self._world.pods.get(name)
        if pod is None:
            return None
        responders = (PodResponder(name=GUARD_RESPONDER, priority=10001),) if self._world.has_responder else ()
        return EvictablePod(
            metadata=pod.metadata,
            spec=EvictableSpec(eviction_responders=responders),
            status=EvictableStatus(phase=pod.status.phase),
        )

    async def evict(self, pod):
        world = self._world
        stored = [one for one in await world.read_evictions() if one.uid_of_pod == pod.metadata.uid]
        world.tries.append((world.clock.boottime(), pod.metadata.uid, tuple(stored)))
        world.trouble("evict")
        if world.budget:
            raise TooManyRequests(world.budget, code=429)
        allowed, message = await world.ask(pod.metadata.name, user={"username": GUARD_USER}, evict=True)
        if not allowed:
            raise TooManyRequests(message, code=429)


class EvictionWorld(GuardWorld):
    """``tries``: when and of which pod an eviction was asked for, and the Evictions as they were stored then."""

    def __init__(self, *, has_responder=True, optional=(LIFECYCLE,), **how):
        self.tries, self.budget, self.has_responder = [], "", has_responder
        super().__init__(**how)
        self.server = ApiServer(self.clock, Random(1), optional=optional)
        self.client = Client(InProcessTransport(self.server))
        self.guard_client = Client(InProcessTransport(self.server, UserInfo(GUARD_USER)))
        self.requester = EvictionRequester(KubeEvictionRequests(self.client))

    def make_pod(self, name, *, is_ready=False):
        """Pods have uids as the API server accepts them, and are in the namespace ``shop``."""
        super().make_pod(name, is_ready=is_ready)
        pod = self.pods[name]
        uid = f"00000000-0000-4000-8000-{self.made:012d}"
        self.pods[name] = replace(pod, metadata=replace(pod.metadata, uid=uid))

    async def open_namespace(self):
        """At the API server of the requests."""
        await self.client.create(NAMESPACES, {"metadata": {"name": "shop"}})

    def lead(self):
        """All that a guard does that leads."""
        objects = KubeEvictionObjects(self.guard_client, self.clock, Random(2), with_requests=True)
        cluster = _Cluster(self.guard_client, self)
        responder = GuardResponder(objects, cluster, facts=self, records=self, policies=self, clock=self.clock)
        parts = [
            EvictionRequestController(objects, cluster, self.clock),
            responder,
            PodEvictor(objects, cluster, self.clock),
        ]
        ports = GuardedPodPorts(
            facts=self,
            records=self,
            actions=self,
            providers=self,
            policies=self,
            shutdowns=self.shutdowns,
            clock=self.clock,
        )
        self.leader = asyncio.ensure_future(
            wait_first(
                PreparationController(self.ports, self).run(),
                GuardedPodController(ports).run(),
                EvictionRequestLoop(objects, cluster, parts, self.clock).run(),
            )
        )

    async def read_evictions(self):
        """All Evictions, as they are stored."""
        return (await self.client.list(EVICTIONS)).items

    async def read_requests(self):
        """All EvictionRequests, as they are stored."""
        return (await self.client.list(REQUESTS)).items

    async def collect_garbage(self):
        """As the garbage collector: an Eviction goes when all requests for it are gone."""
        left = {one.metadata.uid for one in await self.read_requests()}
        for one in await self.read_evictions():
            if not left & {owner.uid for owner in one.metadata.owner_references or ()}:
                await self.client.delete(EVICTIONS, one.metadata.name, namespace="shop")

    def calls(self, what):
        """The uids of members for which the provider was called."""
        return [uid for _, call, uid in self.application.calls if call == what]
