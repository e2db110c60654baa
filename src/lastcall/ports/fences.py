"""What switches machines off and on, as programs know it: roles as in ``ports``; ``adapters.fencing`` implements them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from lastcall.model.base import Facts
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.power import InstanceState, PowerState


class FenceAnswer(Facts, frozen=True):
    """What a fence says of its machine's power; ``why`` says what is wrong with UNKNOWN, and holds no secret."""

    power: PowerState
    why: str = ""
    instance: InstanceState | None = None
    """The state of the machine in its cloud; None if it is in none."""


class FenceTarget(Facts, frozen=True):
    """What a fence device says of the machine behind it. What it does not say is empty."""

    system_uuid: str = ""
    """As the device tells it: in either of the two byte orders of SMBIOS."""
    serial: str = ""
    provider_id: str = ""
    """In the words of a Node's ``spec.providerID``."""
    name: str = ""
    """For people alone: names prove nothing."""


class Fence(Protocol):
    """One way to switch one machine off and on, and to learn whether it is on.

    Messages of all errors hold no secret. Nothing of a verb runs on after it has returned, raised or been cancelled, but
    what the device itself has begun.
    """

    @property
    def name(self) -> str:
        """Its name in the policy: the ``source`` of evidence."""
        ...

    async def read_target(self) -> FenceTarget:
        """Which machine is behind it, as the device says now. Unavailable, TimedOut."""
        ...

    async def read_power(self) -> FenceAnswer:
        """Asks the device. Never raises for a fault of the device: UNKNOWN and why."""
        ...

    async def switch_off(self, within: float) -> None:
        """Tells the device to cut the power at once; returns when it has accepted, which proves nothing.

        It is over after ``within`` seconds, whatever happens. Unavailable and TimedOut: whether the power goes off is not
        known, ask for the status. RefusedForSafety: nothing was asked of the device.
        """
        ...

    async def switch_on(self, within: float) -> None:
        """Tells the device to switch on, as ``switch_off`` does."""
        ...


@runtime_checkable
class ExtendableFence(Protocol):
    """A Fence whose orders may take longer than the lease of who gives them: their end can be put off while they run."""

    def extend_order(self, until: float) -> None:
        """The order that is under way may last until this boottime. Nothing if there is none, or its time is over."""
        ...


class FenceFactory(Protocol):
    """Makes the fences of a node as a policy describes them."""

    async def make_fences(self, node: FenceNode, policy: FencePolicy) -> Sequence[Fence]:
        """In the policy's order. Secrets are read now, and kept no longer than the fences are.

        InvalidInput names the field that is wrong; Unavailable: a Secret cannot be read now.
        """
        ...
