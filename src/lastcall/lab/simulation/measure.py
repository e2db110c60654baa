"""What a rehearsal has measured, put together from its truth."""

from collections import Counter
from collections.abc import Mapping, Sequence

from lastcall.adapters.kube.watching import Key
from lastcall.lab.simulation.invariants import judge
from lastcall.lab.simulation.lives import Life, lives
from lastcall.lab.simulation.measuring.nodes import State, states, up
from lastcall.lab.simulation.measuring.timeline import timeline
from lastcall.lab.simulation.measuring.verdicts import verdict
from lastcall.lab.simulation.measuring.workload_outcome import Evidence, measured, rounded
from lastcall.lab.simulation.outcome import Breach, FaultCount, NodeOutcome, NodeSpan, Outcome, WorkloadOutcome
from lastcall.lab.simulation.rehearsal import Rehearsal, service_key
from lastcall.lab.simulation.scenario import Workload
from lastcall.lab.simulation.spans import Between
from lastcall.lab.simulation.truth import Fault, Power
from lastcall.model.pods import Pod


def outcome(rehearsal: Rehearsal) -> Outcome:
    """After ``Rehearsal.run``, within its loop. InvalidInput if something is expected of a workload that is not there."""
    scenario, cluster, run = rehearsal.scenario, rehearsal.cluster, rehearsal.record()
    within, orders = Between(rehearsal.start, run.end), cluster.truth.orders
    found = _lives(rehearsal)
    nodes = _nodes(rehearsal, within)
    ups = {name: up(some) for name, some in nodes.items()}
    workloads = [_workload(rehearsal, one, found[key_of(one)], _ups(one, ups), within) for one in scenario.workloads]
    breaches = [Breach(at=rounded(one.at - within.begin), rule=one.rule.value, what=one.what) for one in judge(run)]
    return Outcome(
        scenario=scenario.name,
        description=scenario.description,
        seed=cluster.seed,
        lasts=rounded(within.end - within.begin),
        lines=timeline(
            scenario.timeline,
            run.powers,
            _one_of_each_pod(rehearsal, found),
            breaches,
            within,
            notices=cluster.truth.notices,
        ),
        workloads=tuple(workloads),
        nodes=tuple(_node(name, some, within) for name, some in nodes.items()),
        verdicts=tuple(verdict(one, workloads, fenced=len({order.hit for order in orders})) for one in scenario.expect),
        violations=tuple(breaches),
        faults=_counted(cluster.truth.faults),
    )


def key_of(workload: Workload) -> Key:
    """Which one it is."""
    return Key(workload.namespace, workload.name)


def _lives(rehearsal: Rehearsal) -> Mapping[Key, list[Life]]:
    """Of the pods of each workload."""
    cluster, truth = rehearsal.cluster, rehearsal.cluster.truth
    found: dict[Key, list[Life]] = {key_of(one): [] for one in rehearsal.scenario.workloads}
    for life in lives(truth.happenings, truth.powers):
        pod = truth.pods[life.uid]
        if (workload := cluster.workload_of(pod)) and life.container in _lasting(pod):
            found[key_of(workload)].append(life)
    return found


def _lasting(pod: Pod) -> Sequence[str]:
    """The containers that run as long as the pod does."""
    sidecars = [one.name for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    return [*sidecars, *(one.name for one in pod.spec.containers)]


def _one_of_each_pod(rehearsal: Rehearsal, found: Mapping[Key, list[Life]]) -> Sequence[tuple[str, list[Life]]]:
    """The lives of each pod's first container stand for the pod."""
    pods = rehearsal.cluster.truth.pods
    return [
        (key.name, [life for life in some if life.container == pods[life.uid].spec.containers[0].name])
        for key, some in found.items()
    ]


def _ups(workload: Workload, ups: Mapping[str, Sequence[Between]]) -> Sequence[Between]:
    return [span for name in workload.nodes or ups for span in ups[name]]


def _nodes(rehearsal: Rehearsal, within: Between) -> Mapping[str, Sequence[State]]:
    powers: dict[str, list[Power]] = {name: [] for name in rehearsal.cluster.machines}
    for one in rehearsal.cluster.truth.powers:
        powers[one.node].append(one)
    return {name: states(some, rehearsal.scenario.boot, within) for name, some in powers.items()}


def _workload(
    rehearsal: Rehearsal,
    workload: Workload,
    found: Sequence[Life],
    ups: Sequence[Between],
    within: Between,
) -> WorkloadOutcome:
    uids = {life.uid for life in found}
    writers = rehearsal.writers
    evidence = Evidence(
        within=within,
        lives=found,
        names={uid: rehearsal.cluster.truth.pods[uid].metadata.name for uid in sorted(uids)},
        up=ups,
        learned=rehearsal.clients.learned.get(service_key(workload), ()),
        attempts=[one for one in writers.attempts if one.pod in uids],
        lost=[one for one in writers.lost if one.pod in uids],
    )
    return measured(workload, evidence)


def _node(name: str, found: Sequence[State], within: Between) -> NodeOutcome:
    def since(at: float) -> float:
        return rounded(at - within.begin)

    spans = [NodeSpan(begin=since(span.begin), end=since(span.end), state=state) for span, state in found]
    return NodeOutcome(name=name, spans=tuple(spans))


def _counted(faults: Sequence[Fault]) -> tuple[FaultCount, ...]:
    counts = Counter((one.kind, one.step) for one in faults)
    return tuple(FaultCount(kind=kind, step=step, count=count) for (kind, step), count in sorted(counts.items()))
