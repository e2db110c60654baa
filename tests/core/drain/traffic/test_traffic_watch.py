"""The traffic of departing pods, watched in virtual time."""

import pytest
from support.traffic.virtual_traffic import SYNC_SECONDS, TrafficWorld, play

from lastcall.drain.traffic.departing_pods import ProxyNode
from lastcall.drain.traffic.departure import DepartureLimits, DepartureStage
from lastcall.drain.traffic.settle_estimate import BALANCER_SECONDS, DEFAULT_SECONDS
from lastcall.drain.traffic.traffic_watch import MOST_NODES, POLL_SECONDS
from lastcall.model.node_traffic import NodeTraffic, PodConnections
from lastcall.model.proxy_sync import ProxySync

SLICES, PROXIES, CONNECTIONS, MOVED = DepartureStage


def only(steps):
    [step] = steps.values()
    assert step.stage is MOVED
    return step


def test_the_last_proxy_counts():
    async def scene():
        world = TrafficWorld()
        world.nodes.delays, world.nodes.connections = {"n1": 8.0, "n2": 1.0}, 0
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((2, world.leave))
        assert 2 + 8 + SYNC_SECONDS <= seconds <= 2 + 8 + 2 * SYNC_SECONDS + 2 * POLL_SECONDS
        assert only(steps).why == "its traffic has moved"
        assert world.changes == [("a", SLICES), ("a", PROXIES), ("a", PROXIES), ("a", PROXIES), ("a", MOVED)]
        assert sorted(world.observed) == pytest.approx([SYNC_SECONDS, 1 + SYNC_SECONDS, 8 + SYNC_SECONDS], abs=0.01)
        assert world.watch.settle_time.seconds == pytest.approx(1.25 * (8 + SYNC_SECONDS), abs=0.1)

    play(scene)


def test_a_node_that_does_not_answer_is_covered_by_the_settle_time():
    async def scene():
        world = TrafficWorld()
        world.nodes.silent, world.nodes.latency, world.nodes.connections = {"n2"}, 6.0, 0
        await world.begin("a")
        seconds, _ = await world.wait_until_moved((1, world.leave))
        assert 7 <= seconds <= 7 + POLL_SECONDS

    play(scene)


def test_a_pod_that_leaves_while_a_slow_agent_is_asked_is_seen_at_once():
    async def scene():
        world = TrafficWorld()
        world.nodes.slow, world.nodes.connections = {"n2": 3.0}, 0
        await world.begin("a", "b")
        seconds, steps = await world.wait_until_moved((1, lambda: world.leave("a")), (1, lambda: world.leave("b")))
        assert [(step.why, step.cut_short) for step in steps.values()] == [("its traffic has moved", False)] * 2
        assert seconds < 2 + 3 * 3.0 + 2 * POLL_SECONDS

    play(scene)


def test_a_node_that_is_not_ready_is_named_and_not_waited_for():
    async def scene():
        world = TrafficWorld(count=2)
        world.nodes.connections = 0
        world.watched.append(ProxyNode("lost", False))
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((1, world.leave))
        assert seconds <= 1 + 2 * SYNC_SECONDS + 2 * POLL_SECONDS
        assert only(steps).why == "lost are not Ready and left out"
        assert "lost" not in world.nodes.asked

    play(scene)


def test_of_5000_nodes_fifty_are_asked_and_the_settle_time_stands_for_the_others():
    async def scene():
        world = TrafficWorld(count=5000)
        world.nodes.connections = 0
        await world.begin("a", "b", "c")
        seconds, steps = await world.wait_until_moved((1, world.leave))
        assert seconds < 1 + DEFAULT_SECONDS  # what was seen is shorter than the default
        assert {step.stage for step in steps.values()} == {MOVED}
        assert len(set(world.nodes.asked)) == MOST_NODES
        assert "n0" in world.nodes.asked
        assert len(world.nodes.asked) <= MOST_NODES * (2 + seconds / POLL_SECONDS)
        assert len(world.observed) == 3 * MOST_NODES

    play(scene)


def test_pods_that_are_added_later_change_no_choice():
    async def scene():
        world = TrafficWorld(count=200)
        await world.begin("a")
        asked = set(world.nodes.asked)
        await world.begin("b")
        assert set(world.nodes.asked) == asked

    play(scene)


def test_open_connections_are_waited_for_and_a_pod_that_is_gone_has_none():
    async def scene():
        world = TrafficWorld()
        world.nodes.connections = 4
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((1, world.leave), (9, lambda: world.watch.mark_gone("a")))
        assert 10 <= seconds <= 10 + POLL_SECONDS
        assert ("a", CONNECTIONS) in world.changes
        assert not only(steps).cut_short

    play(scene)


def test_connections_that_stay_end_the_wait_at_its_limit():
    async def scene():
        world = TrafficWorld(limits=DepartureLimits(connections=20))
        world.nodes.connections = 4
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((1, world.leave))
        assert 21 <= seconds <= 21 + POLL_SECONDS
        assert only(steps).cut_short

    play(scene)


