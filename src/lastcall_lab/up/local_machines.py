"""The lab's machines on this computer: each runs a node, and has a power switch."""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CSI_NODES, NODES, STORAGE_CLASSES, dict_resource
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import AlreadyExists, InvalidInput, NotFound
from lastcall.model import duration
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.subresources.kubelet_api import KubeletApi
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.control_plane import identities
from lastcall_lab.control_plane.control_plane import ControlPlane
from lastcall_lab.machines.bmc import Bmc
from lastcall_lab.machines.power import LabMachine, NetworkCable, PowerSwitch
from lastcall_lab.traffic.node_numbers import NodeNumbers
from lastcall_lab.up.local_host import LabInfrastructure, LocalHost, MachineClients
from lastcall_lab.volumes import csi_objects

_LOOK = 0.02
"""Seconds between two checks of nodes that are starting."""
_DRIVERS = dict_resource("storage.k8s.io", "v1", "csidrivers")

T = TypeVar("T")


class LocalMachines:
    """``lab_pages.LabMachines`` with real processes. ``run`` switches them on, and off at the end."""

    def __init__(self, plane: ControlPlane, site: LabInfrastructure, *, count: int) -> None:
        self._plane = plane
        self._site = site
        self._turning = OrderedTaskGroup()
        self._machines: dict[str, LabMachine] = {}
        self.hosts: dict[str, LocalHost] = {}
        self._numbers = NodeNumbers()
        first = zlib.crc32(str(site.directory).encode())  # the nodes of a directory keep their addresses
        for number in range(count):
            self._add_machine(f"lab-{number + 1}", self._numbers.take(first + number))
        self._bmcs = {name: Bmc(machine, site.clock, self._machines) for name, machine in self._machines.items()}
        plane.server.streams.kubelets = self._kubelet_of

    def _add_machine(self, name: str, number: int) -> None:
        cable = NetworkCable(InProcessTransport(self._plane.server, identities.kubelet_identity(name)))
        branch = NetworkCable(InProcessTransport(self._plane.server, identities.PROXY), trunk=cable)
        agent = NetworkCable(InProcessTransport(self._plane.server, identities.agent_identity(name)), trunk=cable)
        clients = MachineClients(
            Client(cable, manager="kubelet"),
            Client(branch, manager="kube-proxy"),
            Client(agent, manager="lastcall-agent"),
        )
        host = LocalHost(name, number, self._site, clients)
        self.hosts[name] = host
        self._machines[name] = LabMachine(name, host, cable)

    @property
    def names(self) -> Sequence[str]:
        """The names of the machines and their nodes."""
        return list(self._machines)

    def _kubelet_of(self, node: str) -> KubeletApi | None:
        """The handler of logs and exec; None for a machine that is off, hung or cut off."""
        machine, host = self._machines.get(node), self.hosts.get(node)
        if machine is None or host is None or host.kubelet is None or machine.cable.cut:
            return None
        return host.kubelet.api

    # -- pages.Machines ------------------------------------------------------------------------------------------------

    def status(self) -> Sequence[dict[str, Any]]:
        """A row for each: its switch, its shutdown manager, its endpoint delay, and its proxy's addresses."""
        return [
            {
                "name": name,
                "power": machine.switch.value,
                "bmcFaults": self._bmcs[name].faults.describe(),
                "shutdownManager": self._site.manager.value,
                "propagationDelay": duration.format_seconds(self._site.delay),
                "services": [
                    f"{target.namespace}/{target.service} at {door.address}:{door.port}"
                    for door, target in self.hosts[name].proxy.listen_targets.items()
                ]
                if machine.is_powered
                else [],
            }
            for name, machine in self._machines.items()
        ]

    async def switch(self, node: str, to: str) -> None:
        """Turns a switch; the effects of a pressed button follow in the background.

        Raises InvalidInput if there is no such machine or position, or if that change is not possible.
        """
        machine = self._find_machine("power", node, self._machines)
        try:
            position = PowerSwitch(to)
        except ValueError:
            known = ", ".join(one.value for one in PowerSwitch)
            raise InvalidInput("power", [f'"{to}" is no position of a switch; there are {known}']) from None
        turning = self._turning.start(machine.turn(position), f"{node} {to}")
        if position is PowerSwitch.BUTTON:
            await asyncio.sleep(0)  # it is pressed by then, or cannot be
            if not turning.done():
                return
        await turning

    def bmc(self, node: str) -> Bmc:
        """The BMC of a machine."""
        return self._find_machine("bmc", node, self._bmcs)

    async def switch_by_bmc(self, node: str, *, on: bool) -> None:
        """Asks the BMC to switch, and returns when it reports success."""
        await self._turning.start(self.bmc(node).power(on=on), f"{node} by its BMC")

    def _find_machine(self, what: str, node: str, among: Mapping[str, T]) -> T:
        if node in among:
            return among[node]
        known = ", ".join(among) or "none"
        raise InvalidInput(what, [f'"{node}" is no machine of this lab; there are {known}'])

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Runs until cancelled."""
        admin = self._plane.client(ADMIN)
        for kind, obj in ((STORAGE_CLASSES, csi_objects.storage_class()), (_DRIVERS, csi_objects.csi_driver())):
            try:
                await admin.create(kind, obj)
            except AlreadyExists:
                continue
        starting = OrderedTaskGroup()
        for machine in self._machines.values():
            starting.start(self._start_machine(machine, admin), f"{machine.name} starts")
        try:
            await starting.join()
        finally:
            await starting.cancel()
        await asyncio.Event().wait()

    async def _start_machine(self, machine: LabMachine, admin: Client) -> None:
        """Switches a machine on, and registers its storage driver, as the driver's registrar does on each node."""
        await machine.turn(PowerSwitch.ON)
        while True:
            try:
                node = await admin.get(NODES, machine.name)
                break
            except NotFound:
                await self._site.clock.sleep(_LOOK)
        try:
            kubelet = self._plane.client(identities.kubelet_identity(machine.name))
            await kubelet.create(CSI_NODES, csi_objects.csi_node(machine.name, node["metadata"]["uid"]))
        except AlreadyExists:
            return

    async def wait_until_ready(self) -> None:
        """Returns when all nodes are ready."""
        admin = self._plane.client(ADMIN)
        while True:
            nodes = (await admin.list(NODES)).items
            if sum(_is_ready(node) for node in nodes if node["metadata"]["name"] in self._machines) == len(
                self._machines
            ):
                return
            await self._site.clock.sleep(_LOOK)

    async def clean_up(self) -> None:
        """Ends everything that runs."""
        for machine in self._machines.values():
            await machine.wait_for_power_loss()  # cancelled, it would leave pods behind on a machine that is off
        await self._turning.cancel()
        for machine in self._machines.values():
            await machine.turn(PowerSwitch.OFF)
        self._numbers.release()


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
