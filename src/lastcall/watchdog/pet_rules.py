"""Whether the watchdog may be petted, and what is done next with it and with the node's Lease (pure).

While the Lease may say ``armed``, the controller may count on the bound: then a pet needs a renewal that was accepted and
was sent less than ``lease`` seconds ago, or an agreement (``watchdog.agreement``) by whatever terms it may say. While it says ``armed`` for certain no longer, and before it has said so, pets
are free: nothing follows from the device.

So the Lease says ``armed`` only when the device runs, with what the driver reports. And the device is stopped, or opened
by a next life of the agent, only when the answer has come that the Lease says otherwise.
"""

from dataclasses import dataclass, replace
from enum import Enum

from lastcall.watchdog.agreement import Counted

NEVER = float("-inf")


@dataclass(frozen=True, kw_only=True)
class LeaseState:
    """What the agent knows of its own Lease; the default is what a new life knows, since an earlier one may have armed."""

    promised: bool = True
    """It may say that the watchdog is armed: so it was sent, or left by an earlier life, and not taken back since."""
    renewed: float = NEVER
    """When the last write of it that was accepted was sent (boottime)."""
    counted: Counted = (None,)
    """The nodes by which it may say that others are counted; None among them: that none are."""


def state_before_write(standing: LeaseState, *, armed: bool, nodes: frozenset[str] | None = None) -> LeaseState:
    """A write is about to be sent. That may be the last that is ever heard of it."""
    counted = standing.counted if not armed or nodes in standing.counted else (*standing.counted, nodes)
    return replace(standing, promised=standing.promised or armed, counted=counted)


def state_after_write(
    standing: LeaseState, *, armed: bool, sent: float, nodes: frozenset[str] | None = None
) -> LeaseState:
    """The write that was sent then was answered: it stands."""
    return replace(standing, promised=armed, renewed=sent, counted=(nodes,))


def may_pet(standing: LeaseState, *, lease: float, now: float, agreed: bool = False) -> bool:
    """The rule from which the bound follows."""
    return not standing.promised or now - standing.renewed < lease or agreed


def round_seconds(pet: float, *, timeout: float, fit: bool) -> float:
    """Seconds between two rounds, of which a write of the Lease may take half.

    A device that does not fit may be one that nothing can stop (``nowayout``), with a ``timeout`` below what was asked for.
    """
    return pet if fit else min(pet, timeout / 3)


def is_api_lost(standing: LeaseState, *, report: float, now: float) -> bool:
    """Whether the agent is to say that the API server is lost to it: it has promised for certain that it counts others.

    An agent that promises nothing does not renew, so that its silence would say nothing of the server.
    """
    return standing.promised and None not in standing.counted and now - standing.renewed >= report


class KeeperStep(Enum):
    """What is done next. The device is petted after each of them."""

    TAKE_BACK = "write that it is not armed"
    OPEN = "open the device, by which it runs"
    PROMISE = "write that it is armed"
    STOP = "stop the device"
    REST = "nothing"


@dataclass(frozen=True, kw_only=True)
class DeviceState:
    """Where the agent stands with its watchdog."""

    wanted: bool
    """It is to be armed: the node is neither going down nor is the agent to end."""
    promised: bool
    open: bool
    """This process holds the device."""
    fit: bool = True
    """A bound follows from what the device is like, as far as that is known."""
    stuck: bool = False
    """It was to be stopped and could not be: ``nowayout``."""
    stray: bool = False
    """An earlier life of this boot had it, and may have left it running."""


def next_step(at: DeviceState) -> KeeperStep:
    """One step; the next one follows from the situation after it."""
    if at.wanted and at.fit and at.open:
        return KeeperStep.PROMISE
    if at.promised:
        return KeeperStep.TAKE_BACK
    if at.open:
        return KeeperStep.REST if at.stuck else KeeperStep.STOP
    return KeeperStep.OPEN if (at.wanted and at.fit) or at.stray else KeeperStep.REST
