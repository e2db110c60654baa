"""What a failover asks for, writes and does again no oftener than it has to: lists, events, and pods that are made anew."""

import asyncio
from dataclasses import replace

import msgspec
import pytest
from support.failover.cases import DB, ENDING, MARK, NOW, PROVED, check
from support.failover.virtual_cluster import failing_over
from support.lab.volume_kubelets import pod

from lastcall.adapters.kube.resources import EVENTS, PODS
from lastcall.errors import AlreadyExists
from lastcall.failover.decisions import pod_list_reuse, removal_backoff, steps
from lastcall.failover.decisions.removal_backoff import ForcedRemovals
from lastcall.failover.reporting import event_texts
from lastcall.failover.reporting.controller_events import PodsRemoved, RemovalsRepeated, StepDecided
from lastcall.failover.reporting.explanation import explain_node
from lastcall.model.observed import FailoverPod

# -- pods that are made anew -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "seconds"), [(0, 0.0), (1, 1.0), (2, 2.0), (3, 4.0), (6, 32.0), (7, 60.0), (5000, 60.0)]
)
def test_the_pause_grows_with_each_time(times, seconds):
    assert removal_backoff.pause_seconds(times) == seconds


@pytest.mark.parametrize(
    ("before", "boot", "after"),
    [
        (removal_backoff.NEVER, "a", 1),
        (ForcedRemovals(boot_id="a", times=1, last=NOW - 1), "a", 2),
        (ForcedRemovals(boot_id="a", times=9, last=NOW - removal_backoff.LONGEST), "a", 10),
        (ForcedRemovals(boot_id="a", times=9, last=NOW - removal_backoff.CALM - 1), "a", 1),
        (ForcedRemovals(boot_id="b", times=9, last=NOW), "a", 1),
    ],
)
def test_times_in_a_row_are_those_of_one_boot_without_calm_between_them(before, boot, after):
    assert removal_backoff.count_removal(before, boot, NOW) == ForcedRemovals(boot_id=boot, times=after, last=NOW)


RECENT = ForcedRemovals(boot_id="a", times=3, last=NOW - 1)


@pytest.mark.parametrize(
    ("changes", "kind", "more"),
    [
        ({"forced": removal_backoff.NEVER}, steps.ForceDelete, {"pods": (DB,)}),
        ({}, steps.Wait, {"until": NOW + 3, "says": "by force from it 3 times in a row"}),
        ({"pods": (ENDING,)}, steps.Wait, {"until": NOW + 3}),
        ({"forced": replace(RECENT, last=NOW - 4)}, steps.ForceDelete, {"pods": (DB,)}),
        ({"forced": replace(RECENT, last=NOW - 4), "pods": (ENDING,)}, steps.ForceDelete, {"pods": (ENDING,)}),
        ({"forced": replace(RECENT, boot_id="before")}, steps.ForceDelete, {}),
        ({"pods": ()}, steps.Wait, {"says": "attached: va-1"}),
    ],
)
def test_who_was_forced_often_is_forced_after_a_pause(changes, kind, more):
    check(replace(PROVED, **{"forced": RECENT, **changes}), kind, **more)


def test_the_pause_is_explained():
    told = explain_node(replace(PROVED, forced=RECENT), NOW)
    assert told.resolved_by == NOW + 3
    assert "3 times in a row" in told.hurdles[0].why


@failing_over(without=("podgc", "taint-eviction-controller"))
async def test_a_pod_that_is_made_anew_at_once_is_not_forced_without_a_pause(world):
    controller = world.start()
    node = world.place()
    world.nodes.pull(node)
    made = 0

    async def make():
        nonlocal made
        labels = {"labels": {"app": "stubborn"}}
        while True:
            obj = pod("stubborn", nodeName=node)
            try:
                await world.cluster.create(PODS, {**obj, "metadata": obj["metadata"] | labels})
                made += 1
            except AlreadyExists:
                pass
            await asyncio.sleep(0.02)

    maker = asyncio.create_task(make())
    try:
        await world.until(lambda: len(world.verbs("force-delete")) > 1, 120)
        before, began = made, world.now
        await world.cluster.settle(120)
        assert made - before < 10
        await world.until(lambda: made > before + 1, 300)
        assert [one for one in world.cluster.all(EVENTS) if one["reason"] == "PodsMadeAnew"]
        assert world.now > began
        assert any("times in a row" in one.sentence for one in controller.controller.reconcilers)
    finally:
        maker.cancel()
        await asyncio.gather(maker, return_exceptions=True)


# -- lists -------------------------------------------------------------------------------------------------------------


def live(uid="u1", *, grace=None, terminating=True, finalizers=(), node="n"):
    metadata = {"name": uid, "namespace": "d", "uid": uid, "finalizers": list(finalizers)}
    if terminating:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": node}}, FailoverPod)