def test_a_pod_that_stays_in_its_slices_ends_the_wait_at_its_limit():
    async def scene():
        world = TrafficWorld(limits=DepartureLimits(slices=10))
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((100, lambda: world.watch.mark_evicted("a")))
        assert 110 <= seconds <= 110 + 2 * POLL_SECONDS
        assert only(steps).cut_short

    play(scene)


def test_a_pod_that_stays_is_forgotten():
    async def scene():
        world = TrafficWorld()
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((50, lambda: world.watch.forget("a")))
        assert seconds >= 50
        assert steps == {}

    play(scene)


def test_a_pod_that_no_slice_names_is_not_waited_for():
    async def scene():
        world = TrafficWorld()
        await world.begin("a", published=["b"])
        world.watch.mark_evicted("a")
        seconds, steps = await world.wait_until_moved()
        assert (seconds, only(steps).why) == (0, "no Service sends it traffic")

    play(scene)


def test_a_drain_that_resumes_waits_for_the_settle_time():
    """The pod left its slices at an unknown time, so no time of a proxy proves anything."""

    async def scene():
        world = TrafficWorld()
        world.nodes.connections = 0
        await world.begin("a", terminates=True, leaving=["a"])
        seconds, steps = await world.wait_until_moved()
        assert DEFAULT_SECONDS <= seconds <= DEFAULT_SECONDS + POLL_SECONDS
        assert only(steps).why == "its traffic has moved"

    play(scene)


def test_slices_that_are_listed_late_tell_no_time_either():
    async def scene():
        world = TrafficWorld(settle=7.0)
        world.nodes.connections, world.slices.readable = 0, False
        await world.begin("a")
        world.leave()

        def list_slices():
            world.slices.readable = True
            world.slices.name(*world.others)

        seconds, steps = await world.wait_until_moved((3, list_slices))
        assert 3 + 7 <= seconds <= 3 + 7 + 2 * POLL_SECONDS
        assert only(steps).why == "its traffic has moved"

    play(scene)


@pytest.mark.parametrize(("how", "others"), [("leaving", []), ("published", ["other"])])
def test_a_pod_that_serves_until_it_is_gone_is_followed_from_then_on(how, others):
    """kube-proxy sends to pods that terminate while no other is ready, and to those that a Service publishes."""

    async def scene():
        world = TrafficWorld()
        world.others, world.nodes.connections = others, 0
        await world.begin("a")

        def end():
            world.nodes.delays = {"n1": 8.0}
            world.watch.mark_gone("a")
            world.leave()

        seconds, steps = await world.wait_until_moved((1, lambda: world.leave(**{how: ["a"]})), (50, end))
        assert 51 + 8 + SYNC_SECONDS <= seconds <= 51 + 8 + 2 * SYNC_SECONDS + 2 * POLL_SECONDS
        assert only(steps).why == "its traffic has moved"

    play(scene)


def test_a_pod_that_serves_until_another_one_is_ready_is_followed_from_then_on():
    async def scene():
        world = TrafficWorld()
        world.others, world.nodes.connections = [], 0
        await world.begin("a")

        def replace():
            world.others, world.nodes.delays = ["new"], {"n1": 8.0}
            world.leave(leaving=["a"])

        seconds, steps = await world.wait_until_moved((1, lambda: world.leave(leaving=["a"])), (50, replace))
        assert 51 + 8 + SYNC_SECONDS <= seconds <= 51 + 8 + 2 * SYNC_SECONDS + 2 * POLL_SECONDS
        assert only(steps).why == "its traffic has moved"

    play(scene)


def test_a_pod_whose_traffic_has_moved_gets_it_again_when_the_others_leave_too():
    async def scene():
        world = TrafficWorld()
        world.others, world.nodes.connections = [], 0
        await world.begin("a", "b")

        def end(uid, **how):
            world.watch.mark_gone(uid)
            world.leave(**how)

        seconds, steps = await world.wait_until_moved(
            (1, lambda: world.leave("a", leaving=["a"])),
            (9, lambda: world.leave("b", leaving=["a", "b"])),
            (10, lambda: end("b", leaving=["a"])),
            (30, lambda: end("a")),
        )
        assert 50 <= seconds <= 50 + 2 * SYNC_SECONDS + 2 * POLL_SECONDS
        assert [stage for uid, stage in world.changes if uid == "a"].count(MOVED) == 2
        assert {step.why for step in steps.values()} == {"its traffic has moved"}

    play(scene)


def test_what_proxies_heard_before_the_eviction_proves_nothing_either():
    """kube-proxies that hear of changes all the time, so that only waiting proves that they have followed one."""

    async def scene():
        world = TrafficWorld()

        async def read_traffic(_node, _addresses):
            now = world.clock.boottime()
            return NodeTraffic(ProxySync(now, now, 4.0), None, PodConnections({}, True))

        world.nodes.read_traffic = read_traffic
        await world.begin("a")

        def name(*uids):
            world.slices.name(*uids, *world.others)

        seconds, _ = await world.wait_until_moved((1, name), (2, lambda: name("a")), (10, world.leave))
        assert 13 + 4 <= seconds <= 13 + 4 + 2 * POLL_SECONDS

    play(scene)


