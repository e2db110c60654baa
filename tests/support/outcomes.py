"""What came out of rehearsals that never were: outcomes for tests of reports."""

from lastcall.lab.simulation.outcome import (
    Breach,
    FaultCount,
    Line,
    Loss,
    NodeOutcome,
    NodeSpan,
    NodeState,
    Outcome,
    Span,
    Step,
    Topic,
    Verdict,
    WorkloadOutcome,
)
from lastcall.lab.simulation.scenario import Expectation, Goal, Kind


def workload(name="web", **more):
    fields = {
        "namespace": "default",
        "kind": Kind.DEPLOYMENT,
        "wanted": 6,
        "serving": 6,
        "down": 0.0,
        "degraded": 30.0,
        "longest_outage": 0.0,
        "pod_down": 0.0,
        "requests": 12000.0,
        "requests_lost": 3.3,
        "writes": 0,
        "writes_refused": 0,
        "writes_lost": 0,
        "killed": 0,
        "power_cut": 0,
        "unconfirmed": 0,
        "hooks_missed": 0,
        "restarts": 0,
        "serving_steps": (Step(at=0, count=6), Step(at=60, count=4), Step(at=90, count=6)),
        "wanted_steps": (Step(at=0, count=6),),
        "outages": (),
        "losses": (Loss(begin=60, end=61, part=0.3),),
    }
    return WorkloadOutcome(name=name, **{**fields, **more})


def node(name, *spans):
    """Spans are pairs of a state and its end."""
    found, begin = [], 0.0
    for state, end in spans:
        found.append(NodeSpan(begin=begin, end=end, state=state))
        begin = end
    return NodeOutcome(name=name, spans=tuple(found))


def outcome(**more):
    """One node of three goes down and comes back; all is well."""
    fields = {
        "scenario": "reboot",
        "description": "One node is rebooted.",
        "seed": "7",
        "lasts": 600.0,
        "lines": (
            Line(at=60, topic=Topic.EVENT, text="reboot node-2"),
            Line(at=66, topic=Topic.MACHINE, text="power off: node-2"),
            Line(at=90, topic=Topic.PODS, text="2 pods of web start on node-1"),
        ),
        "workloads": (workload(),),
        "nodes": (
            node("node-1", (NodeState.ON, 600)),
            node(
                "node-2",
                (NodeState.ON, 60),
                (NodeState.GOING_DOWN, 66),
                (NodeState.OFF, 126),
                (NodeState.STARTING, 156),
                (NodeState.ON, 600),
            ),
        ),
        "verdicts": (Verdict(expectation=Expectation(goal=Goal.DOWN_FOR, subject="web"), holds=True, measured="0s"),),
        "violations": (),
        "faults": (),
    }
    return Outcome(**{**fields, **more})


def broken():
    """Much has gone wrong, and names are hostile."""
    return outcome(
        scenario="broken",
        description="<script>alert(1)</script> & \x1b[31mred\x1b[0m",
        workloads=(
            workload(
                "db",
                kind=Kind.STATEFUL_SET,
                wanted=3,
                serving=0,
                down=500.0,
                longest_outage=500.0,
                pod_down=540.0,
                requests=0.0,
                requests_lost=0.0,
                writes=1000,
                writes_lost=4,
                killed=1,
                power_cut=2,
                hooks_missed=1,
                serving_steps=(Step(at=0, count=3), Step(at=60, count=1), Step(at=100, count=0)),
                wanted_steps=(Step(at=0, count=3),),
                outages=(Span(begin=100, end=600),),
                losses=(),
            ),
        ),
        verdicts=(
            Verdict(expectation=Expectation(goal=Goal.DOWN_FOR, subject="db", limit=30), holds=False, measured="9m"),
            Verdict(expectation=Expectation(goal=Goal.WRITES_LOST, subject="db"), holds=False, measured="4 writes"),
        ),
        violations=(Breach(at=101.5, rule="no volume written by two", what="pv-1: two writers (node-1, node-2)"),),
        faults=tuple(FaultCount(kind="late watch event", step=f"WATCH {n}", count=n) for n in range(1, 10)),
    )