DELETE = steps.Delete(pods=(DB,), boot_id="a", why="w")
FORCE = steps.ForceDelete(pods=(DB,), boot_id="a", why="w")


@pytest.mark.parametrize(
    ("step", "pods", "now", "serves"),
    [
        (steps.Mark(mark=MARK, why="w"), [live(terminating=False)], 101, True),
        (steps.Mark(mark=MARK, why="w"), [], 116, False),
        (steps.TaintNode(mark=MARK, boot_id="a", why="w"), [], 101, True),
        (DELETE, [live()], 101, True),
        (DELETE, [live(), live("other", terminating=False)], 101, True),
        (DELETE, [], 101, True),
        (DELETE, [live(terminating=False)], 101, False),
        (DELETE, [live()], 116, False),
        (FORCE, [], 101, True),
        (FORCE, [live("other")], 101, True),
        (FORCE, [live()], 101, False),
        (FORCE, [], 116, False),
        (steps.Detach(attachments=(), boot_id="a", why="w"), [], 101, True),
        (steps.SwitchOff(fencer="f", boot_id="a", within=1.0, why="w"), [], 101, False),
        (steps.Wait("w"), [], 101, False),
    ],
)
def test_how_long_a_list_serves(step, pods, now, serves):
    found = {one.metadata.uid: one for one in pods}
    assert pod_list_reuse.is_list_reusable(step, found, listed=100.0, now=now) is serves


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (None, [live(terminating=False)]),
        (live(grace=30), [live(grace=30)]),
        (live(grace=0), []),
        (live(grace=0, finalizers=["x"]), [live(grace=0, finalizers=["x"])]),
        (live(terminating=False), [live(terminating=False)]),
    ],
)
def test_what_the_answer_to_a_deletion_makes_of_the_list(answer, left):
    pods = {"u1": live(terminating=False)}
    pod_list_reuse.update_from_answer(pods, answer)
    assert [*pods.values()] == left


@pytest.mark.parametrize(
    ("now", "before", "still"),
    [
        (live(), live(), True),
        (live(terminating=False), live(), False),
        (live("other"), live(), False),
        (live(node="m"), live(), False),
        (live(terminating=False), live(terminating=False), True),
        (live(), live(terminating=False), True),
        (live("other", terminating=False), live(terminating=False), False),
        (live(node="m", terminating=False), live(terminating=False), False),
    ],
)
def test_whether_a_pod_is_still_the_one_that_was_listed(now, before, still):
    assert pod_list_reuse.is_same_pod(now, before) is still


@failing_over(without=("podgc", "taint-eviction-controller"))
async def test_the_steps_of_one_failover_share_a_list_and_its_end_has_another(world):
    cluster = world.start().controller._cluster
    pods, node = cluster.list_pods, world.place()

    async def counted(name):
        world.happened.append("list")
        return await pods(name)

    cluster.list_pods = counted
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node))
    order = [
        one if one == "list" else type(one.step).__name__
        for one in world.happened
        if isinstance(one, StepDecided | str)
    ]
    first = order.index("TaintNode")
    assert order[first : first + 3] == ["TaintNode", "ForceDelete", "list"]


# -- events ------------------------------------------------------------------------------------------------------------


def test_the_pods_of_one_step_are_one_event_in_each_namespace():
    pods = (("shop", "b", "u2"), ("shop", "a", "u1"), ("shop", "c", "u3"), ("web", "x", "u4"))
    shop, web = event_texts.events_for(PodsRemoved(node="n1", pods=pods), {})
    assert (shop.namespace, shop.name, shop.uid, shop.reason) == ("shop", "a", "u1", "RemovedByForce")
    assert shop.message.endswith("With it 2 more of this namespace: b, c")
    assert (web.namespace, web.name, web.uid) == ("web", "x", "u4")
    assert web.message == "Removed by force: node n1 is gone, and will not confirm the pod's end"
    assert event_texts.events_for(PodsRemoved(node="n1", pods=()), {}) == []


def test_an_event_that_names_many_pods_is_one_that_the_api_takes():
    pods = tuple(("shop", f"a-pod-with-a-long-name-{number:04d}", f"u{number}") for number in range(200))
    (one,) = event_texts.events_for(PodsRemoved(node="n1", pods=pods), {})
    assert len(one.message) == 1024
    assert "199 more" in one.message
    assert one.message.endswith(" ...")


@pytest.mark.parametrize(("times", "events"), [(1, 0), (2, 0), (3, 1), (4, 1)])
def test_that_pods_are_made_anew_is_told_from_the_third_time_on(times, events):
    assert len(event_texts.events_for(RemovalsRepeated(node="n1", times=times), {})) == events
