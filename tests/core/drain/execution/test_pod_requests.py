"""What a drain asks for its pods, and when, at the lab's API server in virtual time: evictions, deletions, and their answers."""

import asyncio
import itertools

import pytest
from support.drain.drain_world import SETTINGS, in_world

from lastcall import errors
from lastcall.adapters.kube.resources import BUDGETS, PODS
from lastcall.model.drain_limits import TimeoutPolicy
from lastcall.names import GUARD_READY

COMPLETED = (("False", "LastcallDrainCompleted"), ("True", "LastcallDrainCompleted"))


def holds(*pods, message='admission webhook "evict.guard.lastcall.dev" denied the request: held: 37% done'):
    """A guard that holds pods: their evictions and deletions are answered 429."""

    async def trouble(method, target):
        path = target.partition("?")[0]
        if any(path.endswith((f"/{pod}/eviction", f"/{pod}")) for pod in pods) and method in ("POST", "DELETE"):
            raise errors.TooManyRequests(message, code=429, reason="TooManyRequests")

    return trouble


@in_world()
async def test_a_pod_that_was_replaced_is_not_chased(world):
    await world.bare("db-0", "n1")
    run = await world.drain("n1")

    async def replace(method, target):
        if target.partition("?")[0].endswith("/eviction"):
            run.transport.trouble = None
            await world.delete(PODS, "db-0", grace=0)
            other = {
                "metadata": {"name": "db-0"},
                "spec": {"nodeName": "n2", "containers": [{"name": "c", "image": "i"}]},
            }
            await world.create(PODS, other)

    run.transport.trouble = replace
    await run.run()
    assert not run.has_failed, run.recorder.why
    assert world.on("n2") == ["db-0"], "the one on the other node lives"
    assert world.get(PODS, "db-0")["metadata"].get("deletionTimestamp") is None


@in_world()
async def test_a_pod_whose_budget_is_deleted_during_its_eviction_is_not_gone(world):
    """kube-apiserver answers 404 then, about the budget."""
    await world.bare("db-0", "n1")
    run = await world.drain("n1")
    absent = {"kind": "poddisruptionbudgets", "name": "db"}

    async def trouble(method, target):
        if target.partition("?")[0].endswith("/eviction"):
            run.transport.trouble = None
            raise errors.NotFound('poddisruptionbudgets.policy "db" not found', code=404, details=absent)

    run.transport.trouble = trouble
    await run.run()
    assert not run.has_failed, run.recorder.why
    assert run.recorder.of("refused") == ["db-0"]
    assert world.on("n1") == []


@in_world(stops_after=lambda pod: pod["metadata"].get("deletionGracePeriodSeconds", 30))
async def test_a_grace_period_shortens_a_deletion_by_somebody_else(world):
    await world.bare("slow", "n1", terminationGracePeriodSeconds=3000)
    await world.delete(PODS, "slow")
    run = await world.drain("n1", settings=SETTINGS.__class__(force=True, grace_period=7))
    async with world.running(run) as task:
        await world.settle(3)
        assert world.get(PODS, "slow")["metadata"]["deletionGracePeriodSeconds"] == 7
        await task
    assert run.recorder.of("evict") == ["slow"]
    assert not run.has_failed


