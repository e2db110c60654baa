"""What ``lastcall drain`` says of traffic after the pods are gone, in virtual time."""

import asyncio
from types import SimpleNamespace

from support.traffic.virtual_traffic import TrafficWorld, play

from lastcall.cli.drain_traffic import DrainTraffic
from lastcall.drain.traffic.departure import DepartureLimits
from lastcall.model.drain_facts import DrainNode, DrainNodeStatus, DrainPod, DrainPodSpec
from lastcall.model.pods import ObjectMetadata, PodStatus, StatusCondition
from lastcall.names import SLEEP_ADDED


class View:
    def __init__(self):
        self.lines, self.warnings = [], []

    def tell_traffic(self, text):
        self.lines.append(text)

    def warn(self, text):
        self.warnings.append(text)


def pod(uid, annotations=None):
    metadata = ObjectMetadata(name=f"pod-{uid}", namespace="default", uid=uid, annotations=annotations)
    return DrainPod(metadata=metadata, spec=DrainPodSpec(node_name="n0"), status=PodStatus(pod_ip="10.0.0.1"))


def node(name):
    ready = StatusCondition(type="Ready", status="True")
    return DrainNode(metadata=ObjectMetadata(name=name), status=DrainNodeStatus(conditions=(ready,)))


def drained(world, *, gone=("a",), uids=("a",), until_gone=1.0, annotations=None):
    """The view after a drain whose pods are evicted after a second, and gone a while later."""

    async def scene():
        world.slices.name(*uids, "other")
        view = View()
        traffic = DrainTraffic(world.watch, view, world.clock)
        facts = SimpleNamespace(nodes=[node("n0"), node("n1")], namespaces={}, workloads={})
        await traffic.begin(SimpleNamespace(evicted=[pod(uid, annotations) for uid in uids], facts=facts))
        await world.clock.sleep(1)
        world.watched_pods += gone
        world.leave()
        await world.clock.sleep(until_gone)
        for uid in gone:
            world.watch.mark_gone(uid)
        await traffic.wait_until_moved()
        await traffic.close()
        await asyncio.sleep(0)
        return view

    return play(scene)


def test_nothing_is_said_if_the_traffic_has_moved_meanwhile():
    view = drained(TrafficWorld(), until_gone=5)
    assert (view.lines, view.warnings) == ([], [])


def test_a_proxy_that_is_late_is_named():
    world = TrafficWorld()
    world.nodes.delays = {"n1": 8.0}
    view = drained(world)
    assert view.lines[0] == "the traffic of 1 pods has not moved yet: the proxies of n1 do not follow yet"
    assert view.lines[-1].startswith("it has moved after ")
    assert view.warnings == []


def test_a_wait_that_was_cut_short_is_a_warning():
    world = TrafficWorld(limits=DepartureLimits(proxies=5))
    world.nodes.delays = {"n1": 800.0}
    view = drained(world)
    assert view.warnings == ["the traffic of pod default/pod-a: the proxies of n1 did not follow in 5 s"]


def test_pods_that_stay_are_not_waited_for():
    view = drained(TrafficWorld(), uids=("a", "b"), until_gone=5)
    assert (view.lines, view.warnings) == ([], [])


def test_a_sleep_that_is_too_short_is_told_once_and_again_when_more_is_learnt():
    world = TrafficWorld()
    world.nodes.latency, world.nodes.delays = 3.0, {"n1": 8.0}
    view = drained(world, annotations={SLEEP_ADDED: "2"})
    commands = [one.partition("mend: ")[2] for one in view.warnings]
    label = "kubectl label namespace default lastcall.dev/settle-seconds={} --overwrite"
    assert commands == [label.format(3), label.format(11)]
    world = TrafficWorld()
    world.nodes.latency = 9.0
    assert len(drained(world, annotations={SLEEP_ADDED: "2"}).warnings) == 1


def test_nothing_is_advised_where_nothing_was_learnt():
    world = TrafficWorld()
    world.nodes.silent = {"n0", "n1"}
    assert drained(world, annotations={SLEEP_ADDED: "2"}, until_gone=9).warnings == []
