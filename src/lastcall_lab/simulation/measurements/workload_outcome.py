"""What became of one workload, from what is known of its pods (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.measurements import leaders
from lastcall_lab.simulation.measurements.serving import has_missed_hook, pod_serving_spans
from lastcall_lab.simulation.outcome import CountStep, OutageSpan, RequestLoss, WorkloadOutcome
from lastcall_lab.simulation.request_losses import EndpointUpdate, FailureSpan, failure_spans
from lastcall_lab.simulation.scenario import ScenarioWorkload, ScenarioWorkloadKind
from lastcall_lab.simulation.time_spans import (
    Curve,
    TimeSpan,
    count_spans,
    countdown_curve,
    spans_where,
    total_length,
)
from lastcall_lab.simulation.volume_writers import WriteAttempt


@dataclass(frozen=True, kw_only=True)
class WorkloadEvidence:
    """Of one workload: the lives of its pods, what clients knew of them, what they have written; ``within`` counts.

    ``up`` is when machines could run pods, one span for each time that one could; ``lost`` are those of ``attempts``
    that were acknowledged and not kept. ``names`` are the pods' by their uids.
    """

    within: TimeSpan
    lives: Sequence[ContainerLife] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    up: Sequence[TimeSpan] = ()
    learned: Sequence[EndpointUpdate] = ()
    attempts: Sequence[WriteAttempt] = ()
    lost: Sequence[WriteAttempt] = ()


def measure_workload(workload: ScenarioWorkload, evidence: WorkloadEvidence) -> WorkloadOutcome:
    """All that is to be told of it."""
    within = evidence.within
    pods = pod_serving_spans(evidence.lives, workload)
    serves = count_spans([span for spans in pods.values() for span in spans], within)
    wanted, led = _wanted_curve(workload, evidence), _led_curve(workload, evidence)
    outages = spans_where((wanted, serves, led), within.end, lambda want, have, lead: want and not (have and lead))
    degraded = spans_where(
        (wanted, serves, led), within.end, lambda want, have, lead: have < want or (want and not lead)
    )
    losses, absences = _request_losses(workload, evidence), _pod_absences(workload, evidence)
    attempts, ended = _attempts_within(evidence.attempts, within), _ended_lives(evidence)
    return WorkloadOutcome(
        name=workload.name,
        namespace=workload.namespace,
        kind=workload.kind,
        wanted=wanted[-1][1],
        serving=serves[-1][1],
        down=round_to_milliseconds(total_length(outages)),
        degraded=round_to_milliseconds(total_length(degraded)),
        longest_outage=round_to_milliseconds(_longest_seconds([outages, *absences])),
        pod_down=round_to_milliseconds(max(map(total_length, absences), default=0.0)),
        requests=round_to_milliseconds(workload.requests * (within.end - within.begin)),
        requests_lost=round_to_milliseconds(
            workload.requests * sum(one.part * (one.end - one.begin) for one in losses)
        ),
        writes=sum(one.acknowledged for one in attempts),
        writes_refused=sum(not one.acknowledged for one in attempts),
        writes_lost=len(_attempts_within(evidence.lost, within)),
        killed=sum(life.kill is not None for life in ended),
        power_cut=sum(life.cut for life in ended),
        unconfirmed=sum(_was_signalled(life) and life.ended is None for life in evidence.lives),
        hooks_missed=sum(has_missed_hook(life, workload) for life in ended),
        restarts=_count_restarts(evidence),
        serving_steps=_count_steps(serves, within),
        wanted_steps=_count_steps(wanted, within),
        outages=tuple(
            OutageSpan(begin=_since_start(one.begin, within), end=_since_start(one.end, within)) for one in outages
        ),
        losses=tuple(
            RequestLoss(
                begin=_since_start(one.begin, within), end=_since_start(one.end, within), part=round(one.part, 6)
            )
            for one in losses
        ),
    )


def round_to_milliseconds(seconds: float) -> float:
    """To milliseconds."""
    return round(seconds, 3)


def _since_start(at: float, within: TimeSpan) -> float:
    return round_to_milliseconds(at - within.begin)


def _count_steps(curve: Curve, within: TimeSpan) -> tuple[CountStep, ...]:
    return tuple(CountStep(at=_since_start(at, within), count=count) for at, count in curve)


def _wanted_curve(workload: ScenarioWorkload, evidence: WorkloadEvidence) -> Curve:
    """The pods of a Job end when their work is done, unless they are killed."""
    if workload.kind is ScenarioWorkloadKind.DAEMON_SET:
        return count_spans(evidence.up, evidence.within)
    if workload.kind is ScenarioWorkloadKind.JOB:
        done = [one.ended for one in evidence.lives if one.ended is not None and one.kill is None and not one.cut]
        return countdown_curve(workload.replicas, sorted(done)[: workload.replicas], evidence.within)
    return countdown_curve(workload.replicas, (), evidence.within)


def _led_curve(workload: ScenarioWorkload, evidence: WorkloadEvidence) -> Curve:
    """1 while somebody leads; always, if nobody needs to."""
    if workload.leader is None:
        return count_spans([evidence.within], evidence.within)
    found = [leaders.to_candidate(life, workload) for life in evidence.lives]
    return count_spans(leaders.led_spans(found, workload.leader), evidence.within)


def _pod_absences(workload: ScenarioWorkload, evidence: WorkloadEvidence) -> Sequence[Sequence[TimeSpan]]:
    """When each pod of a StatefulSet did not serve: each is known by its name, and no other pod serves in its place."""
    if workload.kind is not ScenarioWorkloadKind.STATEFUL_SET:
        return ()
    of: dict[str, list[TimeSpan]] = {f"{workload.name}-{number}": [] for number in range(workload.replicas)}
    for uid, spans in pod_serving_spans(evidence.lives, workload).items():
        if (name := evidence.names.get(uid, "")) in of:
            of[name] += spans
    within = evidence.within
    return [spans_where([count_spans(spans, within)], within.end, lambda have: not have) for spans in of.values()]


def _longest_seconds(spans: Sequence[Sequence[TimeSpan]]) -> float:
    return max((one.end - one.begin for some in spans for one in some), default=0.0)


def _request_losses(workload: ScenarioWorkload, evidence: WorkloadEvidence) -> Sequence[FailureSpan]:
    if not workload.requests:
        return ()
    return failure_spans(evidence.learned, pod_serving_spans(evidence.lives, workload), evidence.within)


def _attempts_within(attempts: Sequence[WriteAttempt], within: TimeSpan) -> Sequence[WriteAttempt]:
    return [one for one in attempts if within.begin <= one.at <= within.end]


def _ended_lives(evidence: WorkloadEvidence) -> Sequence[ContainerLife]:
    begin, end = evidence.within
    return [life for life in evidence.lives if life.ended is not None and begin <= life.ended <= end]


def _count_restarts(evidence: WorkloadEvidence) -> int:
    seen: set[tuple[str, str]] = set()
    found = 0
    for life in evidence.lives:
        found += (life.uid, life.container) in seen and evidence.within.begin <= life.began
        seen.add((life.uid, life.container))
    return found


def _was_signalled(life: ContainerLife) -> bool:
    return life.term is not None or life.kill is not None
