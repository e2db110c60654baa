"""The plan document and its notes."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.graceful.config import AgentConfig
from lastcall.graceful.planning import shutdown_plan, termination_notes
from lastcall.model.pods import (
    Container,
    ExecAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    ObjectMetadata,
    Pod,
    PodSpec,
    PodStatus,
    SleepAction,
)
from lastcall.model.shutdown import PhasePlan, ShutdownMode

CRITICAL = 2_000_000_000
TWO = (PhasePlan(priority=0, seconds=20), PhasePlan(priority=CRITICAL, seconds=10))
CONFIG = AgentConfig(kind="KubeletConfiguration", groups=TWO)


def pod(
    name="web", namespace="default", *, node="n1", phase="Running", hooks=(), sidecar_hooks=(), deleted=None, **spec
):
    return Pod(
        metadata=ObjectMetadata(name=name, namespace=namespace, deletion_timestamp=deleted),
        spec=PodSpec(
            node_name=node,
            containers=tuple(container(f"c{i}", hook) for i, hook in enumerate(hooks)),
            init_containers=tuple(container(f"s{i}", hook, "Always") for i, hook in enumerate(sidecar_hooks)),
            **spec,
        ),
        status=PodStatus(phase=phase),
    )


def container(name, hook, restart_policy=None):
    return Container(name=name, lifecycle=Lifecycle(pre_stop=hook) if hook else None, restart_policy=restart_policy)


def sleep(seconds):
    return LifecycleHandler(sleep=SleepAction(seconds=seconds))


EXEC = LifecycleHandler(exec=ExecAction(command=("stop",)))
GET = LifecycleHandler(http_get=HTTPGetAction(port=80))


def document(*args, **kwargs):
    return json.loads(shutdown_plan.to_json(shutdown_plan.build_plan(*args, **kwargs)))


def test_the_document():
    pods = [
        pod("b", priority=5, termination_grace_period_seconds=60),
        pod("a", priority=-5, termination_grace_period_seconds=0),
        pod("dns", "kube-system", priority=CRITICAL + 1000, termination_grace_period_seconds=5),
        pod("done", phase="Succeeded"),
        pod("dead", phase="Failed"),
        pod("z", "a"),
    ]
    assert document(CONFIG, pods) == {
        "enabled": True,
        "totalSeconds": 30,
        "phases": [
            {
                "priority": 0,
                "seconds": 20,
                "pods": [
                    {"namespace": "a", "name": "z", "priority": 0, "gracePeriodSeconds": 20, "notes": []},
                    {
                        "namespace": "default",
                        "name": "a",
                        "priority": -5,
                        "gracePeriodSeconds": 0,
                        "notes": ["may run for 2 s: SIGKILL comes 2 s after SIGTERM at the earliest"],
                    },
                    {
                        "namespace": "default",
                        "name": "b",
                        "priority": 5,
                        "gracePeriodSeconds": 20,
                        "notes": ["cut short: asks for 60 s, gets 20 s"],
                    },
                ],
            },
            {
                "priority": CRITICAL,
                "seconds": 10,
                "pods": [
                    {
                        "namespace": "kube-system",
                        "name": "dns",
                        "priority": CRITICAL + 1000,
                        "gracePeriodSeconds": 5,
                        "notes": [],
                    }
                ],
            },
        ],
        "warnings": [],
    }


def test_the_fields_stand_in_the_contracts_order():
    text = shutdown_plan.to_json(shutdown_plan.build_plan(CONFIG, [pod()]))
    found = json.loads(text)
    assert list(found) == ["enabled", "totalSeconds", "phases", "warnings"]
    assert list(found["phases"][0]) == ["priority", "seconds", "pods"]
    assert list(found["phases"][0]["pods"][0]) == ["namespace", "name", "priority", "gracePeriodSeconds", "notes"]


def test_empty_phases_are_listed_too():
    assert document(CONFIG, [])["phases"] == [
        {"priority": 0, "seconds": 20, "pods": []},
        {"priority": CRITICAL, "seconds": 10, "pods": []},
    ]


def test_disabled():
    config = AgentConfig(kind="KubeletConfiguration", warnings=("odd",))
    assert document(config, [pod(), pod(node="n2")], node="n3", granted=1) == {
        "enabled": False,
        "totalSeconds": 0,
        "phases": [],
        "warnings": ["odd"],
    }


def names(found):
    return [[planned["name"] for planned in phase["pods"]] for phase in found["phases"]]


NODES = [pod("a"), pod("b", node="n2"), pod("c", node=""), pod("d", node="n3", phase="Failed")]


def test_without_a_node_all_scheduled_pods_count_as_one_nodes():
    found = document(CONFIG, NODES)
    assert names(found) == [["a", "b"], []]
    assert found["warnings"] == [
        "the pods of 2 nodes count as one node's: n1, n2; --node chooses one",
        "in no phase, since spec.nodeName says no node: default/c",
    ]


def test_a_node_chooses_its_pods():
    found = document(CONFIG, NODES, node="n2")
    assert (names(found), found["warnings"]) == ([["b"], []], [])


def test_a_node_without_pods_is_told():
    found = document(CONFIG, NODES, node="n9")
    assert names(found) == [[], []]
    assert found["warnings"] == ["no unfinished pod is on node n9; there are pods on: n1, n2"]
    assert document(CONFIG, [], node="n9")["warnings"] == [
        "no unfinished pod is on node n9; there are pods on: no node"
    ]


def test_many_names_are_cut():
    pods = [pod(f"p{i}", node="") for i in range(7)]
    assert document(CONFIG, pods)["warnings"] == [
        (
            "in no phase, since spec.nodeName says no node: "
            "default/p0, default/p1, default/p2, default/p3, default/p4 and 2 more"
        )
    ]


def test_granted_less():
    found = document(CONFIG, [pod(termination_grace_period_seconds=30)], granted=15.9)
    assert [phase["seconds"] for phase in found["phases"]] == [5, 10]
    assert found["totalSeconds"] == 15
    assert found["phases"][0]["pods"][0]["gracePeriodSeconds"] == 5
    assert found["warnings"] == [
        (
            "logind grants 15.9s of the 30s asked for: critical phases keep their seconds as far as they fit, "
            "the others are cut pro rata"
        )
    ]


@pytest.mark.parametrize("granted", [30, 30.5, 300, math.inf])
def test_granted_enough(granted):
    assert document(CONFIG, [pod()], granted=granted) == document(CONFIG, [pod()])


def test_observe_is_told():
    config = AgentConfig(kind="AgentConfiguration", groups=TWO, mode=ShutdownMode.OBSERVE)
    assert document(config, [])["warnings"] == ["mode Observe: the agent ends nothing; this is what Enforce would do"]


def test_when_phases_begin_at_the_latest():
    assert [phase.start for phase in shutdown_plan.build_plan(CONFIG, []).phases] == [0, 20]


NOTES = [
    ({}, 20, []),
    ({"termination_grace_period_seconds": 30}, 30, []),
    ({"termination_grace_period_seconds": 0}, 0, []),
    ({"termination_grace_period_seconds": 60}, 20, ["cut short: asks for 60 s, gets 20 s"]),
    ({"termination_grace_period_seconds": 60}, 0, ["gets none of the 60 s it asks for"]),
    ({}, 0, ["gets no time at all"]),
    ({"hooks": [sleep(15)]}, 20, ["preStop of c0 sleeps 15 s: 5 s are left for SIGTERM"]),
    ({"hooks": [sleep(18)]}, 20, ["preStop of c0 sleeps 18 s: 2 s are left for SIGTERM"]),
    ({"hooks": [sleep(19)]}, 20, ["preStop of c0 sleeps 19 s: cut off after 18 s, 2 s are left for SIGTERM"]),
    ({"hooks": [sleep(25)]}, 20, ["preStop of c0 sleeps 25 s: cut off after 18 s, 2 s are left for SIGTERM"]),
    ({"hooks": [sleep(25)]}, 3, ["preStop of c0 sleeps 25 s: cut off after 1.5 s, 1.5 s are left for SIGTERM"]),
    ({"hooks": [sleep(0)]}, 20, []),
    ({"hooks": [EXEC]}, 20, ["preStop of c0 (exec) takes an unknown part of the 20 s from SIGTERM"]),
    ({"hooks": [GET]}, 20, ["preStop of c0 (httpGet) takes an unknown part of the 20 s from SIGTERM"]),
    ({"hooks": [LifecycleHandler()]}, 20, []),
    ({"hooks": [EXEC]}, 0, ["gets no time at all", "preStop of c0 has no time to run in"]),
    (
        {"hooks": [None, sleep(5), EXEC], "sidecar_hooks": [sleep(7)]},
        20,
        [
            "preStop of c1 sleeps 5 s: 15 s are left for SIGTERM",
            "preStop of c2 (exec) takes an unknown part of the 20 s from SIGTERM",
            "preStop of s0 sleeps 7 s: 13 s are left for SIGTERM",
        ],
    ),
    (
        {"priority_class_name": "system-node-critical"},
        10,
        ["priority 2000001000 by the class name system-node-critical alone; the kubelet would count it as 0"],
    ),
    (
        {"priority_class_name": "system-cluster-critical"},
        10,
        ["priority 2000000000 by the class name system-cluster-critical alone; the kubelet would count it as 0"],
    ),
    ({"priority_class_name": "system-node-critical", "priority": CRITICAL + 1000}, 10, []),
    ({"priority_class_name": "mine"}, 10, ["priority class mine without a number: counted as 0"]),
    ({"deleted": "2026-09-01T10:00:00Z"}, 10, ["already being deleted"]),
    (
        {"deleted": "2026-09-01T10:00:00Z", "hooks": [sleep(3)], "termination_grace_period_seconds": 60},
        10,
        [
            "cut short: asks for 60 s, gets 10 s",
            "preStop of c0 sleeps 3 s: 7 s are left for SIGTERM",
            "already being deleted",
        ],
    ),
]


@pytest.mark.parametrize(("fields", "seconds", "expected"), NOTES, ids=range(len(NOTES)))
def test_notes(fields, seconds, expected):
    assert termination_notes.notes_for_pod(pod(**fields), seconds, phase=seconds) == expected


@pytest.mark.parametrize(
    ("length", "phase", "said", "longest"),
    [
        (4, 20, "2 s are left", 6),
        (5, 20, "2 s are left", 7),
        (6, 20, "cut off after 5 s, 2 s are left", 7),
        (60, 6, "cut off after 4 s, 2 s are left", 6),
        (2, 6, "3 s are left", None),
    ],
)
def test_a_hook_in_a_phase_that_is_longer_than_the_pods_own_seconds(length, phase, said, longest):
    found = termination_notes.notes_for_pod(pod(hooks=[sleep(length)]), 5, phase=phase)
    assert found[0] == f"preStop of c0 sleeps {length} s: {said} for SIGTERM"
    more = f"may run for {longest} s: SIGKILL comes 2 s after SIGTERM at the earliest"
    assert found[1:] == ([more] if longest else [])


@pytest.mark.parametrize("seconds", [0, 1, 2, 3])
@pytest.mark.parametrize("phase", [3, 20])
def test_a_pod_that_may_run_longer_than_its_seconds_is_said_to(seconds, phase):
    """ "gets 1 s" and "2 s for SIGTERM" beside each other are no contradiction then."""
    one = pod(termination_grace_period_seconds=seconds)
    left = termination_notes.sigterm_seconds(one, seconds, phase=phase)
    said = [note for note in termination_notes.notes_for_pod(one, seconds, phase=phase) if note.startswith("may run")]
    expected = f"may run for {left:g} s: SIGKILL comes 2 s after SIGTERM at the earliest"
    assert said == ([expected] if left > seconds else [])


@pytest.mark.parametrize(
    ("hooks", "left"),
    [
        ([], 20),
        ([sleep(5), sleep(7)], 13),
        ([sleep(17)], 3),
        ([sleep(18)], 2),
        ([sleep(99)], 2),
        ([EXEC], None),
        ([EXEC, sleep(5)], None),
        ([EXEC, sleep(20)], 2),
        ([EXEC, sleep(30)], 2),
    ],
)
def test_what_the_hooks_leave_for_sigterm(hooks, left):
    assert termination_notes.sigterm_seconds(pod(hooks=hooks), 20, phase=20) == left


@pytest.mark.parametrize(("seconds", "phase", "left"), [(20, 30, 2), (20, 21, 2), (20, 20, 2), (3, 3, 1.5), (0, 0, 0)])
def test_what_a_hook_that_overruns_leaves_for_sigterm(seconds, phase, left):
    assert termination_notes.sigterm_seconds(pod(hooks=[sleep(99)]), seconds, phase=phase) == left


PODS = st.lists(
    st.builds(
        pod,
        name=st.text("abc", min_size=1, max_size=3),
        node=st.sampled_from(["", "n1", "n2"]),
        phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        priority=st.none() | st.integers(-(2**31), 2**31 - 1),
        termination_grace_period_seconds=st.none() | st.integers(0, 100),
    ),
    max_size=8,
)


@given(PODS, st.sampled_from([None, "n1", "n2", "n3"]), st.floats(0, 40) | st.just(math.inf))
def test_every_unfinished_scheduled_pod_is_in_exactly_one_phase(pods, node, granted):
    result = shutdown_plan.build_plan(CONFIG, pods, node=node, granted=granted)
    planned = [planned for phase in result.phases for planned in phase.pods]
    wanted = [p for p in pods if p.spec.node_name and not p.is_finished and node in (None, p.spec.node_name)]
    assert sorted(id(p.pod) for p in planned) == sorted(map(id, wanted))
    assert result.total_seconds <= min(30, granted)
    for phase in result.phases:
        keys = [(p.pod.metadata.namespace, p.pod.metadata.name) for p in phase.pods]
        assert keys == sorted(keys)
        assert all(0 <= p.seconds <= phase.seconds for p in phase.pods)
