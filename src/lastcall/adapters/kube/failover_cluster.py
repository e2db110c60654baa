"""The cluster for the failover controller: four watches, a few live reads, and its writes."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, TypeVar

from lastcall import names
from lastcall.adapters.kube import decoding
from lastcall.adapters.kube.api_health import ApiHealth, HealthTrackingTransport
from lastcall.adapters.kube.client import MERGE, STRATEGIC, Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import (
    ATTACHMENTS,
    EVENTS,
    LEASES,
    NODE_SHUTDOWNS,
    NODES,
    PODS,
    VOLUMES,
    ApiResource,
    Object,
    WrittenObject,
    dict_resource,
)
from lastcall.adapters.kube.transport import Transport
from lastcall.aio import OrderedTaskGroup, wait_first
from lastcall.errors import ApiNotPermitted, NotFound
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import (
    MARK,
    OPTIONAL,
    ClusterEvent,
    FailoverPod,
    LiveNode,
    ObjectChange,
    PodPlace,
    WatchedAttachment,
    WatchedKind,
    WatchedLease,
    WatchedNode,
    WatchedShutdown,
)
from lastcall.model.snapshot import NODE_LEASES, DatedTaint, PersistentVolume
from lastcall.ports.node import Clock

T = TypeVar("T")

POLICIES: Final = dict_resource(names.GROUP, names.API_VERSION.partition("/")[2], "fencepolicies")
WATCHDOG_LEASES = names.NODES_NAMESPACE
"""The namespace of the agents' watchdog Leases; each Lease has the name of its node."""
COMPONENT = "lastcall-controller"

_NODES, _PODS = NODES.with_shape(LiveNode), PODS.with_shape(FailoverPod)
_LEASES, _ATTACHMENTS = LEASES.with_shape(WatchedLease), ATTACHMENTS.with_shape(WatchedAttachment)
_PLACES = PODS.with_shape(PodPlace)
_SHUTDOWNS = NODE_SHUTDOWNS.with_shape(NodeShutdown)
_VOLUMES = VOLUMES.with_shape(PersistentVolume)
_POLICIES = POLICIES.with_shape(WrittenObject)
_EVENTS = EVENTS.with_shape(WrittenObject)

_FOLLOWED: Mapping[WatchedKind, tuple[ApiResource[Any], str]] = {
    WatchedKind.NODES: (NODES.with_shape(WatchedNode), ""),
    WatchedKind.LEASES: (_LEASES, NODE_LEASES),
    WatchedKind.WATCHDOGS: (_LEASES, WATCHDOG_LEASES),
    WatchedKind.SHUTDOWNS: (NODE_SHUTDOWNS.with_shape(WatchedShutdown), ""),
    WatchedKind.ATTACHMENTS: (_ATTACHMENTS, ""),
    WatchedKind.POLICIES: (POLICIES, ""),
}


