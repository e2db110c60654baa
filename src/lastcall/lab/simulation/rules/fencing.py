"""Which machines lastcall has told BMCs to switch off (pure)."""

from collections.abc import Iterator

from lastcall.lab.simulation.rules.arithmetic import machines_needed
from lastcall.lab.simulation.rules.base import Rule, Run, Violation
from lastcall.lab.simulation.scenario import Failover
from lastcall.lab.simulation.truth import Order

_SLACK = 1.0
"""Seconds by which a kubelet's renewal may have come to the store before its answer."""


_READ_WITHIN = 15.0
"""Seconds within which a controller that is in no trouble has read a policy that was edited, and given up what it did."""


def violations(run: Run) -> Iterator[Violation]:
    """Of each order."""
    if run.failover is None:
        return
    fenced: dict[tuple[str, str], Order] = {}
    for order in run.orders:
        yield from _target(order, run.failover)
        known = (order.hit, order.boot_id) in fenced
        fenced.setdefault((order.hit, order.boot_id), order)
        if not known:
            yield from _limits(order, run.failover, len(fenced))


def _target(order: Order, failover: Failover) -> Iterator[Violation]:
    if order.hit != order.node:
        what = f"{order.hit} was told to switch off by the BMC of {order.node}, which is wired to it"
        yield Violation(order.at, Rule.TARGET, what)
    elif order.powered and order.silence < (order.suspect_after or failover.suspect_after) - _SLACK:
        what = f"{order.hit} was told to switch off, and had been silent for {order.silence:.1f} s"
        yield Violation(order.at, Rule.TARGET, what)
    elif order.powered and order.forbidden > _READ_WITHIN:
        what = f"{order.hit} was told to switch off {order.forbidden:.1f} s after the policy had been set to observe"
        yield Violation(order.at, Rule.TARGET, what)
    elif order.powered and order.held > _SLACK:
        what = f"{order.hit} was told to switch off {order.held:.1f} s before the end that it had stated itself"
        yield Violation(order.at, Rule.TARGET, what)


def _limits(order: Order, failover: Failover, count: int) -> Iterator[Violation]:
    """Of a boot that is not being fenced yet. No rehearsal lasts longer than the hour for which one counts."""
    needed = machines_needed(failover.min_healthy, order.every)
    if order.healthy < needed:
        what = (
            f"{order.hit} was fenced, and leaves {order.healthy} of {order.every} machines, where {needed} have to be"
        )
        yield Violation(order.at, Rule.LIMITS, what)
    if count > failover.per_hour:
        yield Violation(order.at, Rule.LIMITS, f"{order.hit} is the {count}th that was fenced within an hour")
    if len(order.away) >= failover.per_domain:
        yield Violation(
            order.at, Rule.LIMITS, f"{order.hit} was fenced while {', '.join(order.away)} had not come back"
        )
