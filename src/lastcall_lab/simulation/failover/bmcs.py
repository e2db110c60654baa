"""The BMCs of the simulated machines, by which the failover controller fences them, and a record of its orders."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.ports.fences import Fence, FenceAnswer, FenceTarget
from lastcall.ports.node import Clock
from lastcall_lab.fakes.fence import FakeFence
from lastcall_lab.machines.bmc import Bmc, BmcFaults
from lastcall_lab.machines.power import LabMachine
from lastcall_lab.virtual import VirtualProcess, run_within

T = TypeVar("T")

ANSWER_SECONDS = 0.2
"""From a question to its answer, if nothing is wrong."""
PATIENCE = 10.0

Ordered = Callable[[str, str], None]
"""Hears of each order to switch off: of which node's BMC, and which machine it is for."""


class SimulatedBmcs:
    """``ports_fences.Fences``: each fencer of a policy is the machine's BMC. Orders outlive their sender."""

    def __init__(self, machines: Mapping[str, LabMachine], clock: Clock, ordered: Ordered) -> None:
        self._machines = machines
        self._clock = clock
        self._ordered = ordered
        self._world = VirtualProcess("BMCs")
        self._bmcs: dict[str, Bmc] = {}

    def __getitem__(self, name: str) -> Bmc:
        """Of a machine."""
        if name not in self._bmcs:
            bmc = self._bmcs[name] = Bmc(self._machines[name], self._clock, self._machines)
            bmc.faults = BmcFaults(late=ANSWER_SECONDS)
        return self._bmcs[name]

    def inject_fault(self, name: str, **faults: Any) -> Callable[[], None]:
        """Adds faults to a BMC; the returned function removes them."""
        usual = BmcFaults(late=ANSWER_SECONDS)
        before = {fault: getattr(usual, fault) for fault in faults}
        self[name].faults = replace(self[name].faults, **faults)

        def over() -> None:
            self[name].faults = replace(self[name].faults, **before)

        return over

    async def make_fences(self, node: FenceNode, policy: FencePolicy) -> Sequence[Fence]:
        """In the policy's order."""
        return [self._bmc_fence(node.name, fencer.name) for fencer in policy.spec.fencers]

    def _bmc_fence(self, node: str, name: str) -> "_RemoteFence":
        def ordered() -> None:
            self._ordered(node, self[node].faults.wired or node)

        return _RemoteFence(FakeFence(name, self[node], self._clock, patience=PATIENCE), self._world, ordered)


class _RemoteFence:
    """A fence over a network: whoever asks may die meanwhile."""

    def __init__(self, fence: FakeFence, world: VirtualProcess, ordered: Callable[[], None]) -> None:
        self._fence = fence
        self._world = world
        self._told_off = ordered

    @property
    def name(self) -> str:
        """In the policy."""
        return self._fence.name

    async def read_target(self) -> FenceTarget:
        """TimedOut."""
        return await self._run_in_world(self._fence.read_target())

    async def read_power(self) -> FenceAnswer:
        """UNKNOWN if there is no answer."""
        return await self._run_in_world(self._fence.read_power())

    async def switch_off(self, within: float) -> None:
        """TimedOut."""
        self._told_off()
        await self._run_in_world(self._fence.switch_off(within))

    async def switch_on(self, within: float) -> None:
        """TimedOut."""
        await self._run_in_world(self._fence.switch_on(within))

    async def _run_in_world(self, work: Coroutine[Any, Any, T]) -> T:
        return await run_within(self._world, work, "BMC")
