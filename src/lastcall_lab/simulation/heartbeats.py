"""Node leases whose renewals are computed while nothing disturbs them: hours of renewals without a write.

A node's kubelet renews its lease every ten seconds; of a thousand nodes that is what nearly all writes of a quiet hour
are about. When the last renewal was can be computed for as long as the kubelet lives and its way to the server is
clear. What is computed becomes a write as soon as that ends, and when somebody else reads leases.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lastcall.adapters.kube.transport import ApiResponse, Transport
from lastcall.ports.node import Clock
from lastcall_lab import virtual
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values.object_meta import micro_timestamp
from lastcall_lab.controllers.nodes.node_health import LeaseRenewal
from lastcall_lab.kubelet.base.next_tick import next_tick
from lastcall_lab.simulation.clocks import NodeClock

_RESOURCE, _NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"


@dataclass(kw_only=True)
class _ComputedLease:
    """``since`` is when the kubelet has renewed it itself, by the cluster's clock; its own is ``skew`` seconds ahead."""

    since: float
    period: float
    skew: float
    over: "asyncio.Future[None]"

    def last_renewal(self, now: float) -> LeaseRenewal | None:
        """None: none since then."""
        number = int((now - self.since + 1e-6) // self.period)
        at = self.since + number * self.period
        return LeaseRenewal(micro_timestamp(at + self.skew), at) if number else None


class LeaseHeartbeats:
    """Of all nodes of a cluster, whose clock is right."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._beats: dict[str, _ComputedLease] = {}
        self._last: dict[str, LeaseRenewal] = {}

    def last_renewal(self, node: str) -> LeaseRenewal | None:
        """The last renewal that was computed, written down or not; None if the kubelet has renewed it itself since."""
        beat = self._beats.get(node)
        if beat and (renewal := beat.last_renewal(self._clock.wall())):
            self._last[node] = renewal
        return self._last.get(node)

    def forget(self, node: str) -> None:
        """The kubelet has renewed it itself: what its clock said before does not count."""
        self._last.pop(node, None)

    def start_computing(self, node: str, *, period: float, skew: float) -> "asyncio.Future[None]":
        """The kubelet has renewed it now, and from now on it is computed; done when it is not any more."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._beats[node] = _ComputedLease(since=self._clock.wall(), period=period, skew=skew, over=over)
        return over

    def stop_computing(self, node: str) -> None:
        """Not any more: what has come so far is written."""
        if node not in self._beats:
            return
        self.write_to_store(node)
        beat = self._beats.pop(node)
        if not beat.over.done():
            beat.over.set_result(None)

    def write_to_store(self, *nodes: str) -> None:
        """So that the store says of the leases of these nodes (of all, if none is named) what is computed."""
        for node in nodes or list(self._beats):
            renewal, stored = self.last_renewal(node), self._store.get(StorageKey(_RESOURCE, _NAMESPACE, node))
            if renewal and stored and (lease := stored.to_object())["spec"].get("renewTime") != renewal.text:
                lease["spec"]["renewTime"] = renewal.text
                self._store.put(stored.key, lease, expected=stored.revision)


class NodeHeartbeat:
    """``kubelet.renewals.Renewals`` of one node. ``clear``: whether nothing is in its way to the server.

    Who puts something there calls ``disturb`` then.
    """

    def __init__(self, node: str, heartbeats: LeaseHeartbeats, *, clock: NodeClock, clear: Callable[[], bool]) -> None:
        self._node = node
        self._heartbeats = heartbeats
        self._clock = clock
        self._clear = clear

    def disturb(self) -> None:
        """Something is in its way, or its clock has jumped: it is for the kubelet to renew the lease."""
        self._heartbeats.stop_computing(self._node)

    def end(self) -> None:
        """The kubelet has ended, and somebody else may renew the lease: what was computed counts no more."""
        self.disturb()
        self._heartbeats.forget(self._node)

    async def wait_until_due(self, seconds: float) -> None:
        """Until it was disturbed, and the next renewal is due."""
        began, process = self._clock.boottime(), virtual.current_process()
        self._heartbeats.forget(self._node)
        if self._clear():
            over = self._heartbeats.start_computing(self._node, period=seconds, skew=self._clock.skew)
            forget = process.on_death(self.disturb) if process else lambda: None
            try:
                await over
            finally:
                forget()
                self.disturb()
        now = self._clock.boottime()
        await self._clock.sleep(next_tick(began, seconds, max(now, began + seconds)) - now)


class LeaseReadingTransport:
    """``transport.Transport`` by which who reads leases sees what is computed."""

    def __init__(self, transport: Transport, heartbeats: LeaseHeartbeats) -> None:
        self._transport = transport
        self._heartbeats = heartbeats

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """One answer."""
        if method == "GET" and "/leases" in target:
            self._heartbeats.write_to_store()
        return await self._transport.request(method, target, headers, body, stream=stream)

    def close(self) -> None:
        """Gives up all connections."""
        self._transport.close()
