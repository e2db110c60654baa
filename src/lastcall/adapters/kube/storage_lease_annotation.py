"""Publishes the state of a node's lease on shared storage at the API server."""

import contextlib
from collections.abc import Mapping

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import LEASES
from lastcall.errors import AlreadyExists, NotFound
from lastcall.model.storage_lease import StorageRecord, to_annotations
from lastcall.model.watchdog_lease import AgentLease

_LEASES = LEASES.with_shape(AgentLease)


class KubeStorageAnnotation:
    """``ports.storage.StorageWord``: an annotation of the node's Lease in lastcall-nodes.

    A watchdog may share that Lease. Only the annotation is sent, so that the write renews no promise of a watchdog.
    Needs the verbs create and patch.
    """

    def __init__(self, client: Client, node: str) -> None:
        self._client = client
        self._node = node

    async def write_record(self, record: StorageRecord) -> None:
        """``ports.storage.StorageWord.write_record``."""
        try:
            await self._patch_annotations(to_annotations(record))
        except NotFound:
            try:
                await self._client.create(_LEASES, {"metadata": {"name": self._node}}, namespace=names.NODES_NAMESPACE)
            except AlreadyExists:
                pass  # created meanwhile by the watchdog's keeper
            await self._patch_annotations(to_annotations(record))

    async def clear_record(self) -> None:
        """``ports.storage.StorageWord.clear_record``."""
        with contextlib.suppress(NotFound):
            await self._patch_annotations({names.STORAGE_LEASE: None})

    async def _patch_annotations(self, annotations: Mapping[str, str | None]) -> None:
        change = {"metadata": {"annotations": dict(annotations)}}
        await self._client.patch(_LEASES, self._node, change, namespace=names.NODES_NAMESPACE)