@in_world()
async def test_deletions_instead_of_evictions(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", settings=SETTINGS.__class__(force=True, disable_eviction=True))
    await run.run()
    assert world.on("n1") == []
    assert run.recorder.of("evict") == []


@in_world()
async def test_after_the_time_pods_are_deleted_past_budgets(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", timeout=20, on_timeout=TimeoutPolicy.DELETE)
    await run.run()
    assert not run.has_failed
    assert world.on("n1") == []
    assert run.recorder.of("delete")
    assert run.recorder.verb == "deleted"


@in_world(stops_after=lambda pod: min(pod["metadata"].get("deletionGracePeriodSeconds", 30), 300))
async def test_after_the_time_pods_that_end_slowly_are_forced_and_the_kubelet_confirms(world):
    await world.bare("slow", "n1", terminationGracePeriodSeconds=300)
    grace = []
    run = await world.drain("n1", timeout=20, on_timeout=TimeoutPolicy.FORCE)
    async with world.running(run) as task:
        await world.settle(25)
        grace.append(world.get(PODS, "slow")["metadata"]["deletionGracePeriodSeconds"])
        assert not task.done(), "the object stays until its kubelet has ended it"
        await task
    assert grace == [1]


@in_world()
@pytest.mark.parametrize("policy", [TimeoutPolicy.DELETE, TimeoutPolicy.FORCE])
async def test_a_pod_that_a_guard_holds_is_never_forced(world, policy):
    await world.bare("db-0", "n1")
    await world.bare("web", "n1")
    run = await world.drain("n1", timeout=20, on_timeout=policy)
    run.transport.trouble = holds("db-0")
    await run.run()
    assert run.has_failed
    assert world.on("n1") == ["db-0"]
    assert world.get(PODS, "db-0")["metadata"].get("deletionTimestamp") is None
    assert "37% done" in run.recorder.failure
    assert not any(path.endswith("/poddisruptionbudgets") for _, path in run.transport.asked), "no budget holds it"
    if policy is TimeoutPolicy.FORCE:
        assert run.recorder.of("delete") == []


@in_world()
@pytest.mark.parametrize("timeout", [0, 300])
async def test_a_webhook_that_denies_is_asked_again_if_that_has_an_end(world, timeout):
    await world.bare("db-0", "n1")
    run = await world.drain("n1", timeout=timeout)
    denied = errors.ApiNotPermitted('admission webhook "policy.example" denied the request: frozen until 10', code=403)
    begun = world.clock.boottime()

    async def trouble(method, target):
        if "/eviction" in target and world.clock.boottime() < begun + 100:
            raise denied

    run.transport.trouble = trouble
    await run.run()
    assert (run.has_failed, world.on("n1")) == ((False, []) if timeout else (True, ["db-0"]))
    if not timeout:
        assert "frozen until 10" in run.recorder.failure


@in_world()
async def test_a_guard_that_has_spoken_on_the_pod_counts_without_its_webhook(world):
    await world.bare("db-0", "n1")
    said = {"type": GUARD_READY, "status": "False", "reason": "Preparing"}
    conditions = world.get(PODS, "db-0")["status"]["conditions"]
    await world.patch(PODS, "db-0", {"status": {"conditions": [*conditions, said]}}, "status")
    await world.create(BUDGETS, {"metadata": {"name": "b"}, "spec": {"selector": {}, "maxUnavailable": 0}})
    await world.settle()
    run = await world.drain("n1", timeout=20, on_timeout=TimeoutPolicy.FORCE)
    await run.run()
    assert world.on("n1") == ["db-0"]
    assert run.recorder.of("delete") == []


@in_world()
async def test_each_pod_has_a_time_of_its_own(world):
    await world.bare("held", "n1")
    await world.bare("late", "n1", priorityClassName="late")
    run = await world.drain("n1", pod_timeout=30)
    run.transport.trouble = holds("held", message="Cannot evict pod as it would violate the pod's disruption budget.")
    begun = world.clock.boottime()
    await run.run()
    assert world.clock.boottime() - begun < 60
    assert run.recorder.of("failed") == ["held", "n1"]
    assert "pod timeout reached: 30s" in run.recorder.why
    assert world.on("n1") == ["held"]


@in_world()
async def test_the_api_server_is_away_in_the_middle(world):
    await world.deploy(replicas=9, budget=1)
    run = await world.drain("n1")
    away = False

    async def trouble(method, target):
        if away:
            raise errors.ApiUnavailable("the API server is away", code=503)

    run.transport.trouble = trouble
    async with world.running(run) as task:
        await world.until(lambda: run.recorder.of("gone"))
        away = True
        await world.settle(90)
        assert not task.done()
        away = False
        await task
    assert not run.has_failed
    assert world.on("n1") == []
    assert world.conditions("n1") == COMPLETED


@in_world()
async def test_requests_for_a_blocked_workload_do_not_multiply(world):
    """kubectl asks for each of the pods every five seconds. A watched budget says when to ask."""
    await world.deploy(replicas=12, budget=0)
    run = await world.drain("n1", "n2", "n3")
    async with world.running(run):
        await world.settle(61)
    assert len(evictions(run)) == 12 + 2
    assert len([path for _, path in run.transport.asked if path.endswith("/poddisruptionbudgets")]) == 2
    assert "needs 12 healthy pods and has 12 currently" in run.recorder.refusal


def evictions(run):
    return [path for _, path in run.transport.asked if path.endswith("/eviction")]


@in_world()
async def test_a_blocked_pod_is_asked_for_as_soon_as_its_budget_makes_room(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1")
    async with world.running(run) as task:
        await world.settle(12)
        asked = len(evictions(run))
        begun = world.clock.boottime()
        await world.patch(BUDGETS, "web", {"spec": {"maxUnavailable": 1}})
        await task
    assert world.on("n1") == []
    assert len(evictions(run)) == asked + 1
    assert world.clock.boottime() - begun < 4, "virtual: the pod's own end, and no wait for the next turn"


@in_world()
async def test_an_overloaded_server_is_asked_again_when_it_says(world):
    """No budget covers the pod, so that the watch of budgets says nothing of it."""
    await world.bare("web", "n1")
    run, times = await world.drain("n1"), []

    async def trouble(method, target):
        if target.partition("?")[0].endswith("/eviction"):
            times.append(world.clock.boottime())
            if len(times) < 4:
                said = {"retryAfterSeconds": 10}
                raise errors.TooManyRequests("too many requests, please try again later", code=429, details=said)

    run.transport.trouble = trouble
    await run.run()
    assert not run.has_failed
    assert [round(after - before) for before, after in itertools.pairwise(times)] == [10, 10, 10], "virtual"


@in_world()
async def test_without_the_right_to_watch_budgets_it_asks_again_every_five_seconds(world):
    await world.deploy(replicas=12, budget=0)
    run = await world.drain("n1", "n2", "n3")

    async def trouble(method, target):
        if "/poddisruptionbudgets" in target and "watch=true" in target:
            raise errors.ApiNotPermitted("no right to watch them", code=403)

    run.transport.trouble = trouble
    async with world.running(run):
        await world.settle(61)
    assert 12 + 8 < len(evictions(run)) < 12 + 14
    assert len([path for _, path in run.transport.asked if path.endswith("/poddisruptionbudgets")]) == 2


@in_world()
async def test_a_pod_that_is_no_longer_healthy_goes_though_its_budget_is_spent(world):
    """A budget lets pods go that are not ready, as long as enough others are."""
    await world.deploy(replicas=2, budget=0)
    await world.patch(BUDGETS, "web", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})
    run = await world.drain("n1")
    async with world.running(run) as task:
        await world.settle(12)
        [name] = world.on("n1")
        ill = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await world.patch(PODS, name, ill, subresource="status")
        await task
    assert world.on("n1") == []


@in_world(stops_after=None)
async def test_pods_that_were_deleted_long_ago_are_not_waited_for(world):
    await world.bare("stuck", "n1", terminationGracePeriodSeconds=10)
    run = await world.drain("n1", settings=SETTINGS.__class__(force=True, skip_wait_for_delete_timeout=60))
    await asyncio.wait_for(run.run(), 100)
    assert run.recorder.of("skipped") == ["stuck"]
    assert not run.has_failed
