"""The marks for external load balancers: set if missing, taken back only if they are ours."""

import itertools
from datetime import UTC, datetime

import pytest

from lastcall.model.balancer_marks import BalancerMark, MarkedNode, mark_patch, unmark_patch
from lastcall.model.snapshot import DatedTaint
from lastcall.names import BALANCER_EXCLUSION, BALANCER_MARKS, TO_BE_DELETED

LABEL, TAINT = BalancerMark
OTHER = DatedTaint(key="dedicated", value="db", effect="NoExecute", time_added=datetime(2026, 1, 1, tzinfo=UTC))
FOREIGN = DatedTaint(key=TO_BE_DELETED, value="17", effect="NoSchedule")
SUBSETS = [(), (LABEL,), (TAINT,), (LABEL, TAINT)]


def node(labels=(), taints=(OTHER,), annotations=()):
    return MarkedNode(dict(labels), dict(annotations), list(taints), "7")


def apply_patch(before, patch):
    """What a merge patch makes of the node."""
    if patch is None:
        return before

    def merged(values, changes):
        return {key: value for key, value in {**values, **changes}.items() if value is not None}

    metadata = patch["metadata"]
    assert metadata["resourceVersion"] == before.resource_version
    return MarkedNode(
        merged(before.labels, metadata.get("labels", {})),
        merged(before.annotations, metadata.get("annotations", {})),
        patch.get("spec", {}).get("taints", before.taints),
        "8",
    )


@pytest.mark.parametrize(("foreign", "wanted"), list(itertools.product(SUBSETS, SUBSETS)))
def test_what_was_there_before_is_there_after(foreign, wanted):
    before = node(
        {BALANCER_EXCLUSION: "yes"} if LABEL in foreign else {}, [OTHER, FOREIGN] if TAINT in foreign else [OTHER]
    )
    during = apply_patch(before, mark_patch(before, wanted, at=1700))
    assert (BALANCER_EXCLUSION in during.labels) is (LABEL in {*foreign, *wanted})
    assert (TO_BE_DELETED in [one.key for one in during.taints]) is (TAINT in {*foreign, *wanted})
    assert mark_patch(during, wanted, at=1800) is None
    after = apply_patch(during, unmark_patch(during))
    assert after[:3] == before[:3]


def test_the_patch_is_exact():
    patch = mark_patch(node(), [LABEL, TAINT], at=1700)
    taint = DatedTaint(key=TO_BE_DELETED, value="1700", effect="NoSchedule")
    assert patch == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {BALANCER_MARKS: "label,taint"},
            "labels": {BALANCER_EXCLUSION: "true"},
        },
        "spec": {"taints": [OTHER, taint]},
    }


def test_a_second_drain_with_more_marks_owns_all_of_them():
    first = apply_patch(node(), mark_patch(node(), [LABEL], at=1))
    first = first._replace(resource_version="7")
    second = apply_patch(first, mark_patch(first, [TAINT], at=2))
    assert second.annotations == {BALANCER_MARKS: "label,taint"}


def test_marks_that_a_person_has_removed_meanwhile_are_no_fault():
    assert unmark_patch(node(annotations={BALANCER_MARKS: "label,taint"})) == {
        "metadata": {"resourceVersion": "7", "annotations": {BALANCER_MARKS: None}}
    }


@pytest.mark.parametrize("annotations", [{}, {"other": "label"}])
def test_without_the_annotation_nothing_is_ours(annotations):
    assert unmark_patch(node({BALANCER_EXCLUSION: "true"}, [FOREIGN], annotations)) is None
