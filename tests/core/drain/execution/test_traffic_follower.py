"""What the watch of traffic is told of a drain, and that everything is passed on."""

import inspect

import pytest
from support.drain.drain_world import Recorder

from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.decisions.pod_progress import PodProgress, PodTarget, SeenPod
from lastcall.drain.decisions.steps import NodeOutcome
from lastcall.drain.execution.drain_observer import DrainObserver
from lastcall.drain.execution.traffic_follower import TrafficFollower
from lastcall.model.drain_limits import DrainLimits
from lastcall.model.drain_settings import DrainSettings

TARGET = PodTarget(uid="u", namespace="shop", name="web", node="n1")


class Watch:
    """In place of the watch: what it is told."""

    def __init__(self):
        self.told = []

    def mark_evicted(self, uid):
        self.told.append(("evicted", uid))

    def mark_gone(self, uid):
        self.told.append(("gone", uid))

    def forget(self, uid):
        self.told.append(("forget", uid))


def course(pod, seen):
    limits = DrainLimits()
    nodes = (NodeProgress(name="n1"),)
    return DrainCourse(settings=DrainSettings(), limits=limits, nodes=nodes, pods=(pod,), seen={"u": seen})


@pytest.mark.parametrize(
    ("tell", "told"),
    [
        (lambda one: one.tell_gone(TARGET, evicts=True), [("gone", "u")]),
        (lambda one: one.tell_failed(TARGET, "no"), [("forget", "u")]),
        (lambda one: one.tell_skipped(TARGET, "no"), [("forget", "u")]),
        (lambda one: one.tell_asked(TARGET, evicts=True), []),
        (lambda one: one.tell_refused(TARGET, "no", 5), []),
        (lambda one: one.show(course(PodProgress(target=TARGET), SeenPod()), 0), []),
        (lambda one: one.show(course(PodProgress(target=TARGET, accepted_at=1), SeenPod()), 2), [("evicted", "u")]),
        (
            lambda one: one.show(course(PodProgress(target=TARGET), SeenPod(terminating_since=1)), 2),
            [("evicted", "u")],
        ),
    ],
)
def test_what_the_watch_is_told(tell, told):
    watch, recorder = Watch(), Recorder()
    tell(TrafficFollower(watch, recorder))
    assert watch.told == told
    assert recorder.said or recorder.courses


def test_everything_is_passed_on():
    recorder = Recorder()
    follower = TrafficFollower(Watch(), recorder)
    follower.warn("text")
    follower.tell_cordoned("n1", already=False)
    follower.tell_uncordoned("n1")
    follower.tell_finished("n1", NodeOutcome.DRAINED, "")
    assert recorder.said == [("warn", "text"), ("cordoned", "n1"), ("uncordoned", "n1"), ("drained", "n1")]
    asked = {name for name, _ in inspect.getmembers(DrainObserver, inspect.isfunction) if not name.startswith("_")}
    assert asked <= set(dir(follower))
