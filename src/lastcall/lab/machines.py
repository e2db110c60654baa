"""The lab's machines on this one: each runs a node, and has a power switch."""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CSI_NODES, NODES, STORAGE_CLASSES, resource
from lastcall.aio import Group
from lastcall.errors import AlreadyExists, InvalidInput, NotFound
from lastcall.lab import identities
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.apiserver.kubelets import Kubelet as KubeletApi
from lastcall.lab.apiserver.request import ADMIN
from lastcall.lab.bmc import Bmc
from lastcall.lab.control_plane import ControlPlane
from lastcall.lab.host import Clients, LocalHost, Site
from lastcall.lab.power import Cable, Machine, Switch
from lastcall.lab.traffic.numbers import Numbers
from lastcall.lab.volumes import objects
from lastcall.model import duration

_LOOK = 0.02
"""Seconds between two looks at nodes that are coming up."""
_DRIVERS = resource("storage.k8s.io", "v1", "csidrivers")

T = TypeVar("T")


class LocalMachines:
    """``pages.Machines`` with real processes. They are switched on by ``run``, and off at the end."""

    def __init__(self, plane: ControlPlane, site: Site, *, count: int) -> None:
        self._plane = plane
        self._site = site
        self._turning = Group()
        self._machines: dict[str, Machine] = {}
        self.hosts: dict[str, LocalHost] = {}
        self._numbers = Numbers()
        first = zlib.crc32(str(site.directory).encode())  # a directory's nodes have the same addresses again
        for number in range(count):
            self._add(f"lab-{number + 1}", self._numbers.take(first + number))
        self._bmcs = {name: Bmc(machine, site.clock, self._machines) for name, machine in self._machines.items()}
        plane.server.kubelets = self._kubelet

    def _add(self, name: str, number: int) -> None:
        cable = Cable(InProcess(self._plane.server, identities.kubelet(name)))
        branch = Cable(InProcess(self._plane.server, identities.PROXY), trunk=cable)
        agent = Cable(InProcess(self._plane.server, identities.agent_on(name)), trunk=cable)
        clients = Clients(
            Client(cable, manager="kubelet"),
            Client(branch, manager="kube-proxy"),
            Client(agent, manager="lastcall-agent"),
        )
        host = LocalHost(name, number, self._site, clients)
        self.hosts[name] = host
        self._machines[name] = Machine(name, host, cable)

    @property
    def names(self) -> Sequence[str]:
        """Of the machines and their nodes."""
        return list(self._machines)

    def _kubelet(self, node: str) -> KubeletApi | None:
        """What answers for logs and exec; nobody does on a machine that is off, hung or cut off."""
        machine, host = self._machines.get(node), self.hosts.get(node)
        if machine is None or host is None or host.kubelet is None or machine.cable.cut:
            return None
        return host.kubelet.api

    # -- pages.Machines ------------------------------------------------------------------------------------------------

    def status(self) -> Sequence[dict[str, Any]]:
        """One line for each: its switch, how it goes down, how late it hears, and where its proxy listens."""
        return [
            {
                "name": name,
                "power": machine.switch.value,
                "bmcFaults": self._bmcs[name].faults.words(),
                "shutdownManager": self._site.manager.value,
                "propagationDelay": duration.of_seconds(self._site.delay),
                "services": [
                    f"{target.namespace}/{target.service} at {door.address}:{door.port}"
                    for door, target in self.hosts[name].proxy.doors.items()
                ]
                if machine.powered
                else [],
            }
            for name, machine in self._machines.items()
        ]

    async def switch(self, node: str, to: str) -> None:
        """Turns a switch; a button that is pressed does its work afterwards.

        InvalidInput if there is no such machine or position, or if it cannot be turned so.
        """
        machine = self._known("power", node, self._machines)
        try:
            position = Switch(to)
        except ValueError:
            known = ", ".join(one.value for one in Switch)
            raise InvalidInput("power", [f'"{to}" is no position of a switch; there are {known}']) from None
        turning = self._turning.start(machine.turn(position), f"{node} {to}")
        if position is Switch.BUTTON:
            await asyncio.sleep(0)  # it is pressed by then, or cannot be
            if not turning.done():
                return
        await turning

    def bmc(self, node: str) -> Bmc:
        """What answers for a machine's power."""
        return self._known("bmc", node, self._bmcs)

    async def switch_by_bmc(self, node: str, *, on: bool) -> None:
        """Asks the BMC to switch, and returns when it says that it has."""
        await self._turning.start(self.bmc(node).power(on=on), f"{node} by its BMC")

    def _known(self, what: str, node: str, among: Mapping[str, T]) -> T:
        if node in among:
            return among[node]
        known = ", ".join(among) or "none"
        raise InvalidInput(what, [f'"{node}" is no machine of this lab; there are {known}'])

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled."""
        admin = self._plane.client(ADMIN)
        for kind, obj in ((STORAGE_CLASSES, objects.storage_class()), (_DRIVERS, objects.csi_driver())):
            try:
                await admin.create(kind, obj)
            except AlreadyExists:
                continue
        starting = Group()
        for machine in self._machines.values():
            starting.start(self._start(machine, admin), f"{machine.name} starts")
        try:
            await starting.join()
        finally:
            await starting.cancel()
        await asyncio.Event().wait()

    async def _start(self, machine: Machine, admin: Client) -> None:
        """Power on; its driver is announced as the driver's registrar does on each node."""
        await machine.turn(Switch.ON)
        while True:
            try:
                node = await admin.get(NODES, machine.name)
                break
            except NotFound:
                await self._site.clock.sleep(_LOOK)
        try:
            kubelet = self._plane.client(identities.kubelet(machine.name))
            await kubelet.create(CSI_NODES, objects.csi_node(machine.name, node["metadata"]["uid"]))
        except AlreadyExists:
            return

    async def up(self) -> None:
        """Returns when all nodes are ready."""
        admin = self._plane.client(ADMIN)
        while True:
            nodes = (await admin.list(NODES)).items
            if sum(_ready(node) for node in nodes if node["metadata"]["name"] in self._machines) == len(self._machines):
                return
            await self._site.clock.sleep(_LOOK)

    async def clean_up(self) -> None:
        """Ends everything that runs."""
        await self._turning.cancel()
        for machine in self._machines.values():
            await machine.turn(Switch.OFF)
        self._numbers.release()


def _ready(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
