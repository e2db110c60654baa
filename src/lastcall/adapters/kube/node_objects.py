"""``ports.cluster.NodeObjects`` at the API server, with the rights of the kubelet's own identity.

The Node authorizer and NodeRestriction allow ``system:node:NAME`` all of it for its own Node, Lease and pods, and none
of it for those of other nodes (plugin/pkg/auth/authorizer/node).
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.resources import ATTACHMENTS, EVENTS, LEASES, NODES, PODS, WrittenObject
from lastcall.aio import timeout
from lastcall.errors import AlreadyExists, NotFound, Unavailable
from lastcall.model.own_pods import is_static
from lastcall.model.pods import Pod
from lastcall.model.shutdown_node import ShutdownNode
from lastcall.model.volumes import attachment_name
from lastcall.ports.node import Clock

ANSWER_SECONDS = 12.0
"""Seconds for one request: an admission webhook may take ten seconds by default."""

COMPONENT = "lastcall-agent"
EVENT_NAMESPACE = "default"
"""The namespace of Events about Nodes, which have none themselves."""

LEASE_NAMESPACE = "kube-node-lease"
"""The namespace of the kubelets' Leases (v1.NamespaceNodeLease)."""

_NODE = NODES.with_shape(ShutdownNode)
_NODE_WRITTEN = NODES.with_shape(WrittenObject)
_ATTACHMENT = ATTACHMENTS.with_shape(WrittenObject)
_LEASE_WRITTEN = LEASES.with_shape(WrittenObject)
_PODS = PODS.with_shape(Pod)
_EVENTS = EVENTS.with_shape(WrittenObject)
_POD_WRITTEN = PODS.with_shape(WrittenObject)


class KubeNodeObjects:
    """The objects of the node of this name. ``client`` returns None as long as no identity is known."""

    def __init__(self, client: Callable[[], Client | None], node: str, clock: Clock) -> None:
        self._find_client = client
        self._node = node
        self._clock = clock

    def is_connected(self) -> bool:
        """Whether a client is known."""
        return self._find_client() is not None

    @property
    def _client(self) -> Client:
        client = self._find_client()
        if client is None:
            raise Unavailable("no identity for the API server is known")
        return client

    async def get_node(self) -> ShutdownNode:
        """GET of the Node."""
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                return await self._client.get(_NODE, self._node)

    async def patch_node(self, patch: Mapping[str, Any]) -> None:
        """Merge patch of the Node."""
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                await self._client.patch(_NODE_WRITTEN, self._node, patch)

    async def patch_node_status(self, patch: Mapping[str, Any]) -> ShutdownNode:
        """Strategic merge patch of the Node's status."""
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                return await self._client.patch(_NODE, self._node, patch, subresource="status", kind=STRATEGIC)

    async def is_attached(self, driver: str, handle: str) -> bool:
        """GET of the VolumeAttachment by its name, which the Node authorizer allows for attachments to its own node."""
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                try:
                    await self._client.get(_ATTACHMENT, attachment_name(driver, handle, self._node))
                except NotFound:
                    return False
                return True

    async def patch_lease(self, patch: Mapping[str, Any]) -> None:
        """Merge patch of the Lease."""
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                await self._client.patch(_LEASE_WRITTEN, self._node, patch, namespace=LEASE_NAMESPACE)

    async def patch_pod_status(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Strategic merge patch of the pod's status; a uid in the patch is a precondition."""
        uid = "" if is_static(pod) else pod.metadata.uid  # a mirror pod has another uid, and a name of this node only
        body = {**patch, **({"metadata": {"uid": uid}} if uid else {})}
        where = pod.metadata
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                await self._client.patch(
                    _POD_WRITTEN,
                    where.name,
                    body,
                    namespace=where.namespace,
                    subresource="status",
                    kind=STRATEGIC,
                )

    async def delete_pod(self, pod: Pod, grace: int) -> None:
        """DELETE with the pod's uid as a precondition."""
        where = pod.metadata
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                await self._client.delete(PODS, where.name, namespace=where.namespace, grace=grace, uid=where.uid)

    async def list_pods(self) -> Sequence[Pod]:
        """LIST with the field selector that the Node authorizer demands."""
        with _answer_in_time():
            async with timeout(ANSWER_SECONDS):
                return (await self._client.list(_PODS, fields=f"spec.nodeName={self._node}")).items

    async def create_event(self, key: str, reason: str, message: str) -> None:
        """Creates a v1.Event with the Node's name as its uid, as kubelets do: kubectl finds a Node's Events by that."""
        moment = f"{datetime.fromtimestamp(self._clock.wall(), UTC):%Y-%m-%dT%H:%M:%SZ}"
        event = {
            "metadata": {"name": f"{self._node}.{key}", "namespace": EVENT_NAMESPACE},
            "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": self._node},
            "reason": reason,
            "message": message,
            "type": "Normal",
            "source": {"component": COMPONENT, "host": self._node},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._node,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        with _answer_in_time(), contextlib.suppress(AlreadyExists):
            async with timeout(ANSWER_SECONDS):
                await self._client.create(_EVENTS, event, namespace=EVENT_NAMESPACE)


@contextlib.contextmanager
def _answer_in_time() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise Unavailable(f"the API server has not answered for {ANSWER_SECONDS:g} s") from error
