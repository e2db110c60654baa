"""What becomes of a machine that goes down: its phases, what is started on it, and its lock (pure)."""

from collections.abc import Iterator

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.rules.base import NEVER, SOON, Invariant, InvariantViolation
from lastcall_lab.simulation.rules.run_facts import (
    ARMED_WITHIN,
    FOUND_AGAIN,
    MachineHistory,
    RunFacts,
    ShutdownHistory,
)
from lastcall_lab.simulation.rules.termination_reasons import TerminationReasons

LINGER = 5.0
"""Seconds after the last pod's end in which the lock must be released: its last status is waited for."""

FOUND_WITHIN = 3.5
"""Seconds within which an agent has found what a kubelet has started that somebody had started: it lists every two."""

_JUST = 1e-6
"""Before the button: what dies of the power's going dies later than that."""

_AGAIN = 1.0
"""Seconds in which an agent goes on that lives again, or whose runtime answers again."""


def find_violations(facts: RunFacts) -> Iterator[InvariantViolation]:
    """Of each machine, and each of its shutdowns."""
    for node in facts.powers:
        yield from _judge_agents(facts, node)
    if facts.run.plan is None:
        return
    reasons = TerminationReasons(facts)
    for shutdown in facts.shutdowns:
        if not facts.run.beside:
            yield from _judge_starts(facts, shutdown)
        if not shutdown.may_be_stale:
            yield from _judge_order(facts, reasons, shutdown)
        if facts.run.plan:
            yield from _judge_lock(facts, shutdown)
            yield from _judge_release(facts, shutdown)


def _judge_agents(facts: RunFacts, node: str) -> Iterator[InvariantViolation]:
    alive = False
    for one in facts.powers[node]:
        if one.what == "agent started":
            if alive:
                yield InvariantViolation(
                    one.at, Invariant.ONE_AGENT, f"another agent started on {node} while one lived"
                )
            alive = True
        elif one.what in ("agent killed", "off"):
            alive = False


def _judge_starts(facts: RunFacts, shutdown: ShutdownHistory) -> Iterator[InvariantViolation]:
    """By the order to start: what had been ordered before may still come to run."""
    since = shutdown.noticed + SOON
    for one in facts.orders.get(shutdown.node, ()):
        if since < one.at < shutdown.until:
            what = f"{facts.run.pod_name(one.uid)} was started on {one.node}, which had been going down"
            yield InvariantViolation(one.at, Invariant.NO_START, f"{what} for {one.at - shutdown.at:.1f} s")


# -- phases ------------------------------------------------------------------------------------------------------------


def _judge_order(
    facts: RunFacts, reasons: TerminationReasons, shutdown: ShutdownHistory
) -> Iterator[InvariantViolation]:
    """Who is to end by the API server's word is ended by the kubelet, whenever its turn would be.

    A first list that is older than a pod is such a word: the kubelet takes the pod for one that is gone.
    """
    ran = [
        one
        for one in facts.lives_on(shutdown.node)
        if one.is_alive_at(shutdown.at) and not _is_wanted(facts, one, shutdown)
    ]
    for life in ran:
        at = life.first_signal_since(shutdown.at)
        if at is None or at > shutdown.until:
            continue
        for other in ran:
            if (
                facts.phase_of_pod(other.uid) < facts.phase_of_pod(life.uid)
                and other.is_alive_at(at)
                and _had_time(facts, reasons, shutdown, other, at)
            ):
                what = f"{facts.run.pod_name(life.uid)} was ended on {life.node} while {facts.run.pod_name(other.uid)} still had time"
                yield InvariantViolation(at, Invariant.ORDER, what)
                break


def _is_wanted(facts: RunFacts, life: ContainerLife, shutdown: ShutdownHistory) -> bool:
    ended = shutdown.until if life.ended is None else min(shutdown.until, life.ended)
    asked = any(one.at < ended for one in facts.requests_of_others(life, shutdown))
    return asked or _is_missed_by_old_list(facts, life, ended)


def _is_missed_by_old_list(facts: RunFacts, life: ContainerLife, ended: float) -> bool:
    """Whether its kubelet has begun with a list that is older than the first order to start it."""
    ordered = min((one.at for one in facts.orders.get(life.node, ()) if one.uid == life.uid), default=life.began)
    return any(one.who == life.node and one.what < ordered <= one.at <= ended for one in facts.run.old_lists)


def _had_time(
    facts: RunFacts, reasons: TerminationReasons, shutdown: ShutdownHistory, life: ContainerLife, at: float
) -> bool:
    start, index = reasons.phase_start(shutdown, facts.phase_of_pod(life.uid)), facts.phase_of_pod(life.uid)
    if start is None:
        return True
    if facts.machines[shutdown.node].is_troubled(shutdown.at, at):
        start = shutdown.at
    return at < reasons.phase_end(shutdown, index, start) - SOON


# -- the lock ----------------------------------------------------------------------------------------------------------


