"""Which machines lastcall has told BMCs to switch off (pure)."""

from collections.abc import Iterator

from lastcall_lab.simulation.rules.arithmetic import machines_needed
from lastcall_lab.simulation.rules.base import Invariant, InvariantViolation, RunRecord
from lastcall_lab.simulation.scenario import FailoverSettings
from lastcall_lab.simulation.truth import FenceOrder

_SLACK = 1.0
"""Seconds by which a kubelet's renewal may have come to the store before its answer."""


_READ_WITHIN = 15.0
"""Seconds within which a controller that is in no trouble has read a policy that was edited, and given up what it did."""


def find_violations(run: RunRecord) -> Iterator[InvariantViolation]:
    """Of each order."""
    if run.failover is None:
        return
    fenced: dict[tuple[str, str], FenceOrder] = {}
    for order in run.orders:
        yield from _judge_target(order, run.failover)
        known = (order.hit, order.boot_id) in fenced
        fenced.setdefault((order.hit, order.boot_id), order)
        if not known:
            yield from _judge_limits(order, run.failover, len(fenced))


def _judge_target(order: FenceOrder, failover: FailoverSettings) -> Iterator[InvariantViolation]:
    if order.hit != order.node:
        what = f"{order.hit} was told to switch off by the BMC of {order.node}, which is wired to it"
        yield InvariantViolation(order.at, Invariant.TARGET, what)
    elif order.powered and order.silence < (order.suspect_after or failover.suspect_after) - _SLACK:
        what = f"{order.hit} was told to switch off, and had been silent for {order.silence:.1f} s"
        yield InvariantViolation(order.at, Invariant.TARGET, what)
    elif order.powered and order.forbidden > _READ_WITHIN:
        what = f"{order.hit} was told to switch off {order.forbidden:.1f} s after the policy had been set to observe"
        yield InvariantViolation(order.at, Invariant.TARGET, what)
    elif order.powered and order.held > _SLACK:
        what = f"{order.hit} was told to switch off {order.held:.1f} s before the end that it had stated itself"
        yield InvariantViolation(order.at, Invariant.TARGET, what)


def _judge_limits(order: FenceOrder, failover: FailoverSettings, count: int) -> Iterator[InvariantViolation]:
    """Of a boot that is not being fenced yet. No rehearsal lasts longer than the hour for which one counts."""
    needed = machines_needed(failover.min_healthy, order.every)
    if order.healthy < needed:
        what = (
            f"{order.hit} was fenced, and leaves {order.healthy} of {order.every} machines, where {needed} have to be"
        )
        yield InvariantViolation(order.at, Invariant.LIMITS, what)
    if count > failover.per_hour:
        yield InvariantViolation(
            order.at, Invariant.LIMITS, f"{order.hit} is the {count}th that was fenced within an hour"
        )
    if len(order.away) >= failover.per_domain:
        yield InvariantViolation(
            order.at, Invariant.LIMITS, f"{order.hit} was fenced while {', '.join(order.away)} had not come back"
        )
