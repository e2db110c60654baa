"""A cluster as the failover controller needs it: four watches, a few live reads, and what it writes."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, TypeVar

from lastcall import names
from lastcall.adapters.kube import decoding
from lastcall.adapters.kube.client import MERGE, STRATEGIC, Client
from lastcall.adapters.kube.noting import Health, Noting
from lastcall.adapters.kube.resources import (
    ATTACHMENTS,
    EVENTS,
    LEASES,
    NODE_SHUTDOWNS,
    NODES,
    PODS,
    VOLUMES,
    Object,
    Resource,
    Written,
    resource,
)
from lastcall.adapters.kube.transport import Transport
from lastcall.adapters.kube.watching import Kind, Watching
from lastcall.aio import Group, first
from lastcall.errors import ApiNotPermitted, NotFound
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import (
    MARK,
    OPTIONAL,
    Heard,
    LiveNode,
    LivePod,
    PodPlace,
    Told,
    Watched,
    WatchedAttachment,
    WatchedLease,
    WatchedNode,
    WatchedShutdown,
)
from lastcall.model.snapshot import NODE_LEASES, DatedTaint, PersistentVolume
from lastcall.ports import Clock

T = TypeVar("T")

POLICIES: Final = resource(names.GROUP, names.API_VERSION.partition("/")[2], "fencepolicies")
WATCHDOG_LEASES = names.NODES_NAMESPACE
"""The namespace of the Leases by which agents tell of their watchdogs; each has the name of its node."""
COMPONENT = "lastcall-controller"

_NODES, _PODS = NODES.read_as(LiveNode), PODS.read_as(LivePod)
_LEASES, _ATTACHMENTS = LEASES.read_as(WatchedLease), ATTACHMENTS.read_as(WatchedAttachment)
_PLACES = PODS.read_as(PodPlace)
_SHUTDOWNS = NODE_SHUTDOWNS.read_as(NodeShutdown)
_VOLUMES = VOLUMES.read_as(PersistentVolume)
_POLICIES = POLICIES.read_as(Written)
_EVENTS = EVENTS.read_as(Written)

_FOLLOWED: Mapping[Watched, tuple[Resource[Any], str]] = {
    Watched.NODES: (NODES.read_as(WatchedNode), ""),
    Watched.LEASES: (_LEASES, NODE_LEASES),
    Watched.WATCHDOGS: (_LEASES, WATCHDOG_LEASES),
    Watched.SHUTDOWNS: (NODE_SHUTDOWNS.read_as(WatchedShutdown), ""),
    Watched.ATTACHMENTS: (_ATTACHMENTS, ""),
    Watched.POLICIES: (POLICIES, ""),
}


class KubeCluster:
    """``failover.doing.outside.Cluster`` on a client of the Kubernetes API."""

    def __init__(self, transport: Transport, clock: Clock, random: Random, *, instance: str = COMPONENT) -> None:
        self._health = Health(clock)
        self._client = self.client(transport)
        self._unnoted = Client(transport, manager=COMPONENT)
        """For what is written for people alone: that it fails says nothing of what is known of nodes."""
        self._clock = clock
        self._random = random
        self._instance = instance
        self._watchings = {
            what: Watching(self._client, kind, namespace=namespace, clock=clock, random=random)
            for what, (kind, namespace) in _FOLLOWED.items()
        }

    def client(self, transport: Transport) -> Client:
        """Another client of the same cluster, whose failures count as this one's."""
        return Client(Noting(transport, self._health), manager=COMPONENT)

    @property
    def api_failed(self) -> float | None:
        """When requests last failed in such a number that the server, or the way to it, has, on the clock's boottime."""
        return self._health.failed

    @property
    def api_trouble(self) -> str:
        """How many had failed then, and the last of them, as the beginning of a sentence."""
        return self._health.trouble

    @property
    def blind(self) -> str:
        """Why something that is watched is not known as it is now; empty if all is."""
        failures = {what: one.failure for what, one in self._watchings.items() if what not in OPTIONAL}
        return next((f"{what.value}: {failure}" for what, failure in failures.items() if failure), "")

    async def follow(self, hear: Callable[[Heard], None]) -> None:
        """Tells everything that is there, and every change; never ends. What fails is tried again."""
        group = Group()
        try:
            await first(*(group.start(_told(what, one, hear), what.value) for what, one in self._watchings.items()))
        finally:
            await group.cancel()

    # -- live reads ----------------------------------------------------------------------------------------------------

    async def node(self, name: str) -> LiveNode:
        """NotFound if there is none."""
        return await self._client.get(_NODES, name)

    async def nodes(self) -> Sequence[WatchedNode]:
        """All Nodes but those that cannot be read, of which no watch tells either."""
        return await self._readable(NODES.read_as(WatchedNode))

    async def lease(self, name: str) -> WatchedLease | None:
        """The Lease that a node's kubelet renews; None if there is none."""
        return await self._lease(name, NODE_LEASES)

    async def watchdog(self, name: str) -> WatchedLease | None:
        """The Lease by which a node's agent tells of its watchdog; None if there is none."""
        return await self._lease(name, WATCHDOG_LEASES)

    async def watchdogs(self) -> Sequence[WatchedLease]:
        """All Leases by which agents tell of their watchdogs but those that cannot be read: one of them stops no other node."""
        return await self._readable(_LEASES, namespace=WATCHDOG_LEASES)

    async def _readable(self, resource: Resource[T], *, namespace: str = "") -> Sequence[T]:
        """All that can be decoded."""
        raw, _ = await self._client.list_raw(resource, namespace=namespace)
        found = [decoding.decoded(one, resource.shape, shared=False) for one in raw]
        return [one.obj for one in found if isinstance(one, decoding.Known)]

    async def _lease(self, name: str, namespace: str) -> WatchedLease | None:
        try:
            return await self._client.get(_LEASES, name, namespace=namespace)
        except NotFound:
            return None

    async def shutdown(self, name: str) -> NodeShutdown | None:
        """A node's own word on its going down; None if there is none, or the right to read it is missing.

        Then the watch of them has failed too, and says so: that stops no failover, as a word only puts off fencing. What
        cannot be decoded is Unavailable, as any answer that cannot be read.
        """
        try:
            return await self._client.get(_SHUTDOWNS, name)
        except (NotFound, ApiNotPermitted):
            return None

    async def pods(self, node: str) -> Sequence[LivePod]:
        """Those that are bound to a node."""
        return (await self._client.list(_PODS, fields=f"spec.nodeName={node}")).items

    async def pod(self, namespace: str, name: str) -> LivePod | None:
        """One pod; None if there is none."""
        try:
            return await self._client.get(_PODS, name, namespace=namespace)
        except NotFound:
            return None

    async def pods_like(self, namespace: str, labels: Mapping[str, str]) -> AsyncGenerator[Sequence[LivePod], None]:
        """Those of a namespace that have all these labels, page by page: the next is read when it is wanted."""
        wanted = ",".join(f"{name}={value}" for name, value in labels.items())
        async with aclosing(self._client.pages(_PODS, namespace=namespace, labels=wanted)) as pages:
            async for page, _ in pages:
                yield [decoding.read(item, LivePod) for item in page]

    async def attachment(self, name: str) -> WatchedAttachment:
        """NotFound if there is none."""
        return await self._client.get(_ATTACHMENTS, name)

    async def claim_of(self, volume: str) -> tuple[str, str] | None:
        """Namespace and name of the claim to which a PersistentVolume is bound; None if there is none."""
        try:
            claim = (await self._client.get(_VOLUMES, volume)).spec.claim_ref
        except NotFound:
            return None
        return (claim.namespace, claim.name) if claim else None

    async def etcd_nodes(self) -> frozenset[str]:
        """The nodes on which a static pod of etcd runs, as kubeadm labels it; nothing else of these pods is read."""
        found = await self._client.list(_PLACES, namespace="kube-system", labels="component=etcd")
        return frozenset(pod.spec.node_name for pod in found.items if pod.spec.node_name)

    # -- writes --------------------------------------------------------------------------------------------------------

    async def change_node(
        self,
        node: LiveNode,
        *,
        mark: str | None = None,
        fenced: str | None = None,
        taints: Sequence[DatedTaint] | None = None,
        keep_word: bool = False,
    ) -> LiveNode:
        """Our mark (empty: none any more), what it was fenced for, the taints, in one write; None leaves what is there.

        With the mark goes a person's word that the machine is dead: that boot is over, or it lives, and who observes later
        would believe the word; with ``keep_word`` nothing is known of it, and the word stays. Conflict if the Node is not as
        it was read, so that nothing of others is lost.
        """
        metadata: Object = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        if mark is not None:
            word = {} if mark or keep_word else {names.ACKNOWLEDGED_DEAD: None}
            metadata["annotations"] = {MARK: mark or None, **word}
        if fenced is not None:
            metadata.setdefault("annotations", {})[names.FENCED] = fenced
        patch = {"metadata": metadata, **({} if taints is None else {"spec": {"taints": list(taints)}})}
        return await self._client.patch(_NODES, node.metadata.name, patch, kind=MERGE)

    async def disrupt_pod(self, pod: LivePod, condition: Mapping[str, Any]) -> None:
        """Adds a condition. Conflict if it is another pod, NotFound if it is gone."""
        await self._patch_pod(pod, {"conditions": [condition]})

    async def fail_pod(self, pod: LivePod, condition: Mapping[str, Any] | None) -> LivePod:
        """Its phase becomes Failed, and ``condition``, if given, is added in the same write; the pod as it is then.

        Refused (kube-apiserver's 422: a UID is immutable) or Conflict if it is another pod, NotFound if it is gone.
        """
        return await self._patch_pod(pod, {"phase": "Failed", **({"conditions": [condition]} if condition else {})})

    async def _patch_pod(self, pod: LivePod, status: Object) -> LivePod:
        return await self._client.patch(
            _PODS,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid}, "status": status},
            namespace=pod.metadata.namespace,
            subresource="status",
            kind=STRATEGIC,
        )

    async def delete_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> LivePod | None:
        """Deletes; ``grace`` None: its own. The pod as the answer shows it; None if it does not.

        Conflict if it is another pod, NotFound if it is gone.
        """
        pod = await self._client.delete_as(_PODS, name, namespace=namespace, grace=grace, uid=uid)
        return pod if grace != 0 and pod is not None and pod.metadata.uid == uid else None

    async def delete_attachment(self, name: str, *, uid: str, revision: str) -> None:
        """Conflict if it is another one, or not as it was read, NotFound if it is gone.

        Its name follows from volume and node, so that the next one of the two has the same.
        """
        await self._client.delete(ATTACHMENTS, name, uid=uid, revision=revision)

    async def tell_policy(self, name: str, status: Mapping[str, Any]) -> None:
        """Writes the status of a FencePolicy."""
        await self._unnoted.patch(_POLICIES, name, {"status": status}, subresource="status")

    async def tell(self, told: Told) -> None:
        """A new event."""
        moment = datetime.fromtimestamp(self._clock.wall(), UTC)
        await self._unnoted.create(_EVENTS, _event(told, moment, self._instance), namespace=told.namespace or "default")


async def _told(what: Watched, watching: Watching[Any], hear: Callable[[Heard], None]) -> None:
    async for change in watching.changes():
        if change.kind is Kind.SYNCED:
            hear(Heard(what, "", None))
        else:
            hear(Heard(what, change.key.name, None if change.kind is Kind.DELETED else change.new))


def _event(told: Told, moment: datetime, instance: str) -> Object:
    """A v1.Event: kubectl shows those of a Node by its name as their uid too, as kubelets write them."""
    micro = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    about = {"apiVersion": "v1", "kind": "Pod" if told.namespace else "Node", "name": told.name, "uid": told.uid}
    if told.namespace:
        about["namespace"] = told.namespace
    unique = hashlib.sha256(f"{told.uid} {told.reason} {told.message} {micro}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{told.name}.{unique}", "namespace": told.namespace or "default"},
        "involvedObject": about,
        "reason": told.reason,
        "message": told.message,
        "type": "Warning" if told.warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
        "firstTimestamp": _seconds(moment - timedelta(seconds=told.lasts)),
        "lastTimestamp": _seconds(moment),
        "count": told.count,
    }


def _seconds(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
