"""Which pod ends in which phase, and with how much time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lastcall.graceful.planning import phase_assignment
from lastcall.model.pods import FINISHED, ObjectMetadata, Pod, PodSpec, PodStatus, pod_priority
from lastcall.model.shutdown import PhasePlan

CRITICAL = 2_000_000_000
LADDER = tuple(PhasePlan(priority=p, seconds=s) for p, s in ((0, 180), (1000, 120), (10000, 10), (100000, 10)))


def pod(name="web", namespace="default", *, phase="Running", **spec):
    return Pod(
        metadata=ObjectMetadata(name=name, namespace=namespace), spec=PodSpec(**spec), status=PodStatus(phase=phase)
    )


@pytest.mark.parametrize(
    ("value", "index"),
    [
        *((-(2**31), 0), (-1, 0), (0, 0), (1, 0), (999, 0)),
        *((1000, 1), (1001, 1), (9999, 1), (10000, 2), (99999, 2)),
        *((100000, 3), (CRITICAL, 3), (2**31 - 1, 3)),
    ],
)
def test_the_group_with_the_highest_priority_not_above(value, index):
    assert phase_assignment.index_for(LADDER, value) == index


def test_one_group_takes_all():
    only = (PhasePlan(priority=500, seconds=5),)
    assert [phase_assignment.index_for(only, value) for value in (-7, 499, 500, CRITICAL)] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("spec", "index"),
    [
        ({}, 0),
        ({"priority": CRITICAL}, 1),
        ({"priority": CRITICAL - 1}, 0),
        ({"priority_class_name": "system-cluster-critical"}, 1),
        ({"priority_class_name": "system-node-critical"}, 1),
        ({"priority_class_name": "mine"}, 0),
        ({"priority_class_name": "system-node-critical", "priority": 7}, 0),  # the number goes first
        ({"priority_class_name": "system-node-critical", "priority": 0}, 0),
    ],
)
def test_critical_pods_by_number_and_by_name(spec, index):
    two = (PhasePlan(priority=0, seconds=20), PhasePlan(priority=CRITICAL, seconds=10))
    (found,) = [i for i, members in enumerate(phase_assignment.assign_pods(two, [pod(**spec)])) if members]
    assert found == index


def test_finished_pods_are_nowhere_and_others_are_in_order_of_their_names():
    pods = [pod("b"), pod("a", "z"), pod("c"), pod("a"), pod("x", phase="Failed"), pod("y", phase="Succeeded")]
    first, *others = phase_assignment.assign_pods(LADDER, pods + [pod("p", phase="Pending"), pod("u", phase="Unknown")])
    assert [member.key for member in first] == ["default/a", "default/b", "default/c", "default/p", "default/u", "z/a"]
    assert others == [(), (), ()]


def test_without_groups_there_are_no_phases():
    assert phase_assignment.assign_pods((), [pod()]) == ()


@pytest.mark.parametrize(
    ("asked", "seconds", "given"), [(30, 20, 20), (20, 30, 20), (20, 20, 20), (None, 20, 20), (0, 20, 0), (30, 0, 0)]
)
def test_grace_is_the_smaller_of_both(asked, seconds, given):
    assert phase_assignment.grace_seconds(pod(termination_grace_period_seconds=asked), seconds) == given


@pytest.mark.parametrize(("deletion", "seconds"), [(5, 5), (0, 0), (30, 10), (None, 10)])
def test_the_grace_of_a_deletion_only_shortens(deletion, seconds):
    web = pod(termination_grace_period_seconds=10)
    web = replace(web, metadata=replace(web.metadata, deletion_grace_period_seconds=deletion))
    assert phase_assignment.grace_seconds(web, 20) == seconds


PRIORITIES = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1000, CRITICAL - 1, CRITICAL, CRITICAL + 1000])
GROUPS = st.lists(
    st.builds(PhasePlan, priority=PRIORITIES, seconds=st.integers(0, 10**6)),
    min_size=1,
    max_size=8,
    unique_by=lambda group: group.priority,
).map(lambda groups: tuple(sorted(groups, key=lambda group: group.priority)))
PODS = st.lists(
    st.builds(
        pod,
        name=st.text("abc", min_size=1, max_size=3),
        namespace=st.sampled_from(["a", "b"]),
        phase=st.sampled_from(["Pending", "Running", "Unknown", *FINISHED]),
        priority=st.none() | PRIORITIES,
        priority_class_name=st.sampled_from(["", "mine", "system-node-critical", "system-cluster-critical"]),
        termination_grace_period_seconds=st.none() | st.integers(0, 10**7),
    ),
    max_size=12,
)


@given(GROUPS, PODS)
def test_every_unfinished_pod_is_in_exactly_one_phase(groups, pods):
    members = [member for phase in phase_assignment.assign_pods(groups, pods) for member in phase]
    assert sorted(map(id, members)) == sorted(id(p) for p in pods if p.status.phase not in FINISHED)


@given(GROUPS, PODS)
def test_phases_ascend_and_each_pod_is_where_the_rule_says(groups, pods):
    result = phase_assignment.assign_pods(groups, pods)
    assert len(result) == len(groups)
    for index, members in enumerate(result):
        for member in members:
            not_above = [i for i, group in enumerate(groups) if group.priority <= pod_priority(member)]
            assert index == max(not_above, default=0)
    highest = [max(map(pod_priority, members)) for members in result if members]
    lowest = [min(map(pod_priority, members)) for members in result if members]
    assert all(before < after for before, after in zip(highest, lowest[1:], strict=False))


@given(GROUPS, PODS)
def test_grace_is_within_the_phase_and_within_what_is_asked(groups, pods):
    for group, members in zip(groups, phase_assignment.assign_pods(groups, pods), strict=True):
        for member in members:
            given_ = phase_assignment.grace_seconds(member, group.seconds)
            asked = member.spec.termination_grace_period_seconds
            assert 0 <= given_ <= group.seconds
            assert given_ in (group.seconds, asked)
