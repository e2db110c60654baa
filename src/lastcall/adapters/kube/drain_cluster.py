"""``ports.drain.DrainCluster`` and ``PodEvictions`` at the API server."""

import hashlib
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.resources import EVENTS, NODES, PODS, Object, WrittenObject
from lastcall.errors import LastcallError
from lastcall.model.drain_facts import DrainNode
from lastcall.ports.drain import DrainEvent
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)

COMPONENT = "lastcall-drain"
"""The field manager, and the source of Events."""

_NODES = NODES.with_shape(DrainNode)
_WRITTEN_NODES = NODES.with_shape(WrittenObject)
_EVENTS = EVENTS.with_shape(WrittenObject)


class KubeDrainCluster:
    """``instance`` names this process in Events."""

    def __init__(self, client: Client, clock: Clock, instance: str) -> None:
        self._client, self._clock, self._instance = client, clock, instance

    async def read_node(self, name: str) -> DrainNode:
        """``DrainCluster.read_node``."""
        return await self._client.get(_NODES, name)

    async def patch_node(self, name: str, patch: Mapping[str, Any]) -> DrainNode:
        """``DrainCluster.patch_node``."""
        return await self._client.patch(_NODES, name, patch)

    async def patch_node_status(self, name: str, patch: Mapping[str, Any]) -> None:
        """``DrainCluster.patch_node_status``."""
        await self._client.patch(_WRITTEN_NODES, name, patch, subresource="status", kind=STRATEGIC)

    async def evict_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> None:
        """``PodEvictions.evict_pod``."""
        await self._client.evict(name, namespace=namespace, uid=uid, grace=grace)

    async def withdraw_eviction(self, namespace: str, name: str, *, uid: str) -> None:
        """``PodEvictions.withdraw_eviction``: a request of the Eviction API leaves nothing behind."""

    async def delete_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> None:
        """``DrainCluster.delete_pod``."""
        await self._client.delete(PODS, name, namespace=namespace, uid=uid, grace=grace)

    async def write_event(self, about: DrainEvent) -> None:
        """``DrainCluster.write_event``."""
        moment = datetime.fromtimestamp(self._clock.wall(), UTC)
        try:
            event = _event_object(about, moment, self._instance)
            await self._client.create(_EVENTS, event, namespace=about.namespace or "default")
        except LastcallError as error:
            log.debug("no Event %s of %s: %s", about.reason, about.name, error)


def _event_object(about: DrainEvent, moment: datetime, instance: str) -> Object:
    micro = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    seconds = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    kind = "Pod" if about.namespace else "Node"
    regarding = {"apiVersion": "v1", "kind": kind, "name": about.name, "uid": about.uid}
    if about.namespace:
        regarding["namespace"] = about.namespace
    unique = hashlib.sha256(f"{about.uid} {about.reason} {about.message} {micro}".encode()).hexdigest()[:16]
    return {
        "metadata": {"name": f"{about.name}.{unique}", "namespace": about.namespace or "default"},
        "involvedObject": regarding,
        "reason": about.reason,
        "message": about.message[:1024],
        "type": "Warning" if about.is_warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
        "firstTimestamp": seconds,
        "lastTimestamp": seconds,
        "count": 1,
    }
