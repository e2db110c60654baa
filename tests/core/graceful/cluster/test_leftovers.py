"""Which pods are leftovers of a shutdown, and what is waited for before they are deleted."""

import pytest
from msgspec.structs import replace
from support.agents import shutdown_records
from support.agents.virtual_parts import pod

from lastcall.graceful.cluster.leftovers import JOB_TRACKING, LeftoverFate, find_leftovers
from lastcall.model.pods import OwnerReference, PodStatus, StatusCondition
from lastcall.model.shutdown import MachineReturned, ShutdownMode
from lastcall.model.shutdown_fold import fold_events

EVENTS = shutdown_records.dozen()
LAST = fold_events([*EVENTS, MachineReturned(at=9.0, boot_id="b2", wall=EVENTS[0].wall + 300)])
ENDED = LAST.pods[0].uid
BEFORE, AFTER = "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"


def ended(owner, *, uid="another", phase="Failed", reason="Terminated", since=AFTER, **metadata):
    one = pod("web", uid=uid)
    owners = (OwnerReference(kind=owner, name="it", uid="u", controller=True),) if owner else None
    condition = StatusCondition(type="Ready", status="False", last_transition_time=since)
    return replace(
        one,
        metadata=replace(one.metadata, owner_references=owners, creation_timestamp=BEFORE, **metadata),
        status=PodStatus(phase=phase, reason=reason, conditions=(condition,)),
    )


def fate(one, last=LAST):
    found = find_leftovers([one], last)
    return found[0][1] if found else LeftoverFate.KEPT


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (ended("ReplicaSet"), LeftoverFate.DELETED_WHEN_REPLACED),
        (ended("ReplicaSet", reason="NodeShutdown"), LeftoverFate.DELETED_WHEN_REPLACED),
        (
            ended("ReplicaSet", uid=ENDED, phase="Succeeded", reason="", since=BEFORE),
            LeftoverFate.DELETED_WHEN_REPLACED,
        ),
        (ended("ReplicaSet", phase="Succeeded", reason=""), LeftoverFate.KEPT),
        (ended("ReplicaSet", since=BEFORE), LeftoverFate.KEPT),
        (ended("ReplicaSet", reason="Evicted"), LeftoverFate.KEPT),
        (ended("ReplicaSet", phase="Running", reason=""), LeftoverFate.KEPT),
        (ended("ReplicaSet", deletion_timestamp=AFTER), LeftoverFate.KEPT),
        (ended("Job"), LeftoverFate.DELETED),
        (ended("Job", finalizers=(JOB_TRACKING,)), LeftoverFate.DELETED_WHEN_COUNTED),
        (ended("Job", uid=ENDED, phase="Succeeded", reason=""), LeftoverFate.KEPT),
        (ended("StatefulSet"), LeftoverFate.KEPT),
        (ended("DaemonSet"), LeftoverFate.KEPT),
        (ended("Node"), LeftoverFate.KEPT),
        (ended(None), LeftoverFate.KEPT),
    ],
    ids=[
        *("terminated", "rejected", "completed by the shutdown", "completed by itself", "of an earlier shutdown"),
        *("evicted", "running", "deleted already", "a counted Job's", "an uncounted Job's", "a Job's result"),
        *("a StatefulSet's", "a DaemonSet's", "mirror", "bare"),
    ],
)
def test_the_fate_of_a_pod(one, expected):
    assert fate(one) is expected


def test_an_observed_shutdown_leaves_nothing():
    assert fate(ended("ReplicaSet"), replace(LAST, mode=ShutdownMode.OBSERVE)) is LeftoverFate.KEPT
