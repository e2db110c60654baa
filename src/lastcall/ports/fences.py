"""Ports for devices that power machines off and on; ``adapters.fencing`` implements them."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from lastcall.model.base import Facts
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.power import InstanceState, PowerState


class FenceAnswer(Facts, frozen=True):
    """A fence's report of its machine's power state; ``why`` explains UNKNOWN, and contains no secret."""

    power: PowerState
    why: str = ""
    instance: InstanceState | None = None
    """The state of the machine in its cloud; None for a machine that is in none."""


class FenceTarget(Facts, frozen=True):
    """What a fence device reports about the machine behind it; a field that it does not report is empty."""

    system_uuid: str = ""
    """As the device reports it: in either of the two byte orders of SMBIOS."""
    serial: str = ""
    provider_id: str = ""
    """In the form of a Node's ``spec.providerID``."""
    name: str = ""
    """Only for display: a name is no evidence of identity."""


class Fence(Protocol):
    """A device that powers one machine off and on, and reports whether it is on.

    Error messages contain no secret. After a method returns, raises or is cancelled, none of its work continues, except
    for what the device itself has begun.
    """

    @property
    def name(self) -> str:
        """The fence's name in the policy, which is the ``source`` of evidence."""
        ...

    async def read_target(self) -> FenceTarget:
        """Reads which machine is behind the device now. Raises Unavailable, TimedOut."""
        ...

    async def read_power(self) -> FenceAnswer:
        """Asks the device for the power state. A device fault is no error: the answer is UNKNOWN with the reason."""
        ...

    async def switch_off(self, within: float) -> None:
        """Orders the device to cut the power immediately; returns when it accepts, which proves nothing.

        Ends after ``within`` seconds at the latest. Unavailable and TimedOut: the outcome is unknown, so read the power
        state. RefusedForSafety: no order was sent to the device.
        """
        ...

    async def switch_on(self, within: float) -> None:
        """Orders the device to power on, under the same terms as ``switch_off``."""
        ...


@runtime_checkable
class ExtendableFence(Protocol):
    """A Fence whose orders may outlast the caller's lease: their deadline can be extended while they run."""

    def extend_order(self, until: float) -> None:
        """Extends the running order's deadline to this boottime. No effect if no order runs or its time is over."""
        ...


class FenceFactory(Protocol):
    """Creates the fences of a node from its policy."""

    async def make_fences(self, node: FenceNode, policy: FencePolicy) -> Sequence[Fence]:
        """The fences in the policy's order. Secrets are read now, and kept no longer than the fences.

        InvalidInput names the invalid field. Unavailable: a Secret cannot be read now.
        """
        ...
