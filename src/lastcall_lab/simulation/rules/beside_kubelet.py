"""An agent beside a kubelet that is a program of its own: what it stops, writes and takes back (pure)."""

from collections.abc import Iterator, Sequence

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.rules.arithmetic import share_seconds
from lastcall_lab.simulation.rules.base import NEVER, SOON, Invariant, InvariantViolation
from lastcall_lab.simulation.rules.run_facts import (
    FOUND_AGAIN,
    MachineHistory,
    RunFacts,
    ShutdownHistory,
    TroubleSpans,
)
from lastcall_lab.simulation.time_spans import TimeSpan
from lastcall_lab.simulation.truth import NodeObjectState

STOPPED_WITHIN = 0.6
"""Seconds from the notice of a shutdown to the kubelet's end: a timer, a job of systemd and the kubelet's own end."""

LOOKED_AFTER = 0.7
"""Seconds within which a kubelet that somebody has started is noticed."""

BACK_WITHIN = 5.0
"""Seconds from the notice that a shutdown is called off to the kubelet's start."""

TIMER_AFTER = 60.0
"""Seconds from a shutdown's deadline to the moment at which systemd itself starts the kubelet."""

RESTARTED_AFTER = 10.0
"""RestartSec of the kubelet's unit."""

BOOTED_WITHIN = 31.0
"""The longest boot of a scenario."""

ANNOUNCED_WITHIN = 2.0
"""Seconds from the notice of a shutdown to its announcement on the Node."""

UNDONE_WITHIN = 60.0
"""Seconds in which everything is taken back, where nothing is in the way."""

CHECKED_EVERY = 12.0
"""Seconds within which what a kubelet has overwritten stands again."""


def find_violations(facts: RunFacts) -> Iterator[InvariantViolation]:
    """Of each machine, each shutdown and each Job."""
    if not facts.run.beside:
        return
    api = _api_troubles(facts)
    for node, machine in facts.machines.items():
        yield from _judge_kubelet(facts, node, machine)
        yield from _judge_cordons(facts, node)
        yield from _judge_end(facts, node, machine, api[node])
    for shutdown in facts.shutdowns:
        yield from _judge_starts(facts, shutdown)
        yield from _judge_announcement(facts, shutdown, api[shutdown.node])
        yield from _judge_traffic(facts, shutdown, api[shutdown.node])
    yield from _judge_jobs(facts, api)


def _api_troubles(facts: RunFacts) -> dict[str, TroubleSpans]:
    """When a program of each machine may not have reached the API server, or only with a fault."""
    found, since = [], None
    for one in facts.run.clear_network:
        if not one.what and since is None:
            since = one.at
        elif one.what and since is not None:
            found.append(TimeSpan(since, one.at))
            since = None
    if since is not None:
        found.append(TimeSpan(since, NEVER))
    return {node: TroubleSpans([*found, *machine.cut_off]) for node, machine in facts.machines.items()}


# -- the kubelet -------------------------------------------------------------------------------------------------------


def _judge_kubelet(facts: RunFacts, node: str, machine: MachineHistory) -> Iterator[InvariantViolation]:
    """Whenever it does not run on a machine that is on, there is a reason, and an end of it."""
    shutdowns = [one for one in facts.shutdowns if one.node == node]
    for gap in _gaps(facts, node, machine):
        due = max(
            gap.begin + SOON,
            *(one + RESTARTED_AFTER + SOON for one in machine.kubelet_deaths if one == gap.begin),
            *(one.at + BOOTED_WITHIN for one in facts.powers[node] if one.what == "on" and one.at <= gap.begin),
        )
        for one in shutdowns:
            if one.at <= due and gap.begin <= max(one.until, one.noticed_off if one.cancelled else 0.0) + SOON:
                due = max(due, _due_after(facts, one, max(gap.begin, one.at)))
        if min(gap.end, facts.run.end) > due + SOON:
            what = f"the kubelet of {node} did not run from {gap.begin:.1f} s on, and was not started again in time"
            yield InvariantViolation(due, Invariant.KUBELET_BACK, what)


def _gaps(facts: RunFacts, node: str, machine: MachineHistory) -> Iterator[TimeSpan]:
    """While it was on, and did not hang."""
    since: float | None = None
    for one in facts.powers[node]:
        if one.what in ("on", "kubelet stopped", "kubelet killed"):
            since = one.at
        elif one.what in ("kubelet started", "off", "hang") and since is not None:
            yield TimeSpan(since, one.at)
            since = None
    if since is not None:
        yield TimeSpan(since, NEVER)


def _due_after(facts: RunFacts, shutdown: ShutdownHistory, stopped: float) -> float:
    """When a kubelet is back that was stopped then: by the agent, which hears of the end, or else by systemd's timer."""
    if not shutdown.cancelled:
        return shutdown.until
    timer = max(stopped, facts.lock_deadline(shutdown, max(shutdown.noticed, stopped))) + TIMER_AFTER
    return min(shutdown.noticed_off, timer) + BACK_WITHIN


