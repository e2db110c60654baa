"""Slices and kube-proxies in virtual time: each node hears of a change, and applies it by a synchronization, later."""

import asyncio
from random import Random

from lastcall.aio import Signal, cancel_and_wait
from lastcall.drain.traffic.departing_pods import DepartingPod, ProxyNode
from lastcall.drain.traffic.traffic_watch import TrafficWatch
from lastcall.errors import Unavailable
from lastcall.model.node_traffic import NodeTraffic, PodConnections
from lastcall.model.proxy_sync import ProxySync
from lastcall.model.slice_places import HEADLESS, SERVICE_NAME
from lastcall.model.traffic import EndpointConditions, EndpointSlice, PodReference, SliceEndpoint, SliceMetadata
from lastcall_lab import virtual

SYNC_SECONDS = 0.2
ADDRESS = "10.0.0.1"


class FakeSlices:
    """``ports.traffic.NamespaceSlices`` with one slice of the namespace ``default``."""

    def __init__(self):
        self._changed = Signal()
        self._found = None
        self.readable = True

    def start(self, namespaces):
        self.namespaces = set(namespaces)

    def slices_of(self, namespace):
        return self._found if self.readable else None

    def next_change(self):
        return self._changed.next()

    async def stop(self):
        pass

    def name(self, *uids, published=(), headless=(), leaving=()):
        """These pods are ready; ``published`` are those that terminate, and that publishNotReadyAddresses keeps ready.

        Those of ``headless`` are ready too, and make the slice that of a headless Service. Those of ``leaving``
        terminate, and serve still.
        """
        labels = {SERVICE_NAME: "shop"} | ({HEADLESS: ""} if headless else {})
        endpoints = [
            SliceEndpoint(
                target_ref=PodReference(kind="Pod", uid=uid),
                conditions=EndpointConditions(
                    ready=uid not in leaving, serving=True, terminating=uid in (*published, *leaving)
                ),
            )
            for uid in (*uids, *published, *headless, *leaving)
        ]
        self._found = [EndpointSlice(metadata=SliceMetadata(name="shop-1", labels=labels), endpoints=tuple(endpoints))]
        self._changed.set()


class FakeNodes:
    """``ports.traffic.TrafficReader``: kube-proxies that follow ``delay`` seconds after the change at ``changed``."""

    def __init__(self, clock):
        self._clock = clock
        self.changed = -1000.0
        self.delays, self.silent, self.connections = {}, set(), None
        self.latency = None
        self.slow = {}
        """Seconds that the agents of nodes take to answer."""
        self.rules = {}
        """Of nodes without a kube-proxy: whether they name an address at all; then until their delay is over."""
        self.asked = []

    async def read_traffic(self, node, addresses):
        self.asked.append(node)
        await self._clock.sleep(self.slow.get(node, 0.0))
        if node in self.silent:
            raise Unavailable(f"{node} does not answer")
        now, begins = self._clock.boottime(), self.changed + self.delays.get(node, 0.0)
        if node in self.rules:
            is_named = self.rules[node] and now < begins if self.changed >= 0 else self.rules[node]
            return NodeTraffic(named=dict.fromkeys(addresses, is_named))
        done = begins + SYNC_SECONDS <= now
        sync = ProxySync(
            queued=self.changed if self.changed <= now else -1000,
            finished=begins + SYNC_SECONDS if done else -900,
            longest=SYNC_SECONDS,
            pending=int(self.changed <= now < begins),
        )
        connections = None if self.connections is None else PodConnections({ADDRESS: self.connections}, True)
        return NodeTraffic(sync, self.latency, connections)


class TrafficWorld:
    """Pods on ``n0`` and nodes n0 and others; ``leave`` takes pods out of the slice.

    ``others`` are the pods of other nodes that are ready behind the same Service.
    """

    def __init__(self, *, count=3, **options):
        self.clock = virtual.VirtualClock()
        self.slices, self.nodes = FakeSlices(), FakeNodes(self.clock)
        self.others = ["other"]
        self.observed, self.changes, self.watched_pods, self._here = [], [], [], set()
        self.watched = [ProxyNode(f"n{number}", True) for number in range(count)]
        self.watch = TrafficWatch(
            self.slices, self.nodes, clock=self.clock, random=Random(1), observe=self.observed.append, **options
        )

    async def begin(self, *uids, terminates=False, balancers=(), **named):
        """The pods are named by the slice as the rest says: as ready, if it says nothing."""
        self.slices.name(*(() if named else uids), *self.others, **named)
        pods = [DepartingPod(uid, "default", f"pod-{uid}", "n0", ADDRESS, terminates, balancers) for uid in uids]
        self.watched_pods += uids
        self._here |= set() if named else {*uids}
        await self.watch.begin(pods, self.watched)

    def leave(self, *uids, **how):
        """The evictions of these pods, or of all, are accepted when their slices are without them."""
        for uid in uids or self.watched_pods:
            self.watch.mark_evicted(uid)
            self._here.discard(uid)
        self.slices.name(*sorted(self._here), *self.others, **how)
        self.nodes.changed = self.clock.boottime()

    async def wait_until_moved(self, *later):
        """The seconds until all has moved, and the steps; ``later`` are (seconds, function) in order."""
        begun = self.clock.boottime()
        actions = asyncio.ensure_future(self._act(later))
        steps = await self.watch.wait_until_moved(lambda pod, step: self.changes.append((pod.uid, step.stage)))
        await cancel_and_wait(actions)
        return self.clock.boottime() - begun, steps

    async def _act(self, later):
        for seconds, function in later:
            await self.clock.sleep(seconds)
            function()


def play(scene):
    """Runs ``scene()`` in virtual time."""
    return virtual.run(scene())
