"""The rules of Kubernetes 1.36 one by one, as tables; each test names the upstream function that it holds to."""

import pytest

from lastcall.failover.upstream.controller_manager_rules import (
    DetachReason,
    RemovalReason,
    UpstreamNodeState,
    detach_reason,
    is_finished,
    needs_volumes,
    removal_order,
    removal_reason,
    surplus_pods,
)
from lastcall.model.tolerations import (
    FOR_EVER,
    Taint,
    Toleration,
    matching_tolerations,
    seconds_tolerated,
    tolerates,
)

READY, SICK = UpstreamNodeState(ready=True), UpstreamNodeState(ready=False)
OUT_READY, OUT_SICK = (
    UpstreamNodeState(ready=True, out_of_service=True),
    UpstreamNodeState(ready=False, out_of_service=True),
)


@pytest.mark.parametrize(
    ("terminating", "bound", "node", "missed", "verdict"),
    [
        (True, False, None, False, RemovalReason.UNSCHEDULED),
        (False, False, None, False, None),
        (True, True, OUT_SICK, False, RemovalReason.OUT_OF_SERVICE),
        (False, True, OUT_SICK, False, None),
        (True, True, OUT_READY, False, None),
        (True, True, SICK, False, None),
        (True, True, READY, True, None),
        (False, True, None, True, RemovalReason.ORPHANED),
        (True, True, None, True, RemovalReason.ORPHANED),
        (True, True, None, False, None),
    ],
)
def test_what_is_removed(terminating, bound, node, missed, verdict):
    """podgc/gc_controller.go: gcTerminating, gcOrphaned, gcUnscheduledTerminating."""
    assert removal_reason(terminating=terminating, bound=bound, node=node, missed=missed) is verdict


@pytest.mark.parametrize(
    ("phase", "counts"),
    [("Succeeded", True), ("Failed", True), ("Pending", False), ("Running", False), ("Unknown", False), ("", True)],
)
def test_what_counts_as_finished(phase, counts):
    """podgc/gc_controller.go: isPodTerminated."""
    assert is_finished(phase) is counts


def test_evicted_ones_go_first_then_the_oldest_then_by_name():
    """podgc/gc_controller.go: byEvictionAndCreationTimestamp."""
    ages = [
        removal_order(phase="Failed", reason="Evicted", created=9, name="d", namespace="s"),
        removal_order(phase="Succeeded", reason="", created=1, name="c", namespace="s"),
        removal_order(phase="Succeeded", reason="Evicted", created=2, name="a", namespace="t"),
        removal_order(phase="Failed", reason="Other", created=2, name="b", namespace="s"),
    ]
    assert [one.name for one in surplus_pods(reversed(ages), 1, lambda one: one)] == ["d", "c", "a"]
    assert surplus_pods(ages, 4, lambda one: one) == []
    assert surplus_pods(ages, 0, lambda one: one) == []
    assert surplus_pods(ages, -1, lambda one: one) == []


@pytest.mark.parametrize(
    ("mounted", "expired", "node", "verdict"),
    [
        (False, False, READY, DetachReason.UNMOUNTED),
        (False, False, SICK, DetachReason.UNMOUNTED),
        (False, True, READY, DetachReason.TIMEOUT),
        (False, False, OUT_READY, DetachReason.OUT_OF_SERVICE),
        (True, False, READY, None),
        (True, True, READY, None),
        (True, False, SICK, None),
        (True, True, SICK, DetachReason.TIMEOUT),
        (True, False, None, None),
        (True, True, None, DetachReason.TIMEOUT),
        (True, False, OUT_READY, DetachReason.OUT_OF_SERVICE),
        (True, False, OUT_SICK, DetachReason.OUT_OF_SERVICE),
        (True, True, OUT_SICK, DetachReason.TIMEOUT),
        (True, True, OUT_READY, DetachReason.TIMEOUT),
    ],
)
def test_what_is_detached(mounted, expired, node, verdict):
    """attachdetach/reconciler/reconciler.go: reconcile, and what RecordForcedDetachMetric is told."""
    assert detach_reason(mounted=mounted, expired=expired, node=node) is verdict


