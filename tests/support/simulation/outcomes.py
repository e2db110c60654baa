"""What came out of rehearsals that never were: outcomes for tests of reports."""

from lastcall_lab.simulation.outcome import (
    CountStep,
    ExpectationResult,
    FaultCount,
    MachineOutcome,
    MachineSpan,
    MachineState,
    OutageSpan,
    RehearsalOutcome,
    ReportedViolation,
    RequestLoss,
    TimelineLine,
    TimelineTopic,
    WorkloadOutcome,
)
from lastcall_lab.simulation.scenario import Expectation, Goal, ScenarioWorkloadKind


def workload(name="web", **more):
    fields = {
        "namespace": "default",
        "kind": ScenarioWorkloadKind.DEPLOYMENT,
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
        "serving_steps": (CountStep(at=0, count=6), CountStep(at=60, count=4), CountStep(at=90, count=6)),
        "wanted_steps": (CountStep(at=0, count=6),),
        "outages": (),
        "losses": (RequestLoss(begin=60, end=61, part=0.3),),
    }
    return WorkloadOutcome(name=name, **{**fields, **more})


def node(name, *spans):
    """Spans are pairs of a state and its end."""
    found, begin = [], 0.0
    for state, end in spans:
        found.append(MachineSpan(begin=begin, end=end, state=state))
        begin = end
    return MachineOutcome(name=name, spans=tuple(found))


def outcome(**more):
    """One node of three goes down and comes back; all is well."""
    fields = {
        "scenario": "reboot",
        "description": "One node is rebooted.",
        "seed": "7",
        "lasts": 600.0,
        "lines": (
            TimelineLine(at=60, topic=TimelineTopic.EVENT, text="reboot node-2"),
            TimelineLine(at=66, topic=TimelineTopic.MACHINE, text="power off: node-2"),
            TimelineLine(at=90, topic=TimelineTopic.PODS, text="2 pods of web start on node-1"),
        ),
        "workloads": (workload(),),
        "nodes": (
            node("node-1", (MachineState.ON, 600)),
            node(
                "node-2",
                (MachineState.ON, 60),
                (MachineState.GOING_DOWN, 66),
                (MachineState.OFF, 126),
                (MachineState.STARTING, 156),
                (MachineState.ON, 600),
            ),
        ),
        "verdicts": (
            ExpectationResult(expectation=Expectation(goal=Goal.DOWN_FOR, subject="web"), holds=True, measured="0s"),
        ),
        "violations": (),
        "faults": (),
    }
    return RehearsalOutcome(**{**fields, **more})


def broken():
    """Much has gone wrong, and names are hostile."""
    return outcome(
        scenario="broken",
        description="<script>alert(1)</script> & \x1b[31mred\x1b[0m",
        workloads=(
            workload(
                "db",
                kind=ScenarioWorkloadKind.STATEFUL_SET,
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
                serving_steps=(CountStep(at=0, count=3), CountStep(at=60, count=1), CountStep(at=100, count=0)),
                wanted_steps=(CountStep(at=0, count=3),),
                outages=(OutageSpan(begin=100, end=600),),
                losses=(),
            ),
        ),
        verdicts=(
            ExpectationResult(
                expectation=Expectation(goal=Goal.DOWN_FOR, subject="db", limit=30), holds=False, measured="9m"
            ),
            ExpectationResult(
                expectation=Expectation(goal=Goal.WRITES_LOST, subject="db"), holds=False, measured="4 writes"
            ),
        ),
        violations=(
            ReportedViolation(at=101.5, rule="no volume written by two", what="pv-1: two writers (node-1, node-2)"),
        ),
        faults=tuple(FaultCount(kind="late watch event", step=f"WATCH {n}", count=n) for n in range(1, 10)),
    )
