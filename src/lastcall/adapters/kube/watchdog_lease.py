"""The Lease in which a node's agent reports that its watchdog is armed, at the API server."""

from collections.abc import Callable, Mapping

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import LEASES
from lastcall.errors import AlreadyExists, Conflict, NotFound
from lastcall.model import watchdog_lease, watchdog_peer_reports
from lastcall.model.watchdog_lease import AgentLease, WatchdogPromise
from lastcall.model.watchdog_peer_reports import PeerReport
from lastcall.ports.node import Clock

_LEASES = LEASES.with_shape(AgentLease)


class KubeWatchdogLease:
    """``ports.watchdog.WatchdogLease``. Needs the verbs get, create and patch on Leases in lastcall-nodes.

    Every write is bound to the revision that was read or written before. So a write without an answer, of this process
    or of an earlier one, is refused by the server if it arrives after a later one. Requests of ``client`` must not
    queue behind other requests.
    """

    def __init__(self, client: Client, node: str, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._clock = clock
        self._known: AgentLease | None = None
        self._highest = 0
        """The highest ``sequence`` that the Lease has had, as far as this process knows, even if it was removed since.
        """

    async def write_promise(
        self, promise: Callable[[], WatchdogPromise], heard: Callable[[], Mapping[str, PeerReport]] = dict
    ) -> WatchdogPromise | None:
        """``ports.watchdog.WatchdogLease.write_promise``."""
        before = self._known or await self._get_or_create()
        try:
            return await self._write_lease(promise, heard, before)
        except (Conflict, NotFound):
            return await self._write_lease(promise, heard, await self._get_or_create())

    async def _write_lease(
        self, promise: Callable[[], WatchdogPromise], heard: Callable[[], Mapping[str, PeerReport]], before: AgentLease
    ) -> WatchdogPromise | None:
        self._known = None  # until the answer comes, the content of the Lease is unknown
        self._highest = max(self._highest, before.promise.sequence if before.promise else 0)
        says = watchdog_lease.with_next_sequence(self._highest, promise())
        record = watchdog_lease.renewal_record(
            before.spec, node=self._node, lease=says.lease_seconds, wall=self._clock.wall()
        )
        metadata = {
            "resourceVersion": before.metadata.resource_version,
            "annotations": {
                **watchdog_lease.to_annotations(says),
                **watchdog_peer_reports.to_annotations(heard(), before.metadata.annotations),
            },
        }
        wanted = {"metadata": metadata, "spec": record}
        self._known = await self._client.patch(_LEASES, self._node, wanted, namespace=names.NODES_NAMESPACE)
        return before.promise

    async def _get_or_create(self) -> AgentLease:
        """Reads the Lease, or creates it without a promise: a request to create may arrive late."""
        try:
            return await self._client.get(_LEASES, self._node, namespace=names.NODES_NAMESPACE)
        except NotFound:
            wanted = {"metadata": {"name": self._node}}
        try:
            return await self._client.create(_LEASES, wanted, namespace=names.NODES_NAMESPACE)
        except AlreadyExists:
            return await self._client.get(_LEASES, self._node, namespace=names.NODES_NAMESPACE)
