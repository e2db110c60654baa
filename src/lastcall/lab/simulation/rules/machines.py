"""What becomes of a machine that goes down: its phases, what is started on it, and its lock (pure)."""

from collections.abc import Iterator

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.rules.base import NEVER, SOON, Rule, Violation
from lastcall.lab.simulation.rules.facts import ARMED_WITHIN, FOUND_AGAIN, Facts, Machine, Shutdown
from lastcall.lab.simulation.rules.reasons import Reasons

LINGER = 5.0
"""Seconds after the last pod's end in which the lock must be released: its last status is waited for."""

_JUST = 1e-6
"""Before the button: what dies of the power's going dies later than that."""

_AGAIN = 1.0
"""Seconds in which an agent goes on that lives again, or whose runtime answers again."""


def violations(facts: Facts) -> Iterator[Violation]:
    """Of each machine, and each of its shutdowns."""
    for node in facts.powers:
        yield from _agents(facts, node)
    if facts.run.plan is None:
        return
    reasons = Reasons(facts)
    for shutdown in facts.shutdowns:
        yield from _starts(facts, shutdown)
        if not shutdown.stale:
            yield from _order(facts, reasons, shutdown)
        if facts.run.plan:
            yield from _lost(facts, shutdown)
            yield from _kept(facts, shutdown)


def _agents(facts: Facts, node: str) -> Iterator[Violation]:
    alive = False
    for one in facts.powers[node]:
        if one.what == "agent started":
            if alive:
                yield Violation(one.at, Rule.ONE_AGENT, f"another agent started on {node} while one lived")
            alive = True
        elif one.what in ("agent killed", "off"):
            alive = False


def _starts(facts: Facts, shutdown: Shutdown) -> Iterator[Violation]:
    """By the order to start: what had been ordered before may still come to run."""
    since = shutdown.noticed + SOON
    for one in facts.orders.get(shutdown.node, ()):
        if since < one.at < shutdown.until:
            what = f"{facts.run.name(one.uid)} was started on {one.node}, which had been going down"
            yield Violation(one.at, Rule.NO_START, f"{what} for {one.at - shutdown.at:.1f} s")


# -- phases ------------------------------------------------------------------------------------------------------------


def _order(facts: Facts, reasons: Reasons, shutdown: Shutdown) -> Iterator[Violation]:
    """Who is to end by the API server's word is ended by the kubelet, whenever its turn would be."""
    ran = [one for one in facts.on(shutdown.node) if one.lived(shutdown.at) and not _wanted(facts, one, shutdown.until)]
    for life in ran:
        at = life.reached(shutdown.at)
        if at is None or at > shutdown.until:
            continue
        for other in ran:
            if (
                facts.phase(other.uid) < facts.phase(life.uid)
                and other.lived(at)
                and _had_time(facts, reasons, shutdown, other, at)
            ):
                what = f"{facts.run.name(life.uid)} was ended on {life.node} while {facts.run.name(other.uid)} still had time"
                yield Violation(at, Rule.ORDER, what)
                break


def _wanted(facts: Facts, life: Life, until: float) -> bool:
    ended = until if life.ended is None else min(until, life.ended)
    return any(one.at < ended for one in facts.asked.get(life.uid, ()))


def _had_time(facts: Facts, reasons: Reasons, shutdown: Shutdown, life: Life, at: float) -> bool:
    start, index = reasons.start(shutdown, facts.phase(life.uid)), facts.phase(life.uid)
    if start is None:
        return True
    if facts.machines[shutdown.node].troubled(shutdown.at, at):
        start = shutdown.at
    return at < reasons.over(shutdown, index, start) - SOON


# -- the lock ----------------------------------------------------------------------------------------------------------


def _lost(facts: Facts, shutdown: Shutdown) -> Iterator[Violation]:
    """With pods on it, a machine is held until they have ended, or their time has."""
    machine, node = facts.machines[shutdown.node], shutdown.node
    if not shutdown.locked:
        if any(life.lived(shutdown.at) for life in facts.on(node)) and _armed(
            facts, machine, node, shutdown.at - _JUST
        ):
            yield Violation(shutdown.at, Rule.LOCK_LOST, f"{node} went down without a lock")
        return
    down = shutdown.down
    if down is None or down >= _held_until(facts, shutdown) - SOON:
        return
    alive = [life for life in facts.on(node) if life.lived(down) and life.began <= shutdown.noticed]
    if alive and not _let_go_by_force(machine, shutdown.at, down):
        names = ", ".join(sorted({facts.run.name(life.uid) for life in alive}))
        yield Violation(down, Rule.LOCK_LOST, f"{node} went down although there was time for {names}")


