"""What a shutdown changes of its Node, and that exactly this is undone."""

import json

import msgspec
import pytest

from lastcall import names
from lastcall.graceful.cluster import node_changes
from lastcall.model.pods import StatusCondition
from lastcall.model.shutdown_node import (
    NodeFieldOwner,
    ShutdownNode,
    ShutdownNodeMetadata,
    ShutdownNodeSpec,
    ShutdownNodeStatus,
)


def node(*, mark=None, cordoned=False, conditions=(), owners=None):
    """``owners`` are the field managers that own the cordon."""
    annotations = None if mark is None else {names.NODE_SHUTDOWN_MARK: mark}
    fields = owners and tuple(
        NodeFieldOwner(manager=one, fields_v1=msgspec.Raw(b'{"f:spec":{"f:unschedulable":{}}}')) for one in owners
    )
    return ShutdownNode(
        metadata=ShutdownNodeMetadata(name="n1", resource_version="7", annotations=annotations, managed_fields=fields),
        spec=ShutdownNodeSpec(unschedulable=cordoned),
        status=ShutdownNodeStatus(conditions=tuple(conditions)),
    )


DEADLINE = 1_800_000_000.4


def mark(boot, *, cordoned, deadline="2027-01-15T08:00:00Z"):
    return json.dumps({"bootId": boot, "cordoned": cordoned, **({"deadline": deadline} if deadline else {})})


@pytest.mark.parametrize(
    ("before", "cordoned_by_us"),
    [
        (node(), True),
        (node(cordoned=True), False),
        (node(cordoned=True, mark=mark("b0", cordoned=True)), True),
        (node(cordoned=True, mark=mark("b0", cordoned=False)), False),
        (node(mark=mark("b1", cordoned=True)), True),
        (node(cordoned=True, mark="not JSON"), False),
    ],
    ids=["free", "cordoned", "ours of an earlier boot", "theirs of an earlier boot", "uncordoned meanwhile", "garbage"],
)
def test_a_cordon_is_ours_only_if_nobody_cordoned_before(before, cordoned_by_us):
    patch = node_changes.cordon_patch(before, "b1", DEADLINE)
    assert patch["spec"] == {"unschedulable": True}
    assert patch["metadata"]["resourceVersion"] == "7"
    written = json.loads(patch["metadata"]["annotations"][names.NODE_SHUTDOWN_MARK])
    assert written == {"bootId": "b1", "cordoned": cordoned_by_us, "deadline": "2027-01-15T08:00:00Z"}


@pytest.mark.parametrize("ours", [True, False])
def test_a_restarted_agent_keeps_the_mark_of_its_boot(ours):
    marked = node(cordoned=True, mark=mark("b1", cordoned=ours))
    assert node_changes.is_marked(marked, "b1")
    assert node_changes.cordon_patch(marked, "b1", DEADLINE) is None


@pytest.mark.parametrize("deadline", [None, "2027-01-15T08:00:05Z"], ids=["of an older agent", "another"])
def test_the_mark_gets_the_deadline_that_counts_now(deadline):
    marked = node(cordoned=True, mark=mark("b1", cordoned=True, deadline=deadline))
    patch = node_changes.cordon_patch(marked, "b1", DEADLINE)
    assert patch["metadata"]["annotations"] == {
        names.NODE_SHUTDOWN_MARK: '{"bootId":"b1","cordoned":true,"deadline":"2027-01-15T08:00:00Z"}'
    }


def test_another_boots_mark_is_not_this_boots():
    assert not node_changes.is_marked(node(), "b1")
    assert not node_changes.is_marked(node(mark=mark("b0", cordoned=True)), "b1")


