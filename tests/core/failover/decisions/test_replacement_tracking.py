"""Which of the pods that a node has lost stand in its mark, and when, and which are looked for (pure)."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed
from support.failover.cases import ENDING, MARK, NOW, POLICY, PROVED, SUSPECT, SWITCHED, VA, marked, node

from lastcall.failover.decisions import replacement_tracking
from lastcall.failover.decisions.decision_table import decide
from lastcall.failover.decisions.steps import Delete, ForceDelete, Mark, TaintNode, Wait
from lastcall.failover.evidence.lost_pods import LostPod
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.model.fence_policy import FailoverMode

AT = {"namespace": "shop", "kind": "ReplicaSet", "owner": "rs", "since": "2026-11-21T12:00:00Z"}
ONE, TWO = LostPod(name="web-1", uid="u1", **AT), LostPod(name="web-2", uid="u2", **AT)
WEB = replace(ENDING, uid="u1", name="web-1", volumes=(), lost=ONE)
LATE = replace(WEB, uid="u2", name="web-2", lost=TWO)
OF = {"tainted": True, **SWITCHED}
ON_IT = replace(PROVED, pods=(WEB,), attachments=())
EMPTY = replace(PROVED, pods=(), attachments=(), node=marked(OURS, lost=(ONE, TWO), **OF))


def test_the_taint_and_the_pods_that_go_for_it_are_one_write():
    step = decide(replace(ON_IT, node=marked(**SWITCHED)), NOW)
    assert isinstance(step, TaintNode)
    assert step.mark.lost == (ONE,)
    assert decide(replace(ON_IT, node=replace(marked(**SWITCHED), room=0)), NOW).mark.lost == ()


def test_who_was_proved_dead_before_he_was_marked_is_marked_with_them():
    found = replace(SUSPECT, verdict=PROVED.verdict, pods=(WEB,))
    assert decide(found, NOW).mark.lost == (ONE,)


def test_who_tolerates_the_taint_for_a_time_is_named_when_that_is_over():
    found = replace(ON_IT, node=marked(**SWITCHED), pods=(WEB, replace(LATE, patient=True)))
    step = decide(found, NOW)
    assert isinstance(step, TaintNode)
    assert step.mark.lost == (ONE,)


def test_what_is_only_suspected_has_lost_nothing_but_what_it_has_said_itself():
    found = replace(SUSPECT, pods=(WEB,), removed=(TWO,))
    assert decide(found, NOW).mark.lost == (TWO,)


@pytest.mark.parametrize(
    ("changes", "kind", "lost"),
    [
        ({"node": marked(OURS, lost=(ONE,), **OF)}, ForceDelete, None),
        ({"node": marked(OURS, **OF)}, Mark, (ONE,)),
        ({"node": replace(marked(OURS, **OF), room=0)}, ForceDelete, None),
        ({"node": marked(OURS, lost=(ONE,), **OF), "pods": (WEB, LATE)}, Mark, (ONE, TWO)),
        ({"node": marked(OURS, **OF), "pods": (replace(WEB, tolerates=True), LATE)}, Mark, (TWO,)),
        ({"node": marked(OURS, **OF), "pods": (replace(WEB, lost=None),)}, ForceDelete, None),
        ({"node": marked(OURS, **OF), "policy": replace(POLICY, mode=FailoverMode.TAINT_ONLY)}, Wait, None),
        (
            {"node": marked(OURS, lost=(ONE,), **OF), "pods": (replace(LATE, made="2026-11-21T12:00:01Z"),)},
            ForceDelete,
            None,
        ),
    ],
)
def test_before_pods_are_forced_the_mark_names_them(changes, kind, lost):
    step = decide(replace(ON_IT, **changes), NOW)
    assert type(step) is kind, step
    assert lost is None or step.mark == changed(MARK, lost=lost, **OF)


def test_a_pod_that_a_marked_node_has_ended_itself_is_named_before_it_is_removed():
    case = replace(SUSPECT, node=node(MARK), pods=(WEB, LATE), gone=frozenset({"u1"}))
    step = decide(case, NOW)
    assert isinstance(step, Mark)
    assert step.mark.lost == (ONE,)
    assert isinstance(decide(replace(case, node=marked(lost=(ONE,))), NOW), ForceDelete)
    ending = replace(case, pods=(replace(WEB, terminating=False),), node=marked(lost=(ONE,)))
    assert isinstance(decide(ending, NOW), Delete)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, ["web-1", "web-2"]),
        ({"pods": (replace(WEB, disabled=True),)}, ["web-2"]),
        ({"pods": (LATE,)}, []),
        ({"attachments": (VA,)}, ["web-1", "web-2"]),
        ({"attachments": (VA,), "policy": replace(POLICY, detach=True)}, []),
        ({"node": marked(OURS, boot="b", lost=(ONE,), **OF)}, []),
        ({"node": node()}, []),
        ({"node": marked(OURS, **OF), "removed": (TWO,)}, ["web-2"]),
    ],
)
def test_replacements_are_looked_for_when_nothing_is_left_that_we_have_to_do(changes, names):
    assert [one.name for one in replacement_tracking.pods_to_look_up(replace(EMPTY, **changes))] == names


def test_what_is_told_of_them():
    assert replacement_tracking.replacement_readiness(EMPTY, {"u2"}) == {"shop/web-1": False, "shop/web-2": True}
    twice = replace(EMPTY, node=marked(OURS, lost=(ONE, changed(TWO, name="web-1")), **OF))
    assert replacement_tracking.replacement_readiness(twice, {"u2"}) == {"shop/web-1": False}


def test_a_jobs_pods_are_not_followed():
    """It may make no other, and that may be done before anybody has seen it Ready."""
    job = changed(TWO, kind="Job")
    case = replace(ON_IT, node=marked(**SWITCHED), pods=(WEB, replace(LATE, lost=job)))
    assert decide(case, NOW).mark.lost == (ONE,)
    former = replace(EMPTY, node=marked(OURS, lost=(ONE, job), **OF), removed=(changed(job, uid="u3"),))
    assert replacement_tracking.pods_to_look_up(former) == (ONE,)
    assert replacement_tracking.replacement_readiness(former, ()) == {"shop/web-1": False}
