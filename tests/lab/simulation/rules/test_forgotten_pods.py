"""Pods whose objects go while they live: what the store tells, and how it is judged."""

import pytest
from support.simulation.run_records import Story

from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.simulation.deletion_log import report_deletions
from lastcall_lab.simulation.truth import TerminationRequest

POD, NODE = StorageKey("pods", "default", "db-0"), StorageKey("nodes", "", "n1")


class World:
    """A store with a pod on n1, and what is told of the pod."""

    def __init__(self, *, taints=(), **metadata):
        self.store, self.told = Store(), []
        report_deletions(self.store, lambda uid, grace, *, forgotten: self.told.append((uid, grace, forgotten)))
        self.store.put(NODE, {"metadata": {"name": "n1"}, "spec": {"taints": list(taints)}}, expected=None)
        self.pod = {"metadata": {"uid": "u1", **metadata}, "spec": {"nodeName": "n1"}}
        self.stored = self.store.put(POD, self.pod, expected=None)

    def remove(self):
        self.store.delete(POD, self.pod, expected=self.stored.revision)
        return self.told


def test_a_pod_that_goes_is_told_of_though_it_was_known_to_end():
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    world = World(**deleted, deletionGracePeriodSeconds=0)
    assert world.told == [("u1", 0.0, False)]
    assert world.remove() == [("u1", 0.0, False), ("u1", 0.0, True)]


def test_of_a_machine_that_is_out_of_service_somebody_else_vouches():
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    assert World(taints=[taint]).remove() == [("u1", 0.0, False)]
    assert World(taints=[taint | {"key": "node.kubernetes.io/unreachable"}]).remove() == [("u1", 0.0, True)]


@pytest.mark.parametrize(
    ("ended", "forgotten", "broken"),
    [(50.5, True, ["FORGOTTEN"]), (50.0, True, []), (50.5, False, []), (None, True, ["FORGOTTEN"])],
)
def test_only_what_has_ended_may_be_forgotten(ended, forgotten, broken):
    story = Story().pod("a")
    story.asked.append(TerminationRequest(50.0, "a", 0.0, forgotten))
    if ended is not None:
        story.at(ended, "a", "exit")
    assert story.broken() == broken


def test_what_lost_its_power_has_ended():
    story = Story().pod("a").at(49, "n1", "off")
    story.asked.append(TerminationRequest(50.0, "a", 0.0, forgotten=True))
    assert story.broken() == []
