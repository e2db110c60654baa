"""A node's heartbeats: its registration, its status, its lease."""

import asyncio
import logging
import math
from collections.abc import Callable
from random import Random

from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.resources import LEASES, NODES, Object
from lastcall.adapters.kube.watching import Kind, Watching
from lastcall.aio import Signal, first
from lastcall.errors import AlreadyExists, LastcallError, NotFound
from lastcall.lab.kubelet import node_object
from lastcall.lab.kubelet.events import Recorder
from lastcall.lab.kubelet.node_object import LEASE_NAMESPACE, NodeFacts
from lastcall.lab.kubelet.renewals import ByHand, Renewals
from lastcall.lab.kubelet.settings import Profile, Settings
from lastcall.lab.kubelet.ticks import next_tick
from lastcall.ports import Clock

log = logging.getLogger(__name__)

_NO_NODE = "node %s cannot be registered: %s"
_NO_STATUS = "the status of node %s cannot be written: %s"
_NO_LEASE = "the lease of node %s cannot be renewed: %s"


class Node:
    """The node as others see it. ``facts`` are asked for at each look."""

    def __init__(
        self,
        profile: Profile,
        facts: Callable[[], NodeFacts],
        *,
        client: Client,
        clock: Clock,
        random: Random,
        events: Recorder,
        settings: Settings,
        renewals: Renewals | None = None,
    ) -> None:
        self.profile = profile
        self._facts = facts
        self._client = client
        self._clock = clock
        self._random = random
        self._events = events
        self._settings = settings
        self._renewals = renewals or ByHand(clock)
        self._look = asyncio.Event()
        self._written = False
        self._writing = asyncio.Lock()
        self._told: dict[str, str] = {}
        """Why something could not be done the last time; nothing is kept of what works."""
        self.known: Object = {"kind": "Node", "metadata": {"name": profile.name}}
        """The Node as it was last heard of."""
        self.changed = Signal()
        """Set when something new is known of the Node."""

    async def run(self) -> None:
        """Until cancelled: registers, then keeps status and lease."""
        self._events.tell(self.known, "Normal", "Starting", "Starting kubelet.")
        await self._register()
        await first(self._watch(), self._keep_status(), self._keep_lease())

    def look(self) -> None:
        """Something has changed: the status is written soon, not at the next tick."""
        self._look.set()

    async def write_status(self) -> None:
        """Now, if it has changed, or not been written for long. LastcallError if that does not work.

        A node that somebody has deleted stays so until its kubelet begins anew, as with the real one.
        """
        async with self._writing:  # in turn: what is known of a write under way is not what will be
            await self._write_status()

    async def _write_status(self) -> None:
        self._written, now, old = False, self._clock.wall(), self.known.get("status") or {}
        new = node_object.status(self.profile, self._facts(), old, now)
        if not node_object.changed(new, old) and node_object.heartbeat_age(old, now) < self._settings.status_report:
            self._written = True
            return
        body = node_object.patch(new, old)
        written = await self._client.patch(NODES, self.profile.name, body, subresource="status", kind=STRATEGIC)
        self._tell(new, old)
        self._learn(written)
        self._written = True

    def attached(self) -> dict[str, str]:
        """The volumes that the controller says are attached here: unique name to device path."""
        status = self.known.get("status") or {}
        return {one["name"]: one.get("devicePath", "") for one in status.get("volumesAttached") or ()}

    async def has_attached(self, volume: str) -> bool:
        """Whether the server says that a volume is attached here and in use; LastcallError if it cannot be asked.

        The controller detaches nothing that is in use, and says first that it is not attached. So what counts is one
        version of the Node that says both, and that is not older than this call (a kubelet asks for the Node too:
        ``operation_generator.go: GenerateVerifyControllerAttachedVolumeFunc``).
        """
        await self.write_status()
        self._learn(await self._client.get(NODES, self.profile.name))
        return volume in self.attached() and volume in ((self.known.get("status") or {}).get("volumesInUse") or ())

    def _warn(self, what: str, error: LastcallError) -> None:
        """Once for each reason, until it has worked again."""
        if self._told.get(what) != str(error):
            self._told[what] = str(error)
            log.warning(what, self.profile.name, error)

    # -- registration --------------------------------------------------------------------------------------------------

    async def _register(self) -> None:
        while True:
            try:
                await self._try_to_register()
            except LastcallError as error:
                self._warn(_NO_NODE, error)
            else:
                self._told.pop(_NO_NODE, None)
                return
            await self._clock.sleep(self._settings.retry)

    async def _try_to_register(self) -> None:
        obj = node_object.node(self.profile, self._facts(), self._clock.wall())
        try:
            self._learn(await self._client.create(NODES, obj))
            self._tell(obj["status"], {})
            return
        except AlreadyExists:
            found = await self._client.get(NODES, self.profile.name)
        booted = found.get("status", {}).get("nodeInfo", {}).get("bootID", "")
        self._learn(found)
        if patch := node_object.labels_patch(found, self.profile):
            self._learn(await self._client.patch(NODES, self.profile.name, patch))
        if booted and booted != self.profile.boot_id:
            said = f"Node {self.profile.name} has been rebooted, boot id: {self.profile.boot_id}"
            self._events.tell(self.known, "Warning", "Rebooted", said)
        await self.write_status()

    def _learn(self, obj: Object) -> None:
        known, new = self.known["metadata"], obj["metadata"]
        if known.get("uid") == new["uid"] and int(known["resourceVersion"]) >= int(new["resourceVersion"]):
            return
        self.known = {**obj, "kind": "Node"}
        self.changed.set()

    def _tell(self, new: Object, old: Object) -> None:
        for type_, reason in node_object.told(new, old):
            self._events.tell(self.known, type_, reason, f"Node {self.profile.name} status is now: {reason}")

    # -- keeping -------------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        fields = f"metadata.name={self.profile.name}"
        watching = Watching(self._client, NODES, clock=self._clock, random=self._random, fields=fields, shared=True)
        async for change in watching.changes():
            if change.new is not None and change.kind is not Kind.DELETED:
                self._learn(change.new)

    async def _keep_status(self) -> None:
        while True:
            self._look.clear()
            pause = self._settings.status_update
            try:
                await self.write_status()
                self._told.pop(_NO_STATUS, None)
            except LastcallError as error:
                self._warn(_NO_STATUS, error)
                pause = self._settings.retry
            await first(self._look.wait(), self._until_next_look(pause))

    async def _until_next_look(self, tick: float) -> None:
        """Looks are ``tick`` seconds apart; those are left out that could find nothing: all is written, and not for long."""
        began, old = self._clock.boottime(), self.known.get("status") or {}
        quiet = self._settings.status_report - node_object.heartbeat_age(old, self._clock.wall())
        wait = max(1, math.ceil(quiet / tick)) * tick if self._written else tick
        if await first(self.changed.next(), self._clock.sleep(wait)) == 0:
            now = self._clock.boottime()
            await self._clock.sleep(next_tick(began, tick, now) - now)

    async def _keep_lease(self) -> None:
        """A lease that is there is replaced, as it is: who holds a newer one would be told so."""
        while True:
            try:
                await self._renew()
            except LastcallError as error:
                self._warn(_NO_LEASE, error)
                await self._clock.sleep(self._settings.retry)
            else:
                self._told.pop(_NO_LEASE, None)
                await self._renewals.rest(self._settings.lease_renewal * (1 + 0.04 * self._random.random()))

    async def _renew(self) -> None:
        name, uid = self.profile.name, self.known["metadata"].get("uid", "")
        wanted = node_object.lease(self.profile, uid, self._settings.lease_duration, self._clock.wall())
        try:
            await self._client.patch(LEASES, name, wanted, namespace=LEASE_NAMESPACE)
        except NotFound:
            await self._client.create(LEASES, wanted, namespace=LEASE_NAMESPACE)