def _held_until(facts: Facts, shutdown: Shutdown) -> float:
    """Whoever is dead cannot tell the holder that a shutdown was called off: its deadline stands."""
    own = min(facts.deadline(shutdown, shutdown.noticed), shutdown.at + shutdown.granted)
    return own if shutdown.taken_for is None else min(own, _held_until(facts, shutdown.taken_for))


def _armed(facts: Facts, machine: Machine, node: str, at: float) -> bool:
    """Whether somebody must hold a lock: since a moment at which the agent must have had one, nobody has lost it.

    Neither an agent's death nor a bus that is lost takes a lock away.
    """
    moments = [at, *(one.begin - _JUST for one in (*machine.dead, *machine.no_bus) if one.begin <= at)]
    return any(_calm(facts, machine, node, one) and not _gone(facts, machine, node, one, at) for one in moments)


def _gone(facts: Facts, machine: Machine, node: str, begin: float, end: float) -> bool:
    """It was let go, or has got the deadline of a shutdown that was called off, and nobody was there to take another."""
    off = any(one.what == "off" and begin <= one.at <= end for one in facts.powers[node])
    return off or _let_go_by_force(machine, begin, end) or _going_down(facts, node, begin, end)


def _calm(facts: Facts, machine: Machine, node: str, at: float) -> bool:
    """The agent has lived for long enough to hold a lock."""
    since = at - ARMED_WITHIN
    return not (
        machine.dead.touch(since, at)
        or machine.no_bus.touch(at - FOUND_AGAIN, at)
        or _going_down(facts, node, since, at)
    )


def _going_down(facts: Facts, node: str, begin: float, end: float) -> bool:
    """Before ``end``: the shutdown that begins then does not count."""
    return any(one.node == node and one.at < end and one.until >= begin for one in facts.shutdowns)


def _let_go_by_force(machine: Machine, begin: float, end: float) -> bool:
    """The holder was killed while no agent lived who could replace it."""
    return any(begin <= at <= end and machine.dead.touch(at, at) for at in machine.lost)


def _kept(facts: Facts, shutdown: Shutdown) -> Iterator[Violation]:
    """From the moment the last pod has ended, and for want of that not beyond the deadline."""
    if shutdown.cancelled or not shutdown.locked:
        return
    machine, down = facts.machines[shutdown.node], shutdown.until if shutdown.down is None else shutdown.down
    mine = facts.on(shutdown.node)
    over = facts.deadline(shutdown, shutdown.noticed)
    if not any(life.lived(down) for life in mine):
        ends = [life.ended for life in mine if life.ended is not None and life.ended <= down]
        over = min(over, _free(machine, max([shutdown.noticed, *ends]), down))
    if shutdown.stale or (machine.dead.touch(shutdown.at, down) and _forgets(machine, shutdown)):
        over = NEVER
    if down > over + SOON:
        what = f"{shutdown.node} was held for {down - over:.1f} s longer than its pods needed"
        yield Violation(down, Rule.LOCK_KEPT, what)


def _free(machine: Machine, ended: float, down: float) -> float:
    """When the lock is let go, if its agent lives and the runtime answers."""
    over, before = ended + LINGER, -NEVER
    while before < over < down:
        before = over
        for spans in (machine.dead, machine.no_runtime):
            if spans.touch(ended, over):
                over = max(over, spans.last_end(ended, over) + LINGER + _AGAIN)
    return over


def _forgets(machine: Machine, shutdown: Shutdown) -> bool:
    """A new life of the agent does not know the deadline: the disk was full, or logind could not be asked."""
    return machine.full.touch(shutdown.at, shutdown.until) or machine.no_bus.touch(
        shutdown.at - FOUND_AGAIN, shutdown.until
    )