def _judge_lock(facts: RunFacts, shutdown: ShutdownHistory) -> Iterator[InvariantViolation]:
    """With pods on it, a machine is held until they have ended, or their time has."""
    machine, node = facts.machines[shutdown.node], shutdown.node
    if not shutdown.locked:
        if any(life.is_alive_at(shutdown.at) for life in facts.lives_on(node)) and _is_lock_due(
            facts, machine, node, shutdown.at - _JUST
        ):
            yield InvariantViolation(shutdown.at, Invariant.LOCK_LOST, f"{node} went down without a lock")
        return
    down = shutdown.down
    if down is None or down >= _held_until(facts, shutdown) - SOON:
        return
    known = max(shutdown.noticed, down - FOUND_WITHIN) if facts.run.beside else shutdown.noticed
    alive = [life for life in facts.lives_on(node) if life.is_alive_at(down) and life.began <= known]
    if alive and not _was_lock_killed(machine, shutdown.at, down):
        names = ", ".join(sorted({facts.run.pod_name(life.uid) for life in alive}))
        yield InvariantViolation(down, Invariant.LOCK_LOST, f"{node} went down although there was time for {names}")


def _held_until(facts: RunFacts, shutdown: ShutdownHistory) -> float:
    """Whoever is dead cannot tell the holder that a shutdown was called off: its deadline stands."""
    own = min(facts.lock_deadline(shutdown, shutdown.noticed), shutdown.at + shutdown.granted)
    return own if shutdown.taken_for is None else min(own, _held_until(facts, shutdown.taken_for))


def _is_lock_due(facts: RunFacts, machine: MachineHistory, node: str, at: float) -> bool:
    """Whether somebody must hold a lock: since a moment at which the agent must have had one, nobody has lost it.

    Neither an agent's death nor a bus that is lost takes a lock away.
    """
    moments = [at, *(one.begin - _JUST for one in (*machine.dead, *machine.no_bus) if one.begin <= at)]
    return any(
        _is_agent_settled(facts, machine, node, one) and not _is_lock_gone(facts, machine, node, one, at)
        for one in moments
    )


def _is_lock_gone(facts: RunFacts, machine: MachineHistory, node: str, begin: float, end: float) -> bool:
    """It was let go, or has got the deadline of a shutdown that was called off, and nobody was there to take another."""
    off = any(one.what == "off" and begin <= one.at <= end for one in facts.powers[node])
    return off or _was_lock_killed(machine, begin, end) or _is_going_down(facts, node, begin, end)


def _is_agent_settled(facts: RunFacts, machine: MachineHistory, node: str, at: float) -> bool:
    """The agent has lived for long enough to hold a lock."""
    since = at - ARMED_WITHIN
    return not (
        machine.dead.overlaps(since, at)
        or machine.no_bus.overlaps(at - FOUND_AGAIN, at)
        or _is_going_down(facts, node, since, at)
    )


def _is_going_down(facts: RunFacts, node: str, begin: float, end: float) -> bool:
    """Before ``end``: the shutdown that begins then does not count."""
    return any(one.node == node and one.at < end and one.until >= begin for one in facts.shutdowns)


def _was_lock_killed(machine: MachineHistory, begin: float, end: float) -> bool:
    """The holder was killed while no agent lived who could replace it."""
    return any(begin <= at <= end and machine.dead.overlaps(at, at) for at in machine.lost)


def _judge_release(facts: RunFacts, shutdown: ShutdownHistory) -> Iterator[InvariantViolation]:
    """From the moment the last pod has ended, and for want of that not beyond the deadline."""
    if shutdown.cancelled or not shutdown.locked:
        return
    machine, down = facts.machines[shutdown.node], shutdown.until if shutdown.down is None else shutdown.down
    mine = facts.lives_on(shutdown.node)
    over = facts.lock_deadline(shutdown, shutdown.noticed)
    if not any(life.is_alive_at(down) for life in mine):
        ends = [life.ended for life in mine if life.ended is not None and life.ended <= down]
        over = min(over, _lock_release_time(machine, max([shutdown.noticed, *ends]), down))
    if shutdown.may_be_stale or (
        machine.dead.overlaps(shutdown.at, down) and _is_deadline_forgotten(machine, shutdown)
    ):
        over = NEVER
    if down > over + SOON:
        what = f"{shutdown.node} was held for {down - over:.1f} s longer than its pods needed"
        yield InvariantViolation(down, Invariant.LOCK_KEPT, what)


def _lock_release_time(machine: MachineHistory, ended: float, down: float) -> float:
    """When the lock is let go, if its agent lives and the runtime answers."""
    over, before = ended + LINGER, -NEVER
    while before < over < down:
        before = over
        for spans in (machine.dead, machine.no_runtime):
            if spans.overlaps(ended, over):
                over = max(over, spans.last_end(ended, over) + LINGER + _AGAIN)
    return over


def _is_deadline_forgotten(machine: MachineHistory, shutdown: ShutdownHistory) -> bool:
    """A new life of the agent does not know the deadline: the disk was full, or logind could not be asked."""
    return machine.full.overlaps(shutdown.at, shutdown.until) or machine.no_bus.overlaps(
        shutdown.at - FOUND_AGAIN, shutdown.until
    )