def _judge_starts(facts: RunFacts, shutdown: ShutdownHistory) -> Iterator[InvariantViolation]:
    """A kubelet starts pods until it is stopped; one that somebody starts in the middle is stopped again."""
    machine = facts.machines[shutdown.node]
    for one in facts.orders.get(shutdown.node, ()):
        if not shutdown.at < one.at < shutdown.until:
            continue
        life = next((life for life in machine.kubelets if life.begin <= one.at <= life.end), None)
        begun = life.begin if life else shutdown.at
        late = begun > shutdown.at
        takes = STOPPED_WITHIN + (LOOKED_AFTER if late else 0.0)
        if one.at > _stop_due(facts, machine, max(begun, shutdown.at), takes):
            what = f"{facts.run.pod_name(one.uid)} was started on {one.node}, which had been going down"
            yield InvariantViolation(one.at, Invariant.NO_START, f"{what} for {one.at - shutdown.at:.1f} s")


def _stop_due(facts: RunFacts, machine: MachineHistory, since: float, takes: float) -> float:
    """When a kubelet must have been stopped that ran ``since``.

    An agent that dies meanwhile, or cannot reach systemd, begins with that when it lives and has found the bus again.
    """
    while since < NEVER:
        due = facts.noticed_at(machine, since) + takes
        ends = [one.end for one in (*machine.dead, *machine.no_bus) if one.begin <= due and since < one.end]
        if not ends or due >= NEVER:
            return due
        since = max(ends)
    return NEVER


# -- the Node ----------------------------------------------------------------------------------------------------------


def _states(facts: RunFacts, node: str) -> list[tuple[float, NodeObjectState]]:
    return [(one.at, one.what) for one in facts.run.node_objects if one.who == node]


def _state_at(facts: RunFacts, node: str, at: float) -> NodeObjectState | None:
    return next((state for since, state in reversed(_states(facts, node)) if since <= at), None)


def _wants_cordon(facts: RunFacts, node: str, at: float) -> bool:
    return next((one.what for one in reversed(facts.run.cordons) if one.who == node and one.at <= at), False)


def _is_taken_back(facts: RunFacts, node: str, at: float) -> bool:
    """Whether an administrator uncordons it at this time; another one may cordon it at once again."""
    return any(one.who == node and not one.what and abs(one.at - at) <= SOON for one in facts.run.cordons)


def _judge_cordons(facts: RunFacts, node: str) -> Iterator[InvariantViolation]:
    """What an administrator has cordoned stays so until an administrator takes that back."""
    for at, state in _states(facts, node):
        if state.unschedulable or _is_taken_back(facts, node, at):
            continue
        if _wants_cordon(facts, node, at - SOON) and _wants_cordon(facts, node, at + SOON):
            yield InvariantViolation(
                at, Invariant.OTHERS, f"{node} was uncordoned, which an administrator had cordoned"
            )


def _judge_end(facts: RunFacts, node: str, machine: MachineHistory, api: TroubleSpans) -> Iterator[InvariantViolation]:
    """At the end nothing of a shutdown is left, if there has been time for that."""
    end, state = facts.run.end, _state_at(facts, node, facts.run.end)
    since = end - UNDONE_WITHIN
    quiet = not (api.overlaps(since, end) or machine.is_troubled(since, end) or machine.no_bus.overlaps(since, end))
    busy = any(one.node == node and one.until > since for one in facts.shutdowns)
    if state is None or busy or not quiet or end >= facts.run.set_back:
        return
    left = [*(["the agent's mark"] if state.marked else []), *state.conditions]
    if left:
        yield InvariantViolation(end, Invariant.UNDONE, f"{node} still has {', '.join(left)}")
    if state.unschedulable and not _wants_cordon(facts, node, end):
        yield InvariantViolation(end, Invariant.UNDONE, f"{node} is cordoned, and no administrator wants that")


def _judge_announcement(facts: RunFacts, shutdown: ShutdownHistory, api: TroubleSpans) -> Iterator[InvariantViolation]:
    """Soon after the signal, and again when nothing holds the machine any more, the Node says what is so."""
    machine = facts.machines[shutdown.node]
    first = shutdown.noticed + ANNOUNCED_WITHIN
    last = shutdown.until if shutdown.down is None else shutdown.down
    for at in (first, last):
        since = min(shutdown.at, at) - ANNOUNCED_WITHIN if at == first else at - CHECKED_EVERY
        new = any(life.begin <= at and life.end >= since and life.begin > shutdown.at for life in machine.kubelets)
        if not first <= at <= last or new or api.overlaps(since, at) or shutdown.may_be_stale:
            continue
        if any(one.who == shutdown.node and since <= one.at <= at for one in facts.run.cordons):
            continue
        if machine.is_troubled(since, at) or machine.no_bus.overlaps(since - FOUND_AGAIN, at):
            continue
        state = _state_at(facts, shutdown.node, at)
        if state and not (state.unschedulable and state.is_not_ready and len(state.conditions) == 2):
            what = f"{shutdown.node} does not say, {at - shutdown.at:.1f} s after the button, that it goes down"
            yield InvariantViolation(at, Invariant.UNDONE, what)


