"""That no pod gets more time than it asks for, or than its phase has: later phases would pay for it (pure).

This is lastcall's promise alone: where a kubelet ends the pods, one that ignores SIGTERM may outlive its phase.
"""

from collections.abc import Iterator

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.rules.arithmetic import AFTER_TERM, shares
from lastcall.lab.simulation.rules.base import MARGIN, SOON, Rule, Violation
from lastcall.lab.simulation.rules.facts import Facts, Shutdown


def violations(facts: Facts) -> Iterator[Violation]:
    """Of each shutdown that an agent carries out without trouble."""
    if not facts.run.plan or not facts.run.bounded:
        return
    for shutdown in facts.shutdowns:
        if not (shutdown.stale or shutdown.cancelled or shutdown.noticed > shutdown.at):
            yield from _judge(facts, shutdown)


def _judge(facts: Facts, shutdown: Shutdown) -> Iterator[Violation]:
    machine = facts.machines[shutdown.node]
    starts = _starts(facts, shutdown)
    for life in facts.on(shutdown.node):
        index = facts.phase(life.uid)
        began = life.reached(shutdown.at)
        if began is None or index not in starts or not life.lived(shutdown.at):
            continue
        start = starts[index]
        phase = start + max(_most(facts, shutdown, index, start), MARGIN)
        latest = min(phase, began + facts.run.grace(life.uid) + AFTER_TERM) + SOON
        outlived = shutdown.until > latest and (life.ended is None or life.ended > latest)
        if outlived and not machine.troubled(shutdown.at, latest):
            what = f"{facts.run.name(life.uid)} on {life.node} still ran when its time was over"
            yield Violation(latest, Rule.OVERRUN, f"{what}, {latest - shutdown.at:.1f} s after the button")


def _most(facts: Facts, shutdown: Shutdown, index: int, start: float) -> float:
    """What the phase may take at the most: phases that have no pod leave it their time."""
    busy = {facts.phase(life.uid) for life in facts.on(shutdown.node) if life.lived(start)}
    plan = facts.run.plan or ()
    coming = [
        (one.priority, float(one.seconds)) for at, one in enumerate(plan) if at == index or (at > index and at in busy)
    ]
    return shares(coming, facts.deadline(shutdown, shutdown.at) - start)[0]


def _starts(facts: Facts, shutdown: Shutdown) -> dict[int, float]:
    """When each phase began; pods that were to end anyway do not show it."""
    found: dict[int, float] = {}
    for life in facts.on(shutdown.node):
        at = life.reached(shutdown.at)
        if at is None or at > shutdown.until or not life.lived(shutdown.at) or _asked(facts, life, at):
            continue
        index = facts.phase(life.uid)
        found[index] = min(at, found.get(index, at))
    return found


def _asked(facts: Facts, life: Life, at: float) -> bool:
    return any(one.at <= at for one in facts.asked.get(life.uid, ()))
