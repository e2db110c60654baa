"""Builds the outcome of a rehearsal from its truth."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lastcall.adapters.kube.informer import ObjectKey
from lastcall.model.pods import Pod
from lastcall_lab.simulation.container_lives import ContainerLife, collect_lives
from lastcall_lab.simulation.invariants import find_violations
from lastcall_lab.simulation.measurements.nodes import State, machine_states, up_spans
from lastcall_lab.simulation.measurements.timeline import timeline_lines
from lastcall_lab.simulation.measurements.verdicts import check_expectation
from lastcall_lab.simulation.measurements.workload_outcome import (
    WorkloadEvidence,
    measure_workload,
    round_to_milliseconds,
)
from lastcall_lab.simulation.outcome import (
    FaultCount,
    MachineOutcome,
    MachineSpan,
    RehearsalOutcome,
    ReportedViolation,
    WorkloadOutcome,
)
from lastcall_lab.simulation.rehearsal import Rehearsal, service_key
from lastcall_lab.simulation.scenario import ScenarioWorkload
from lastcall_lab.simulation.time_spans import TimeSpan
from lastcall_lab.simulation.truth import InjectedFault, MachineEvent


def build_outcome(rehearsal: Rehearsal) -> RehearsalOutcome:
    """After ``Rehearsal.run``, within its loop. InvalidInput if something is expected of a workload that is not there."""
    scenario, cluster, run = rehearsal.scenario, rehearsal.cluster, rehearsal.run_record()
    within, orders = TimeSpan(rehearsal.start, run.end), cluster.truth.orders
    found = _lives_by_workload(rehearsal)
    nodes = _machine_states(rehearsal, within)
    ups = {name: up_spans(some) for name, some in nodes.items()}
    workloads = [
        _measure_workload(rehearsal, one, found[key_of(one)], _uptimes_for(one, ups), within)
        for one in scenario.workloads
    ]
    breaches = [
        ReportedViolation(at=round_to_milliseconds(one.at - within.begin), rule=one.rule.value, what=one.what)
        for one in find_violations(run)
    ]
    return RehearsalOutcome(
        scenario=scenario.name,
        description=scenario.description,
        seed=cluster.seed,
        lasts=round_to_milliseconds(within.end - within.begin),
        lines=timeline_lines(
            scenario.timeline,
            run.powers,
            _representative_lives(rehearsal, found),
            breaches,
            within,
            notices=cluster.truth.notices,
        ),
        workloads=tuple(workloads),
        nodes=tuple(_measure_node(name, some, within) for name, some in nodes.items()),
        verdicts=tuple(
            check_expectation(one, workloads, fenced=len({order.hit for order in orders})) for one in scenario.expect
        ),
        violations=tuple(breaches),
        faults=_count_faults(cluster.truth.faults),
    )


def key_of(workload: ScenarioWorkload) -> ObjectKey:
    """Which one it is."""
    return ObjectKey(workload.namespace, workload.name)


def _lives_by_workload(rehearsal: Rehearsal) -> Mapping[ObjectKey, list[ContainerLife]]:
    """Of the pods of each workload."""
    cluster, truth = rehearsal.cluster, rehearsal.cluster.truth
    found: dict[ObjectKey, list[ContainerLife]] = {key_of(one): [] for one in rehearsal.scenario.workloads}
    for life in collect_lives(truth.happenings, truth.powers):
        pod = truth.pods[life.uid]
        if (workload := cluster.workload_of(pod)) and life.container in _main_containers(pod):
            found[key_of(workload)].append(life)
    return found


def _main_containers(pod: Pod) -> Sequence[str]:
    """The containers that run as long as the pod does."""
    sidecars = [one.name for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    return [*sidecars, *(one.name for one in pod.spec.containers)]


def _representative_lives(
    rehearsal: Rehearsal, found: Mapping[ObjectKey, list[ContainerLife]]
) -> Sequence[tuple[str, list[ContainerLife]]]:
    """The lives of each pod's first container stand for the pod."""
    pods = rehearsal.cluster.truth.pods
    return [
        (key.name, [life for life in some if life.container == pods[life.uid].spec.containers[0].name])
        for key, some in found.items()
    ]


def _uptimes_for(workload: ScenarioWorkload, ups: Mapping[str, Sequence[TimeSpan]]) -> Sequence[TimeSpan]:
    return [span for name in workload.nodes or ups for span in ups[name]]


def _machine_states(rehearsal: Rehearsal, within: TimeSpan) -> Mapping[str, Sequence[State]]:
    powers: dict[str, list[MachineEvent]] = {name: [] for name in rehearsal.cluster.machines}
    for one in rehearsal.cluster.truth.powers:
        powers[one.node].append(one)
    return {name: machine_states(some, rehearsal.scenario.boot, within) for name, some in powers.items()}


def _measure_workload(
    rehearsal: Rehearsal,
    workload: ScenarioWorkload,
    found: Sequence[ContainerLife],
    ups: Sequence[TimeSpan],
    within: TimeSpan,
) -> WorkloadOutcome:
    uids = {life.uid for life in found}
    writers = rehearsal.writers
    evidence = WorkloadEvidence(
        within=within,
        lives=found,
        names={uid: rehearsal.cluster.truth.pods[uid].metadata.name for uid in sorted(uids)},
        up=ups,
        learned=rehearsal.clients.learned.get(service_key(workload), ()),
        attempts=[one for one in writers.attempts if one.pod in uids],
        lost=[one for one in writers.lost if one.pod in uids],
    )
    return measure_workload(workload, evidence)


def _measure_node(name: str, found: Sequence[State], within: TimeSpan) -> MachineOutcome:
    def since(at: float) -> float:
        return round_to_milliseconds(at - within.begin)

    spans = [MachineSpan(begin=since(span.begin), end=since(span.end), state=state) for span, state in found]
    return MachineOutcome(name=name, spans=tuple(spans))


def _count_faults(faults: Sequence[InjectedFault]) -> tuple[FaultCount, ...]:
    counts = Counter((one.kind, one.step) for one in faults)
    return tuple(FaultCount(kind=kind, step=step, count=count) for (kind, step), count in sorted(counts.items()))