class KubeCluster:
    """``failover.doing.outside.Cluster`` on a client of the Kubernetes API."""

    def __init__(self, transport: Transport, clock: Clock, random: Random, *, instance: str = COMPONENT) -> None:
        self._health = ApiHealth(clock)
        self._client = self.health_tracking_client(transport)
        self._unnoted = Client(transport, manager=COMPONENT)
        """The client of Events and statuses, which only people read: its failures say nothing about the view of nodes.
        """
        self._clock = clock
        self._random = random
        self._instance = instance
        self._watchings = {
            what: Informer(self._client, kind, namespace=namespace, clock=clock, random=random)
            for what, (kind, namespace) in _FOLLOWED.items()
        }

    def health_tracking_client(self, transport: Transport) -> Client:
        """Another client of the same cluster; its failures count with this one's."""
        return Client(HealthTrackingTransport(transport, self._health), manager=COMPONENT)

    @property
    def api_failed_at(self) -> float | None:
        """Boottime of the last failure of the server or the network to it, by the thresholds of ``ApiHealth``."""
        return self._health.failed

    @property
    def api_trouble(self) -> str:
        """That failure, with the count and the last request, as the beginning of a sentence."""
        return self._health.trouble

    @property
    def watch_trouble(self) -> str:
        """Why a watched kind is not up to date; empty if all are."""
        failures = {what: one.failure for what, one in self._watchings.items() if what not in OPTIONAL}
        return next((f"{what.value}: {failure}" for what, failure in failures.items() if failure), "")

    async def follow_objects(self, hear: Callable[[ObjectChange], None]) -> None:
        """Passes every object and every change to ``hear``; never ends. Retries failures."""
        group = OrderedTaskGroup()
        try:
            await wait_first(
                *(group.start(_forward_changes(what, one, hear), what.value) for what, one in self._watchings.items())
            )
        finally:
            await group.cancel()

    # -- live reads ----------------------------------------------------------------------------------------------------

    async def read_node(self, name: str) -> LiveNode:
        """Reads a Node; raises NotFound."""
        return await self._client.get(_NODES, name)

    async def list_nodes(self) -> Sequence[WatchedNode]:
        """Lists all Nodes, without the undecodable ones, which the watch leaves out, too."""
        return await self._list_decodable(NODES.with_shape(WatchedNode))

    async def read_node_lease(self, name: str) -> WatchedLease | None:
        """The Lease that a node's kubelet renews; None if it does not exist."""
        return await self._find_lease(name, NODE_LEASES)

    async def read_watchdog_lease(self, name: str) -> WatchedLease | None:
        """The Lease in which a node's agent reports its watchdog; None if it does not exist."""
        return await self._find_lease(name, WATCHDOG_LEASES)

    async def list_watchdog_leases(self) -> Sequence[WatchedLease]:
        """All watchdog Leases. Undecodable ones are left out, so that one of them affects no other node."""
        return await self._list_decodable(_LEASES, namespace=WATCHDOG_LEASES)

    async def _list_decodable(self, resource: ApiResource[T], *, namespace: str = "") -> Sequence[T]:
        """All objects that can be decoded."""
        raw, _ = await self._client.list_raw(resource, namespace=namespace)
        found = [decoding.decode_object(one, resource.shape, shared=False) for one in raw]
        return [one.obj for one in found if isinstance(one, decoding.DecodedObject)]

    async def _find_lease(self, name: str, namespace: str) -> WatchedLease | None:
        try:
            return await self._client.get(_LEASES, name, namespace=namespace)
        except NotFound:
            return None

    async def read_shutdown(self, name: str) -> NodeShutdown | None:
        """A node's NodeShutdown; None if there is none, or if the right to read it is missing.

        A missing right fails the watch of NodeShutdowns too, which reports it. It stops no failover, because a
        NodeShutdown only delays fencing. Raises Unavailable if the object cannot be decoded.
        """
        try:
            return await self._client.get(_SHUTDOWNS, name)
        except (NotFound, ApiNotPermitted):
            return None

    async def list_pods(self, node: str) -> Sequence[FailoverPod]:
        """The pods that are bound to a node."""
        return (await self._client.list(_PODS, fields=f"spec.nodeName={node}")).items

    async def read_pod(self, namespace: str, name: str) -> FailoverPod | None:
        """One pod; None if it does not exist."""
        try:
            return await self._client.get(_PODS, name, namespace=namespace)
        except NotFound:
            return None

    async def list_pods_by_labels(
        self, namespace: str, labels: Mapping[str, str]
    ) -> AsyncGenerator[Sequence[FailoverPod], None]:
        """The pods of a namespace with all these labels, page by page; each page is read when it is needed."""
        wanted = ",".join(f"{name}={value}" for name, value in labels.items())
        async with aclosing(self._client.list_pages(_PODS, namespace=namespace, labels=wanted)) as pages:
            async for page, _ in pages:
                yield [decoding.decode_json(item, FailoverPod) for item in page]

    async def read_attachment(self, name: str) -> WatchedAttachment:
        """Reads a VolumeAttachment; raises NotFound."""
        return await self._client.get(_ATTACHMENTS, name)

    async def find_claim(self, volume: str) -> tuple[str, str] | None:
        """Namespace and name of the claim that a PersistentVolume is bound to; None if there is none."""
        try:
            claim = (await self._client.get(_VOLUMES, volume)).spec.claim_ref
        except NotFound:
            return None
        return (claim.namespace, claim.name) if claim else None

    async def list_etcd_nodes(self) -> frozenset[str]:
        """The nodes with a static pod of etcd, by kubeadm's label; only the metadata is read."""
        found = await self._client.list(_PLACES, namespace="kube-system", labels="component=etcd")
        return frozenset(pod.spec.node_name for pod in found.items if pod.spec.node_name)

    # -- writes --------------------------------------------------------------------------------------------------------

    async def update_node(
        self,
        node: LiveNode,
        *,
        mark: str | None = None,
        fenced: str | None = None,
        taints: Sequence[DatedTaint] | None = None,
        keep_word: bool = False,
    ) -> LiveNode:
        """Writes our mark (empty removes it), the fenced boot and the taints in one request; None keeps a value.

        Removing the mark also removes a person's ``acknowledged-dead``: that boot is over, or it lives, and a later
        observer would believe the old word. With ``keep_word``, for a boot of which nothing is known, the word stays.
        Raises Conflict if the Node has changed since it was read, so that no other write is lost.
        """
        metadata: Object = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        if mark is not None:
            word = {} if mark or keep_word else {names.ACKNOWLEDGED_DEAD: None}
            metadata["annotations"] = {MARK: mark or None, **word}
        if fenced is not None:
            metadata.setdefault("annotations", {})[names.FENCED] = fenced
        patch = {"metadata": metadata, **({} if taints is None else {"spec": {"taints": list(taints)}})}
        return await self._client.patch(_NODES, node.metadata.name, patch, kind=MERGE)

    async def add_pod_condition(self, pod: FailoverPod, condition: Mapping[str, Any]) -> None:
        """Adds a condition. Raises Conflict if the pod was replaced, NotFound if it is gone."""
        await self._patch_pod(pod, {"conditions": [condition]})

    async def fail_pod(self, pod: FailoverPod, condition: Mapping[str, Any] | None) -> FailoverPod:
        """Sets the phase to Failed, and adds ``condition``, if given, in the same write; returns the pod.

        Raises Refused (kube-apiserver's 422: a UID is immutable) or Conflict if the pod was replaced, NotFound if it is
        gone.
        """
        return await self._patch_pod(pod, {"phase": "Failed", **({"conditions": [condition]} if condition else {})})

    async def _patch_pod(self, pod: FailoverPod, status: Object) -> FailoverPod:
        return await self._client.patch(
            _PODS,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid}, "status": status},
            namespace=pod.metadata.namespace,
            subresource="status",
            kind=STRATEGIC,
        )

    async def delete_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> FailoverPod | None:
        """Deletes the pod; ``grace`` None: its own grace period. Returns the pod in the answer, or None.

        Raises Conflict if the pod was replaced, NotFound if it is gone.
        """
        pod = await self._client.delete_and_decode(_PODS, name, namespace=namespace, grace=grace, uid=uid)
        return pod if grace != 0 and pod is not None and pod.metadata.uid == uid else None

    async def delete_attachment(self, name: str, *, uid: str, revision: str) -> None:
        """Deletes the attachment. Raises Conflict if it was replaced or has changed, NotFound if it is gone.

        The uid matters because the name follows from volume and node: the next attachment of the two has the same one.
        """
        await self._client.delete(ATTACHMENTS, name, uid=uid, revision=revision)

    async def write_policy_status(self, name: str, status: Mapping[str, Any]) -> None:
        """Writes the status of a FencePolicy."""
        await self._unnoted.patch(_POLICIES, name, {"status": status}, subresource="status")

    async def create_event(self, told: ClusterEvent) -> None:
        """Creates an Event."""
        moment = datetime.fromtimestamp(self._clock.wall() - told.age, UTC)
        await self._unnoted.create(
            _EVENTS, _event_object(told, moment, self._instance), namespace=told.namespace or "default"
        )


async def _forward_changes(what: WatchedKind, watching: Informer[Any], hear: Callable[[ObjectChange], None]) -> None:
    async for change in watching.changes():
        if change.kind is ChangeKind.SYNCED:
            hear(ObjectChange(what, "", None))
        else:
            hear(ObjectChange(what, change.key.name, None if change.kind is ChangeKind.DELETED else change.new))


def _event_object(told: ClusterEvent, moment: datetime, instance: str) -> Object:
    """A v1.Event, with the Node's name as its uid, as kubelets write it: kubectl finds a Node's Events by that."""
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
        "firstTimestamp": _format_seconds(moment - timedelta(seconds=told.lasts)),
        "lastTimestamp": _format_seconds(moment),
        "count": told.count,
    }


def _format_seconds(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