@pytest.mark.parametrize(
    ("phase", "terminating", "running", "needs"),
    [
        ("Running", False, True, True),
        ("Pending", False, False, True),
        ("Running", True, True, True),
        ("Running", True, False, False),
        ("Failed", False, True, False),
        ("Succeeded", True, True, False),
    ],
)
def test_who_needs_volumes(phase, terminating, running, needs):
    """volume/util/util.go: IsPodTerminated."""
    assert needs_volumes(phase=phase, terminating=terminating, running=running) is needs


# -- tolerations -------------------------------------------------------------------------------------------------------

TAINT = Taint(key="k", value="v", effect="NoExecute")


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        (Toleration(key="k", value="v", effect="NoExecute"), True),
        (Toleration(key="k", operator="Equal", value="v"), True),
        (Toleration(key="k", operator="Equal", value="w"), False),
        (Toleration(key="k", operator="Exists", value="w"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(value="v"), True),
        (Toleration(key="k", operator="Exists", effect="NoSchedule"), False),
        (Toleration(key="j", operator="Exists"), False),
        (Toleration(key="k", operator="exists"), False),
    ],
)
def test_what_tolerates_what(toleration, matches):
    """api/core/v1/toleration.go: ToleratesTaint."""
    assert tolerates(toleration, TAINT) is matches


@pytest.mark.parametrize(
    ("operator", "tolerated", "value", "matches"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "6", False),
        ("Lt", "0", "-4", True),
        ("Gt", "05", "6", False),
        ("Gt", "5", "+6", False),
        ("Gt", "5", " 6", False),
        ("Gt", "-0", "6", False),
        ("Gt", "5", "6\n", False),
        ("Gt", "5", "٦", False),
        ("Gt", "5", "", False),
        ("Gt", "5", "9223372036854775807", True),
        ("Gt", "5", "9223372036854775808", False),
        ("Lt", "5", "-9223372036854775809", False),
    ],
)
def test_numbers_are_compared_where_that_is_enabled(operator, tolerated, value, matches):
    """api/core/v1/toleration.go: compareNumericValues."""
    toleration, taint = Toleration(key="k", operator=operator, value=tolerated), Taint(key="k", value=value)
    assert tolerates(toleration, taint, comparisons=True) is matches
    assert not tolerates(toleration, taint)


def limited(key, seconds, effect=""):
    return Toleration(key=key, operator="Exists", toleration_seconds=seconds, effect=effect)


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([limited("a", 5)], 0),
        ([limited("a", 5), limited("b", 7)], 5),
        ([limited("a", None), limited("b", 7)], 7),
        ([limited("a", None), limited("b", None)], FOR_EVER),
        ([limited("a", 9), limited("a", 5), limited("b", 7)], 7),
        ([limited("", None), limited("a", 5)], FOR_EVER),
        ([limited("", 60), limited("a", None)], 60),
        ([limited("a", 0), limited("b", 7)], 0),
        ([limited("a", -3), limited("b", 7)], 0),
        ([limited("", 2**63 - 1)], FOR_EVER),
        ([limited("", 9_223_372_036)], 9_223_372_036),
        ([limited("", 9_223_372_037)], FOR_EVER),
        ([limited("", 18_446_744_074)], pytest.approx(0.290448384)),
    ],
)
def test_how_long_taints_are_tolerated(tolerations, seconds):
    """apis/core/v1/helper: GetMatchingTolerations; tainteviction/taint_eviction.go: getMinTolerationTime and its Duration."""
    taints = [
        Taint(key="a", effect="NoExecute"),
        Taint(key="c", effect="NoSchedule"),
        Taint(key="b", effect="NoExecute"),
    ]
    assert seconds_tolerated(taints, tolerations) == seconds


def test_the_first_match_is_used():
    """apis/core/v1/helper: GetMatchingTolerations."""
    first, second = limited("k", 300), limited("k", 3)
    assert matching_tolerations([TAINT], [limited("j", 1), first, second]) == [first]
    assert matching_tolerations([TAINT], []) is None