# -- pods --------------------------------------------------------------------------------------------------------------


def _judge_traffic(facts: RunFacts, shutdown: ShutdownHistory, api: TroubleSpans) -> Iterator[InvariantViolation]:
    """Until the wait is over a pod gets no SIGTERM that Services still send traffic to.

    But by a kubelet that somebody has started in the middle: it ends what is being deleted, until it is stopped again.
    """
    machine = facts.machines[shutdown.node]
    for life in facts.lives_on(shutdown.node):
        at = life.term
        if at is None or not shutdown.at <= at <= shutdown.until or not life.is_alive_at(shutdown.at):
            continue
        began = _phase_begin(facts, shutdown, life)
        if not _gets_traffic(facts, life.uid, at) or at >= began + _longest_wait(facts, shutdown, life, began) - SOON:
            continue
        if api.overlaps(shutdown.at - FOUND_AGAIN, at) or machine.is_troubled(shutdown.at, at):
            continue
        is_deleted = any(one.at <= at for one in facts.asked.get(life.uid, ()))
        if is_deleted and any(shutdown.at < one.begin <= at <= one.end + SOON for one in machine.kubelets):
            continue
        if not any(one.at <= at for one in facts.requests_of_others(life, shutdown)):
            what = f"{facts.run.pod_name(life.uid)} got SIGTERM on {life.node} while Services sent it traffic"
            yield InvariantViolation(at, Invariant.TRAFFIC, what)


def _gets_traffic(facts: RunFacts, uid: str, at: float) -> bool:
    return next((one.what for one in reversed(facts.run.endpoints) if one.who == uid and one.at <= at), False)


def _phase_begin(facts: RunFacts, shutdown: ShutdownHistory, life: ContainerLife) -> float:
    """Not later than this: when the pods of the phases below have ended."""
    index = facts.phase_of_pod(life.uid)
    below = [
        one.ended
        for one in facts.lives_on(shutdown.node)
        if one.ended is not None and one.is_alive_at(shutdown.at) and facts.phase_of_pod(one.uid) < index
    ]
    return max([shutdown.at, *(ended for ended in below if ended <= (life.term or NEVER))])


def _longest_wait(facts: RunFacts, shutdown: ShutdownHistory, life: ContainerLife, began: float) -> float:
    """The limit, a quarter of the phase, and what leaves the container two seconds until SIGKILL."""
    index = facts.phase_of_pod(life.uid)
    coming = [(one.priority, float(one.seconds)) for one in (facts.run.plan or ())[index:]]
    phase = share_seconds(coming, facts.lock_deadline(shutdown, shutdown.at) - began)[0]
    own = min(phase, facts.run.grace_seconds(life.uid))
    return max(0.0, min(facts.run.traffic, phase / 4, own - 2.5))


def _judge_jobs(facts: RunFacts, api: dict[str, TroubleSpans]) -> Iterator[InvariantViolation]:
    """Only of Jobs all of whose pods ended by themselves or in shutdowns without trouble."""
    for one in facts.run.job_failures:
        lives = [life for life in facts.lives if _is_of_job(facts, life.uid, one.who)]
        over = [life for life in lives if life.ended is not None and life.ended <= one.at]
        if _ignores_disruption(facts, over) and all(_ended_without_trouble(facts, life, api) for life in over):
            what = f"the Job {one.what.name} counts {one.what.failed} failed pods"
            yield InvariantViolation(one.at, Invariant.JOB, what)


def _is_of_job(facts: RunFacts, uid: str, job: str) -> bool:
    return any(owner.uid == job for owner in facts.run.pods[uid].metadata.owner_references or ())


def _ignores_disruption(facts: RunFacts, lives: Sequence[ContainerLife]) -> bool:
    """The label says so, where a scenario has such a Job."""
    return any("ignores-disruption" in (facts.run.pods[life.uid].metadata.labels or {}) for life in lives)


def _ended_without_trouble(facts: RunFacts, life: ContainerLife, api: dict[str, TroubleSpans]) -> bool:
    if life.cut or life.ended is None:
        return False
    if life.term is None and life.kill is None:
        return True
    for one in facts.shutdowns:
        if one.node == life.node and one.at <= life.ended <= one.until:
            machine, until = facts.machines[life.node], max(one.until, life.ended) + BOOTED_WITHIN
            return not (
                one.may_be_stale
                or one.cancelled
                or machine.is_troubled(one.at, life.ended)
                or machine.no_bus.overlaps(one.at - FOUND_AGAIN, life.ended)
                or api[life.node].overlaps(one.at - FOUND_AGAIN, until)
            )
    return False
