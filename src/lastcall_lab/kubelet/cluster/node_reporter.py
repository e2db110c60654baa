"""A node's heartbeats: registration, status and Lease."""

import asyncio
import logging
import math
from collections.abc import Callable
from random import Random

from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import LEASES, NODES, Object
from lastcall.aio import Signal, wait_first
from lastcall.errors import AlreadyExists, LastcallError, NotFound
from lastcall.ports.node import Clock
from lastcall_lab.kubelet.base.next_tick import next_tick
from lastcall_lab.kubelet.base.settings import KubeletSettings, NodeProfile
from lastcall_lab.kubelet.cluster import node_object
from lastcall_lab.kubelet.cluster.event_recorder import KubeletEventRecorder
from lastcall_lab.kubelet.cluster.lease_renewals import KubeletRenewals, LeaseRenewals
from lastcall_lab.kubelet.cluster.node_object import LEASE_NAMESPACE, NodeFacts

log = logging.getLogger(__name__)

_NO_NODE = "node %s cannot be registered: %s"
_NO_STATUS = "the status of node %s cannot be written: %s"
_NO_LEASE = "the lease of node %s cannot be renewed: %s"


class NodeReporter:
    """Registers the Node and keeps its status and Lease current. Reads ``facts`` at each check."""

    def __init__(
        self,
        profile: NodeProfile,
        facts: Callable[[], NodeFacts],
        *,
        client: Client,
        clock: Clock,
        random: Random,
        events: KubeletEventRecorder,
        settings: KubeletSettings,
        renewals: LeaseRenewals | None = None,
    ) -> None:
        self.profile = profile
        self._facts = facts
        self._client = client
        self._clock = clock
        self._random = random
        self._events = events
        self._settings = settings
        self._renewals = renewals or KubeletRenewals(clock)
        self._look = asyncio.Event()
        self._written = False
        self._writing = asyncio.Lock()
        self._told: dict[str, str] = {}
        """The last failure of each operation; removed on success."""
        self.known: Object = {"kind": "Node", "metadata": {"name": profile.name}}
        """The Node as last received."""
        self.changed = Signal()
        """Set when the Node has changed."""

    async def run(self) -> None:
        """Registers the Node, then maintains status and Lease until cancelled."""
        self._events.record_event(self.known, "Normal", "Starting", "Starting kubelet.")
        await self._register_node()
        await wait_first(self._watch_node(), self._keep_status(), self._keep_lease())

    def request_status_write(self) -> None:
        """Requests a status write soon instead of at the next tick, because something changed."""
        self._look.set()

    async def write_status(self) -> None:
        """Writes the status now if it changed or is old. LastcallError if the write fails.

        A deleted Node stays deleted until its kubelet restarts, as with the real kubelet.
        """
        async with self._writing:  # serialized: a status computed during another write would be based on old data
            await self._write_status()

    async def _write_status(self) -> None:
        self._written, now, old = False, self._clock.wall(), self.known.get("status") or {}
        new = node_object.node_status(self.profile, self._facts(), old, now)
        if (
            not node_object.has_status_changed(new, old)
            and node_object.heartbeat_age(old, now) < self._settings.status_report
        ):
            self._written = True
            return
        body = node_object.status_patch(new, old)
        written = await self._client.patch(NODES, self.profile.name, body, subresource="status", kind=STRATEGIC)
        self._record_events(new, old)
        self._update_node(written)
        self._written = True

    async def write_annotation(self, name: str, text: str | None) -> None:
        """Writes or removes one annotation of the Node. LastcallError if the write fails."""
        body = {"metadata": {"annotations": {name: text}}}
        self._update_node(await self._client.patch(NODES, self.profile.name, body))

    def attached_volumes(self) -> dict[str, str]:
        """The volumes that the controller reports as attached to this node: unique name to device path."""
        status = self.known.get("status") or {}
        return {one["name"]: one.get("devicePath", "") for one in status.get("volumesAttached") or ()}

    async def is_attached_now(self, volume: str) -> bool:
        """Whether the API server now shows a volume as both attached and in use. LastcallError if it cannot be read.

        The controller never detaches a volume in use, and removes it from ``volumesAttached`` first. So one version of
        the Node must show both, and it must be no older than this call. The real kubelet also reads the Node for this
        (``operation_generator.go: GenerateVerifyControllerAttachedVolumeFunc``).
        """
        await self.write_status()
        self._update_node(await self._client.get(NODES, self.profile.name))
        return volume in self.attached_volumes() and volume in (
            (self.known.get("status") or {}).get("volumesInUse") or ()
        )

    def _warn_once(self, what: str, error: LastcallError) -> None:
        """Logs a reason once, until the operation has succeeded again."""
        if self._told.get(what) != str(error):
            self._told[what] = str(error)
            log.warning(what, self.profile.name, error)

    # -- registration --------------------------------------------------------------------------------------------------

    async def _register_node(self) -> None:
        while True:
            try:
                await self._try_to_register()
            except LastcallError as error:
                self._warn_once(_NO_NODE, error)
            else:
                self._told.pop(_NO_NODE, None)
                return
            await self._clock.sleep(self._settings.retry)

    async def _try_to_register(self) -> None:
        obj = node_object.new_node(self.profile, self._facts(), self._clock.wall())
        try:
            self._update_node(await self._client.create(NODES, obj))
            self._record_events(obj["status"], {})
            return
        except AlreadyExists:
            found = await self._client.get(NODES, self.profile.name)
        booted = found.get("status", {}).get("nodeInfo", {}).get("bootID", "")
        self._update_node(found)
        if patch := node_object.labels_patch(found, self.profile):
            self._update_node(await self._client.patch(NODES, self.profile.name, patch))
        if booted and booted != self.profile.boot_id:
            said = f"Node {self.profile.name} has been rebooted, boot id: {self.profile.boot_id}"
            self._events.record_event(self.known, "Warning", "Rebooted", said)
        await self.write_status()

    def _update_node(self, obj: Object) -> None:
        known, new = self.known["metadata"], obj["metadata"]
        if known.get("uid") == new["uid"] and int(known["resourceVersion"]) >= int(new["resourceVersion"]):
            return
        self.known = {**obj, "kind": "Node"}
        self.changed.set()

    def _record_events(self, new: Object, old: Object) -> None:
        for type_, reason in node_object.status_events(new, old):
            self._events.record_event(self.known, type_, reason, f"Node {self.profile.name} status is now: {reason}")

    # -- maintenance ---------------------------------------------------------------------------------------------------

    async def _watch_node(self) -> None:
        fields = f"metadata.name={self.profile.name}"
        watching = Informer(self._client, NODES, clock=self._clock, random=self._random, fields=fields, shared=True)
        async for change in watching.changes():
            if change.new is not None and change.kind is not ChangeKind.DELETED:
                self._update_node(change.new)

    async def _keep_status(self) -> None:
        while True:
            self._look.clear()
            pause = self._settings.status_update
            try:
                await self.write_status()
                self._told.pop(_NO_STATUS, None)
            except LastcallError as error:
                self._warn_once(_NO_STATUS, error)
                pause = self._settings.retry
            await wait_first(self._look.wait(), self._until_next_look(pause))

    async def _until_next_look(self, tick: float) -> None:
        """Seconds to the next check.

        Checks come every ``tick`` seconds, except those that would find nothing to write.
        """
        began, old = self._clock.boottime(), self.known.get("status") or {}
        quiet = self._settings.status_report - node_object.heartbeat_age(old, self._clock.wall())
        wait = max(1, math.ceil(quiet / tick)) * tick if self._written else tick
        if await wait_first(self.changed.next(), self._clock.sleep(wait)) == 0:
            now = self._clock.boottime()
            await self._clock.sleep(next_tick(began, tick, now) - now)

    async def _keep_lease(self) -> None:
        """Renews the Lease periodically, and creates it if it does not exist. Retries after failures."""
        while True:
            try:
                await self._renew_lease()
            except LastcallError as error:
                self._warn_once(_NO_LEASE, error)
                await self._clock.sleep(self._settings.retry)
            else:
                self._told.pop(_NO_LEASE, None)
                await self._renewals.wait_until_due(self._settings.lease_renewal * (1 + 0.04 * self._random.random()))

    async def _renew_lease(self) -> None:
        name, uid = self.profile.name, self.known["metadata"].get("uid", "")
        wanted = node_object.new_lease(self.profile, uid, self._settings.lease_duration, self._clock.wall())
        try:
            await self._client.patch(LEASES, name, wanted, namespace=LEASE_NAMESPACE)
        except NotFound:
            await self._client.create(LEASES, wanted, namespace=LEASE_NAMESPACE)
