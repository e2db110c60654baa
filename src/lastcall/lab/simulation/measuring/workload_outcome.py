"""What became of one workload, from what is known of its pods (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.measuring import leaders
from lastcall.lab.simulation.measuring.serving import hook_missed, pods_serving
from lastcall.lab.simulation.outcome import Loss, Span, Step, WorkloadOutcome
from lastcall.lab.simulation.scenario import Kind, Workload
from lastcall.lab.simulation.spans import Between, Curve, counted, falling, length, when
from lastcall.lab.simulation.traffic import Failing, Learned, failing
from lastcall.lab.simulation.writers import Attempt


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Of one workload: the lives of its pods, what clients knew of them, what they have written; ``within`` counts.

    ``up`` is when machines could run pods, one span for each time that one could; ``lost`` are those of ``attempts``
    that were acknowledged and not kept. ``names`` are the pods' by their uids.
    """

    within: Between
    lives: Sequence[Life] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    up: Sequence[Between] = ()
    learned: Sequence[Learned] = ()
    attempts: Sequence[Attempt] = ()
    lost: Sequence[Attempt] = ()


def measured(workload: Workload, evidence: Evidence) -> WorkloadOutcome:
    """All that is to be told of it."""
    within = evidence.within
    pods = pods_serving(evidence.lives, workload)
    serves = counted([span for spans in pods.values() for span in spans], within)
    wanted, led = _wanted(workload, evidence), _led(workload, evidence)
    outages = when((wanted, serves, led), within.end, lambda want, have, lead: want and not (have and lead))
    degraded = when((wanted, serves, led), within.end, lambda want, have, lead: have < want or (want and not lead))
    losses, absences = _losses(workload, evidence), _absences(workload, evidence)
    attempts, ended = _in_time(evidence.attempts, within), _ended(evidence)
    return WorkloadOutcome(
        name=workload.name,
        namespace=workload.namespace,
        kind=workload.kind,
        wanted=wanted[-1][1],
        serving=serves[-1][1],
        down=rounded(length(outages)),
        degraded=rounded(length(degraded)),
        longest_outage=rounded(_longest([outages, *absences])),
        pod_down=rounded(max(map(length, absences), default=0.0)),
        requests=rounded(workload.requests * (within.end - within.begin)),
        requests_lost=rounded(workload.requests * sum(one.part * (one.end - one.begin) for one in losses)),
        writes=sum(one.acknowledged for one in attempts),
        writes_refused=sum(not one.acknowledged for one in attempts),
        writes_lost=len(_in_time(evidence.lost, within)),
        killed=sum(life.kill is not None for life in ended),
        power_cut=sum(life.cut for life in ended),
        unconfirmed=sum(_signalled(life) and life.ended is None for life in evidence.lives),
        hooks_missed=sum(hook_missed(life, workload) for life in ended),
        restarts=_restarts(evidence),
        serving_steps=_steps(serves, within),
        wanted_steps=_steps(wanted, within),
        outages=tuple(Span(begin=_since(one.begin, within), end=_since(one.end, within)) for one in outages),
        losses=tuple(
            Loss(begin=_since(one.begin, within), end=_since(one.end, within), part=round(one.part, 6))
            for one in losses
        ),
    )


def rounded(seconds: float) -> float:
    """To milliseconds."""
    return round(seconds, 3)


def _since(at: float, within: Between) -> float:
    return rounded(at - within.begin)


def _steps(curve: Curve, within: Between) -> tuple[Step, ...]:
    return tuple(Step(at=_since(at, within), count=count) for at, count in curve)


def _wanted(workload: Workload, evidence: Evidence) -> Curve:
    """The pods of a Job end when their work is done, unless they are killed."""
    if workload.kind is Kind.DAEMON_SET:
        return counted(evidence.up, evidence.within)
    if workload.kind is Kind.JOB:
        done = [one.ended for one in evidence.lives if one.ended is not None and one.kill is None and not one.cut]
        return falling(workload.replicas, sorted(done)[: workload.replicas], evidence.within)
    return falling(workload.replicas, (), evidence.within)


def _led(workload: Workload, evidence: Evidence) -> Curve:
    """1 while somebody leads; always, if nobody needs to."""
    if workload.leader is None:
        return counted([evidence.within], evidence.within)
    found = [leaders.candidate(life, workload) for life in evidence.lives]
    return counted(leaders.led(found, workload.leader), evidence.within)


def _absences(workload: Workload, evidence: Evidence) -> Sequence[Sequence[Between]]:
    """When each pod of a StatefulSet did not serve: each is known by its name, and no other pod serves in its place."""
    if workload.kind is not Kind.STATEFUL_SET:
        return ()
    of: dict[str, list[Between]] = {f"{workload.name}-{number}": [] for number in range(workload.replicas)}
    for uid, spans in pods_serving(evidence.lives, workload).items():
        if (name := evidence.names.get(uid, "")) in of:
            of[name] += spans
    within = evidence.within
    return [when([counted(spans, within)], within.end, lambda have: not have) for spans in of.values()]


def _longest(spans: Sequence[Sequence[Between]]) -> float:
    return max((one.end - one.begin for some in spans for one in some), default=0.0)


def _losses(workload: Workload, evidence: Evidence) -> Sequence[Failing]:
    if not workload.requests:
        return ()
    return failing(evidence.learned, pods_serving(evidence.lives, workload), evidence.within)


def _in_time(attempts: Sequence[Attempt], within: Between) -> Sequence[Attempt]:
    return [one for one in attempts if within.begin <= one.at <= within.end]


def _ended(evidence: Evidence) -> Sequence[Life]:
    begin, end = evidence.within
    return [life for life in evidence.lives if life.ended is not None and begin <= life.ended <= end]


def _restarts(evidence: Evidence) -> int:
    seen: set[tuple[str, str]] = set()
    found = 0
    for life in evidence.lives:
        found += (life.uid, life.container) in seen and evidence.within.begin <= life.began
        seen.add((life.uid, life.container))
    return found


def _signalled(life: Life) -> bool:
    return life.term is not None or life.kill is not None