def test_a_wait_that_was_cut_short_does_not_begin_again():
    async def scene():
        world = TrafficWorld(limits=DepartureLimits(slices=10))
        world.nodes.connections = 0
        await world.begin("a", "b")
        later = (1, lambda: world.watch.mark_evicted("a")), (30, lambda: world.leave("b"))
        await world.wait_until_moved(*later)
        assert [stage for uid, stage in world.changes if uid == "a"] == [SLICES, SLICES, MOVED]

    play(scene)


def test_what_proxies_followed_before_the_eviction_proves_nothing():
    """The pod was not ready for a moment."""

    async def scene():
        world = TrafficWorld()
        world.nodes.connections = 0
        await world.begin("a")

        def name(*uids):
            world.slices.name(*uids, *world.others)
            world.nodes.changed = world.clock.boottime()

        def leave():
            world.nodes.delays = {"n1": 8.0}
            world.leave()

        later = (1, name), (9, lambda: name("a")), (10, leave)
        seconds, steps = await world.wait_until_moved(*later)
        assert 20 + 8 + SYNC_SECONDS <= seconds <= 20 + 8 + 2 * SYNC_SECONDS + 2 * POLL_SECONDS
        assert only(steps).why == "its traffic has moved"

    play(scene)


def test_slices_that_cannot_be_read_are_covered_by_the_settle_time():
    async def scene():
        world = TrafficWorld(settle=7.0)
        world.slices.readable = False
        await world.begin("a")
        world.watch.mark_evicted("a")
        seconds, steps = await world.wait_until_moved()
        assert 7.0 <= seconds <= 7.0 + POLL_SECONDS
        assert only(steps).cut_short

    play(scene)


def test_headless_slices_are_covered_by_the_settle_time():
    async def scene():
        world = TrafficWorld(settle=7.0)
        world.nodes.connections = 0
        await world.begin("a", headless=["a"])

        def leave():
            world.leave()
            world.nodes.changed = -1000.0  # no kube-proxy hears of it

        seconds, steps = await world.wait_until_moved((1, leave))
        assert 8 <= seconds <= 8 + POLL_SECONDS
        assert only(steps).why == "its traffic has moved"

    play(scene)


def test_rules_that_named_the_pod_and_do_no_longer_have_followed():
    async def scene():
        world = TrafficWorld()
        world.nodes.rules, world.nodes.connections = {"n1": True}, 0
        world.nodes.delays = {"n1": 8.0}
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((2, world.leave))
        assert 2 + 8 <= seconds <= 2 + 8 + 2 * POLL_SECONDS
        assert only(steps).why == "its traffic has moved"
        assert max(world.observed) == pytest.approx(8, abs=2 * POLL_SECONDS)

    play(scene)


def test_rules_that_never_named_the_pod_prove_nothing():
    async def scene():
        world = TrafficWorld(settle=7.0)
        world.nodes.rules, world.nodes.connections = {"n1": False}, 0
        await world.begin("a")
        seconds, _ = await world.wait_until_moved((1, world.leave))
        assert 8 <= seconds <= 8 + POLL_SECONDS

    play(scene)


def test_rules_that_keep_naming_the_pod_end_the_wait_at_its_limit():
    async def scene():
        world = TrafficWorld(limits=DepartureLimits(proxies=20))
        world.nodes.rules, world.nodes.connections, world.nodes.delays = {"n1": True}, 0, {"n1": 900.0}
        await world.begin("a")
        seconds, steps = await world.wait_until_moved((1, world.leave))
        assert 21 <= seconds <= 21 + POLL_SECONDS
        assert only(steps).why == "the proxies of n1 did not follow in 20 s"

    play(scene)


def test_rules_speak_also_for_a_pod_that_terminated_before():
    """That they name it, and then do not, needs no time of the change."""

    async def scene():
        world = TrafficWorld(count=1)
        world.nodes.rules, world.nodes.connections, world.nodes.delays = {"n0": True}, 0, {"n0": 9.0}
        await world.begin("a", terminates=True, leaving=["a"])
        world.nodes.changed = world.clock.boottime()
        seconds, _ = await world.wait_until_moved()
        assert 9 <= seconds <= 9 + 2 * POLL_SECONDS

    play(scene)


GATE = "target-health.elbv2.k8s.aws/web"


@pytest.mark.parametrize(("settle", "seconds"), [(None, BALANCER_SECONDS), (3.0, 3.0), (28.0, 28.0)])
def test_a_load_balancer_is_covered_by_a_settle_time_of_its_own(settle, seconds):
    async def scene():
        world = TrafficWorld(settle=settle)
        world.nodes.connections = 0
        await world.begin("a", balancers=(GATE,))
        waited, _ = await world.wait_until_moved((1, world.leave))
        assert 1 + seconds <= waited <= 1 + seconds + 2 * POLL_SECONDS

    play(scene)
