"""The BMCs of the simulated machines, by which the failover controller fences them, and what they were told."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from lastcall.lab.bmc import Bmc, Faults
from lastcall.lab.fake_fence import FakeFence
from lastcall.lab.power import Machine
from lastcall.lab.virtual import Process, within
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.ports import Clock
from lastcall.ports_fences import Fence, FenceAnswer, FenceTarget

T = TypeVar("T")

ANSWER_SECONDS = 0.2
"""From a question to its answer, if nothing is wrong."""
PATIENCE = 10.0

Ordered = Callable[[str, str], None]
"""Hears of each order to switch off: of which node's BMC, and which machine it is for."""


class Bmcs:
    """``ports_fences.Fences``: each fencer of a policy is the machine's BMC. What it was told goes on when the asker dies."""

    def __init__(self, machines: Mapping[str, Machine], clock: Clock, ordered: Ordered) -> None:
        self._machines = machines
        self._clock = clock
        self._ordered = ordered
        self._world = Process("BMCs")
        self._bmcs: dict[str, Bmc] = {}

    def __getitem__(self, name: str) -> Bmc:
        """Of a machine."""
        if name not in self._bmcs:
            bmc = self._bmcs[name] = Bmc(self._machines[name], self._clock, self._machines)
            bmc.faults = Faults(late=ANSWER_SECONDS)
        return self._bmcs[name]

    def wrong(self, name: str, **faults: Any) -> Callable[[], None]:
        """From now on so much more is wrong with it; the answer takes that back."""
        usual = Faults(late=ANSWER_SECONDS)
        before = {fault: getattr(usual, fault) for fault in faults}
        self[name].faults = replace(self[name].faults, **faults)

        def over() -> None:
            self[name].faults = replace(self[name].faults, **before)

        return over

    async def of(self, node: FenceNode, policy: FencePolicy) -> Sequence[Fence]:
        """In the policy's order."""
        return [self._fence(node.name, fencer.name) for fencer in policy.spec.fencers]

    def _fence(self, node: str, name: str) -> "_Reached":
        def ordered() -> None:
            self._ordered(node, self[node].faults.wired or node)

        return _Reached(FakeFence(name, self[node], self._clock, patience=PATIENCE), self._world, ordered)


class _Reached:
    """A fence over a network: whoever asks may die meanwhile."""

    def __init__(self, fence: FakeFence, world: Process, ordered: Callable[[], None]) -> None:
        self._fence = fence
        self._world = world
        self._told_off = ordered

    @property
    def name(self) -> str:
        """In the policy."""
        return self._fence.name

    async def target(self) -> FenceTarget:
        """TimedOut."""
        return await self._in_the_world(self._fence.target())

    async def status(self) -> FenceAnswer:
        """UNKNOWN if there is no answer."""
        return await self._in_the_world(self._fence.status())

    async def off(self, within: float) -> None:
        """TimedOut."""
        self._told_off()
        await self._in_the_world(self._fence.off(within))

    async def on(self, within: float) -> None:
        """TimedOut."""
        await self._in_the_world(self._fence.on(within))

    async def _in_the_world(self, work: Coroutine[Any, Any, T]) -> T:
        return await within(self._world, work, "BMC")