@pytest.mark.parametrize(
    ("before", "spec"),
    [
        (node(cordoned=True, mark=mark("b0", cordoned=True)), {"unschedulable": None}),
        (node(cordoned=True, mark=mark("b0", cordoned=False)), None),
        (node(cordoned=True, mark="not JSON"), None),
    ],
    ids=["ours", "theirs", "garbage"],
)
def test_only_our_cordon_is_undone(before, spec):
    patch = node_changes.undo_patch(before)
    assert patch.get("spec") == spec
    assert patch["metadata"] == {"resourceVersion": "7", "annotations": {names.NODE_SHUTDOWN_MARK: None}}


@pytest.mark.parametrize(
    ("owners", "is_undone"),
    [
        (None, True),
        (["lastcall-agent"], True),
        (["kubectl-cordon"], False),
        (["kubectl", "lastcall-agent"], True),
        (["ancient-changes"], True),
        (["before-first-apply"], True),
    ],
    ids=["not known", "ours", "cordoned again by somebody else", "both", "no longer known", "never known"],
)
def test_a_cordon_that_somebody_else_has_set_meanwhile_stays(owners, is_undone):
    patch = node_changes.undo_patch(node(cordoned=True, mark=mark("b1", cordoned=True), owners=owners))
    assert ("spec" in patch) is is_undone


@pytest.mark.parametrize(
    ("fields", "owns"),
    [
        (b'{"f:spec":{"f:unschedulable":{}}}', True),
        (b'{"f:spec":{"f:taints":{}},"f:metadata":{"f:unschedulable":{}}}', False),
        (b'{"f:unschedulable":1', False),
        (b'["f:unschedulable"]', False),
        (b"{}", False),
    ],
)
def test_who_owns_the_cordon_is_read_from_the_managed_fields(fields, owns):
    assert NodeFieldOwner(manager="kubectl", fields_v1=msgspec.Raw(fields)).owns_cordon is owns


def test_without_a_mark_nothing_is_undone():
    assert node_changes.undo_patch(node(cordoned=True)) is None


def condition(kind, *, status="True", reason=names.REFUSED_REASON, message=names.NOT_READY_MESSAGE):
    return StatusCondition(type=kind, status=status, reason=reason, message=message)


def test_only_our_conditions_are_removed():
    before = node(
        conditions=[
            condition(names.SHUTDOWN_IN_PROGRESS),
            condition(names.DRAIN_IN_PROGRESS, reason="AdminRequested"),
            condition(names.READY, status="False", reason=names.NOT_READY_REASON),
        ]
    )
    [removed] = node_changes.undo_status_patch(before)["status"]["conditions"]
    assert removed == {"type": names.SHUTDOWN_IN_PROGRESS, "$patch": "delete"}
    assert node_changes.undo_status_patch(node(conditions=[condition(names.READY)])) is None


ANNOUNCED = [
    condition(names.READY, status="False"),
    condition(names.SHUTDOWN_IN_PROGRESS),
    condition(names.DRAIN_IN_PROGRESS),
]


def test_the_announcement_is_read_back():
    written = node_changes.status_patch(0.0)["status"]["conditions"]
    facts = [
        StatusCondition(type=one["type"], status=one["status"], reason=one["reason"], message=one["message"])
        for one in written
    ]
    assert node_changes.is_announced(node(conditions=facts))
    assert node_changes.is_announced(node(conditions=ANNOUNCED))


@pytest.mark.parametrize("index", range(3))
def test_an_announcement_that_lost_a_condition_is_noticed(index):
    rest = [one for place, one in enumerate(ANNOUNCED) if place != index]
    assert not node_changes.is_announced(node(conditions=rest))


def test_a_kubelet_that_writes_ready_is_noticed():
    ready = condition(names.READY, status="True", reason="KubeletReady", message="kubelet is posting ready status")
    assert not node_changes.is_announced(node(conditions=[ready, *ANNOUNCED[1:]]))


def test_a_lease_is_renewed_to_the_microsecond():
    assert node_changes.lease_patch(1.5) == {"spec": {"renewTime": "1970-01-01T00:00:01.500000Z"}}
