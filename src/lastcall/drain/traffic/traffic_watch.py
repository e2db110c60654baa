"""Waits until the traffic of departing pods has moved, and learns how long that takes."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from lastcall.aio import OrderedTaskGroup, cancel_and_wait, wait_first
from lastcall.drain.traffic.departing_pods import DepartingPod, Departure, ProxyNode
from lastcall.drain.traffic.departure import (
    DepartureFacts,
    DepartureLimits,
    DepartureStep,
    ProxyState,
    assess_departure,
)
from lastcall.drain.traffic.settle_estimate import BALANCER_SECONDS, SettleEstimate, estimate_settle_time
from lastcall.errors import LastcallError
from lastcall.model.node_traffic import NodeTraffic
from lastcall.model.proxy_sync import judge_sync
from lastcall.model.slice_places import SlicePlace, find_places, merge_places
from lastcall.ports.node import Clock
from lastcall.ports.traffic import NamespaceSlices, TrafficReader

MOST_NODES = 50
"""So many nodes are asked at most; the settle time stands for the others."""
POLL_SECONDS = 0.5
"""Seconds between two readings of a node."""


class TrafficWatch:
    """The departures of some pods. ``observe`` gets each delay of a proxy after the slices, in seconds.

    ``settle`` is a configured settle time in seconds, None for a learnt one. ``random`` chooses which nodes are asked.
    """

    def __init__(
        self,
        slices: NamespaceSlices,
        reader: TrafficReader,
        *,
        clock: Clock,
        random: Random,
        limits: DepartureLimits | None = None,
        settle: float | None = None,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._slices = slices
        self._reader = reader
        self._clock = clock
        self._random = random
        self._limits = limits or DepartureLimits()
        self._settle = settle
        self._observe = observe
        self._departures: dict[str, Departure] = {}
        self._asked: Sequence[str] = ()
        self._left_out: Sequence[str] = ()
        self._unasked = 0
        self._readings: dict[str, NodeTraffic] = {}
        self._latencies: dict[str, float] = {}
        self._delays: list[float] = []

    async def begin(self, pods: Iterable[DepartingPod], nodes: Iterable[ProxyNode]) -> None:
        """Watches the pods' slices, and reads each node once. Call it before the pods are evicted.

        It returns when the slices are listed, after ``POLL_SECONDS`` times 10 at the latest.
        """
        now = self._clock.boottime()
        added = [one for one in pods if one.uid not in self._departures]
        self._departures |= {
            one.uid: Departure(one, now if one.terminates else None, was_ready=one.terminates, unseen=one.terminates)
            for one in added
        }
        self._choose_nodes(list(nodes))
        self._slices.start({one.namespace for one in added})
        await self._read_nodes()
        until = now + 10 * POLL_SECONDS
        while any(self._slices.slices_of(one.namespace) is None for one in added) and self._clock.boottime() < until:
            await wait_first(self._slices.next_change(), self._clock.sleep(until - self._clock.boottime()))
        self._look_at_slices()

    def mark_evicted(self, uid: str) -> None:
        """The pod's eviction was accepted, or it is in deletion: its traffic is expected to move."""
        one = self._departures.get(uid)
        if one is None or one.evicted is not None:
            return
        one.evicted = self._clock.boottime()
        if one.place is None:
            one.unseen = one.was_ready = True

    def forget(self, uid: str) -> None:
        """The pod stays, so its traffic is not waited for."""
        self._departures.pop(uid, None)

    def forget_present(self) -> None:
        """All pods that are not gone stay."""
        for uid in [uid for uid, one in self._departures.items() if one.gone is None]:
            self.forget(uid)

    def mark_gone(self, uid: str) -> None:
        """The pod's object does not exist any more."""
        if uid in self._departures and self._departures[uid].gone is None:
            self.mark_evicted(uid)
            self._departures[uid].gone = self._clock.boottime()

    @property
    def steps(self) -> Mapping[str, DepartureStep]:
        """What each pod's traffic waits for, by uid, as last assessed."""
        return {uid: one.step for uid, one in self._departures.items() if one.step}

    @property
    def settle_time(self) -> SettleEstimate:
        """The settle time that counts now."""
        if self._settle is not None:
            return SettleEstimate(self._settle, "configured")
        return estimate_settle_time(self._latencies.values(), self._delays)

    async def wait_until_moved(
        self, on_change: Callable[[DepartingPod, DepartureStep], None] = lambda *_: None
    ) -> Mapping[str, DepartureStep]:
        """Returns the last step of each pod as soon as the traffic of all has moved, or limits have passed.

        A pod that is not evicted, or that serves until it is gone, is waited for without a limit: ``forget`` it if it stays.
        """
        looking = asyncio.create_task(self._follow_slices(), name="look at slices")
        try:
            while not self._assess(on_change):
                heard = self._slices.next_change()
                await wait_first(heard, self._clock.sleep(POLL_SECONDS))
                self._look_at_slices()
                if any(one.left is not None for one in self._pending()):
                    await self._read_nodes()
        finally:
            await cancel_and_wait(looking)
        return self.steps

    async def close(self) -> None:
        """Ends the watches of slices."""
        await self._slices.stop()

    async def _follow_slices(self) -> None:
        """Sees changes while nodes are asked, which takes seconds if an agent does not answer.

        A proxy that has heard of a change long before it was seen here would seem to have missed it.
        """
        while True:
            heard = self._slices.next_change()
            self._look_at_slices()
            await heard

    # -- what is read --------------------------------------------------------------------------------------------------

    def _choose_nodes(self, nodes: Sequence[ProxyNode]) -> None:
        """Those of the pods first, since their agents know the connections, those asked before, then others by chance."""
        own = {one.pod.node for one in self._departures.values()}
        ready = [one.name for one in nodes if one.ready]
        first = sorted((name for name in ready if name in own or name in self._asked), key=lambda name: name not in own)
        first = first[:MOST_NODES]
        others = [name for name in ready if name not in first]
        more = min(MOST_NODES - len(first), len(others))
        self._asked = sorted([*first, *self._random.sample(others, more)])
        self._unasked = len(others) - more
        self._left_out = sorted(one.name for one in nodes if not one.ready)

    async def _read_nodes(self) -> None:
        group = OrderedTaskGroup()
        for node in self._asked:
            group.start(self._read_node(node), f"traffic of {node}")
        try:
            await group.join()
        finally:
            await group.cancel()
        for departure in self._pending():
            self._judge_proxies(departure)

    async def _read_node(self, node: str) -> None:
        try:
            addresses = {one.pod.address for one in self._pending() if one.pod.address}
            found = await self._reader.read_traffic(node, addresses)
        except LastcallError:
            self._readings.pop(node, None)
            return
        self._readings[node] = found
        if found.latency is not None:
            self._latencies[node] = found.latency

    def _look_at_slices(self) -> None:
        followed = [one for one in self._departures.values() if one.may_change]
        for namespace in sorted({one.pod.namespace for one in followed}):
            slices = self._slices.slices_of(namespace)
            departures = [one for one in followed if one.pod.namespace == namespace]
            places = find_places(slices or (), [one.pod.uid for one in departures])
            for one in departures:
                self._note_place(one, None if slices is None else places[one.pod.uid])

    def _note_place(self, one: Departure, place: SlicePlace | None) -> None:
        one.place = place if place is None or one.place is None else merge_places(one.place, place)
        if place is None:
            return
        one.seen_ready = one.seen_ready or bool(place.ready or place.lasting)
        one.was_ready = one.was_ready or one.seen_ready
        if place.ready or place.lasting:
            one.left = None
            one.step = None if one.has_moved else one.step
        elif one.was_ready and one.left is None:
            one.left = self._clock.boottime()
            one.heard.clear()
            one.followed.clear()

    def _judge_proxies(self, one: Departure) -> None:
        self._judge_rules(one)
        if one.left is None:
            return
        now = self._clock.boottime()
        for node in self._asked:
            reading = self._readings.get(node)
            if node in one.followed or reading is None or reading.sync is None:
                continue
            verdict = judge_sync(reading.sync, one.left, now=now, heard_since=one.heard.get(node))
            if not verdict.heard:
                one.heard.pop(node, None)
                continue
            one.heard.setdefault(node, now)
            if verdict.followed:
                one.followed[node] = now
                self._learn_delay(max(reading.sync.finished - one.left, 0.0))

    def _judge_rules(self, one: Departure) -> None:
        """Rules that have named the pod and do no longer have followed; those that never did prove nothing."""
        now = self._clock.boottime()
        for node in self._asked:
            reading = self._readings.get(node)
            names_it = reading.names(one.pod.address) if reading and reading.sync is None else None
            if names_it:
                one.named.add(node)
            elif names_it is False and node in one.named - one.followed.keys() and one.left is not None:
                one.followed[node] = now
                self._learn_delay(now - one.left)

    def _learn_delay(self, seconds: float) -> None:
        self._delays.append(seconds)
        self._observe(seconds)

    # -- what it means -------------------------------------------------------------------------------------------------

    def _pending(self) -> Sequence[Departure]:
        return [one for one in self._departures.values() if not one.has_moved]

    def _assess(self, on_change: Callable[[DepartingPod, DepartureStep], None]) -> bool:
        """Whether the traffic of all pods has moved."""
        for one in self._pending():
            step = assess_departure(self._facts(one), self._limits, self._clock.boottime())
            if one.step is None or (step.stage, step.why) != (one.step.stage, one.step.why):
                on_change(one.pod, step)
            one.step = step
        return not self._pending()

    def _facts(self, one: Departure) -> DepartureFacts:
        reading = self._readings.get(one.pod.node)
        connections = reading.connections.count_of(one.pod.address) if reading and reading.connections else None
        return DepartureFacts(
            evicted=one.evicted,
            place=one.place,
            was_ready=one.was_ready,
            left=one.left,
            proxies=self._proxy_states(one),
            unasked=self._unasked,
            settle=self._settle_seconds(one),
            connections=connections,
            gone=one.gone,
            balancers=one.pod.balancers,
        )

    def _settle_seconds(self, one: Departure) -> float:
        """What is learnt from proxies says nothing of a load balancer."""
        least = BALANCER_SECONDS if one.pod.balancers and self._settle is None else 0.0
        return max(self.settle_time.seconds, least)

    def _proxy_states(self, one: Departure) -> Mapping[str, ProxyState]:
        """A proxy that follows no slice of the pod is not waited for.

        If it was not seen when the pod left its slices, no time of a proxy proves anything: the settle time counts.
        """
        states = dict.fromkeys(self._left_out, ProxyState.LEFT_OUT)
        unseen = one.unseen and not one.seen_ready
        for node in self._asked:
            reading = self._readings.get(node)
            if node in one.followed:
                states[node] = ProxyState.FOLLOWED
            elif reading is not None and reading.sync is None and node in one.named:
                states[node] = ProxyState.LATE
            elif reading is None or reading.sync is None or unseen:
                states[node] = ProxyState.SILENT
            elif one.place is not None and not one.place.proxied:
                states[node] = ProxyState.FOLLOWED
            else:
                states[node] = ProxyState.LATE
        return states
