"""Whether the watchdog may be petted, and the next step with it and with the node's Lease (pure).

While the Lease may say ``armed``, the controller may rely on the reset bound. A pet then needs one of two things: an
accepted renewal that was sent less than ``lease`` seconds ago, or an agreement (``watchdog.agreement``) by every set of
nodes that the Lease may claim. Before the first promise, and after a confirmed withdrawal, pets are free, because no
proof rests on the device.

The Lease therefore says ``armed`` only while the device runs, with the driver's own values. And the device is stopped,
or reopened by the agent's next process, only after the API server has confirmed that the Lease does not say ``armed``.
"""

from dataclasses import dataclass, replace
from enum import Enum

from lastcall.watchdog.agreement import Counted

NEVER = float("-inf")


@dataclass(frozen=True, kw_only=True)
class LeaseState:
    """What the agent knows of its own Lease. The default is for a new process: an earlier one may have promised."""

    promised: bool = True
    """Whether the Lease may say that the watchdog is armed: written, or left by an earlier process."""
    renewed: float = NEVER
    """When the last accepted write of the Lease was sent (boottime)."""
    counted: Counted = (None,)
    """The sets of nodes by which the Lease may claim to count peers; None in it: it may claim that none are counted."""


def state_before_write(standing: LeaseState, *, armed: bool, nodes: frozenset[str] | None = None) -> LeaseState:
    """The state from the moment a write is sent: its answer may never come, so its effects are assumed possible."""
    counted = standing.counted if not armed or nodes in standing.counted else (*standing.counted, nodes)
    return replace(standing, promised=standing.promised or armed, counted=counted)


def state_after_write(
    standing: LeaseState, *, armed: bool, sent: float, nodes: frozenset[str] | None = None
) -> LeaseState:
    """The state after the write that was sent at ``sent`` was accepted."""
    return replace(standing, promised=armed, renewed=sent, counted=(nodes,))


def may_pet(standing: LeaseState, *, lease: float, now: float, agreed: bool = False) -> bool:
    """Whether the watchdog may be petted: the rule that the reset bound rests on."""
    return not standing.promised or now - standing.renewed < lease or agreed


def round_seconds(pet: float, *, timeout: float, fit: bool) -> float:
    """Seconds between two rounds; a write of the Lease may take half of that.

    An unfit device may be one that cannot be stopped (``nowayout``), with a ``timeout`` shorter than requested.
    """
    return pet if fit else min(pet, timeout / 3)


def is_api_lost(standing: LeaseState, *, report: float, now: float) -> bool:
    """Whether the agent reports that it has lost the API server; only if its Lease certainly promises to count peers.

    An agent that promises nothing does not renew, so its missing renewals say nothing about the API server.
    """
    return standing.promised and None not in standing.counted and now - standing.renewed >= report


class KeeperStep(Enum):
    """The next step. The keeper pets the device after each one if it may."""

    TAKE_BACK = "write that it is not armed"
    OPEN = "open the device, which starts it"
    PROMISE = "write that it is armed"
    STOP = "stop the device"
    REST = "nothing"


@dataclass(frozen=True, kw_only=True)
class DeviceState:
    """The state of the agent's watchdog."""

    wanted: bool
    """Whether it should be armed: the node is not shutting down, and the agent does not end."""
    promised: bool
    open: bool
    """Whether this process holds the device."""
    fit: bool = True
    """Whether the device's properties give a reset bound, as far as they are known."""
    stuck: bool = False
    """Whether an attempt to stop it failed (``nowayout``)."""
    stray: bool = False
    """Whether an earlier process of this boot had it, and may have left it running."""


def next_step(at: DeviceState) -> KeeperStep:
    """One step; call it again with the state after that step."""
    if at.wanted and at.fit and at.open:
        return KeeperStep.PROMISE
    if at.promised:
        return KeeperStep.TAKE_BACK
    if at.open:
        return KeeperStep.REST if at.stuck else KeeperStep.STOP
    return KeeperStep.OPEN if (at.wanted and at.fit) or at.stray else KeeperStep.REST
