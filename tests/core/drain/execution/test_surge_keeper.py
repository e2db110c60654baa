"""One more pod for a time, at the lab's API server and its controllers in virtual time."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
from support.drain.drain_world import SETTINGS, CountingTransport, in_world, is_ready
from support.drain.surges import workload

from lastcall import errors
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.drain_facts import DrainFactsReader
from lastcall.adapters.kube.resources import BUDGETS, CONFIG_MAPS, DEPLOYMENTS, NODES
from lastcall.adapters.kube.surge_cluster import KubeSurgeCluster
from lastcall.aio import cancel_and_wait
from lastcall.drain.execution.kept_surges import keep_surges
from lastcall.drain.execution.surge_keeper import SurgeKeeper, SurgeParts
from lastcall.drain.execution.surge_targets import SurgeTarget
from lastcall.drain.planning.drain_case import build_case
from lastcall.drain.unlocking.surge_choice import SurgeMethod
from lastcall.drain.unlocking.surge_record import SurgeRecord
from lastcall.names import DRAIN_SURGE
from lastcall_lab import virtual

LOOSE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}


class Surging:
    """A drain of the node of the first pod of ``web``, with its surges."""

    def __init__(self, world, *, begins=True, trouble=None, drain_trouble=None):
        self.world, self.begins, self.said, self.drain_trouble = world, begins, [], drain_trouble
        self.transport = CountingTransport(world.server)
        self.transport.trouble = trouble

    async def run(self):
        world, client = self.world, Client(self.transport, manager="lastcall-drain")
        node = next(one for one in ("n1", "n2", "n3") if world.on(one))
        facts = (await DrainFactsReader(client).read()).facts
        case = build_case(facts, [node], SETTINGS, datetime.fromtimestamp(world.clock.wall(), UTC))
        self.drain = await world.drain(node)
        self.drain.transport.trouble = self.drain_trouble
        async with keep_surges(
            KubeSurgeCluster(client), case, self.drain, self.said.append, world.clock, begins=self.begins
        ) as put_back:
            await self.drain.run(before_release=put_back)


async def blocked(world, replicas=1, strategy=None):
    """A Deployment of which a budget demands every pod."""
    await world.deploy(replicas=replicas)
    if strategy:
        await world.client.patch(DEPLOYMENTS, "web", {"spec": {"strategy": strategy}}, namespace="default")
    budget = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": replicas}
    await world.create(BUDGETS, {"metadata": {"name": "web"}, "spec": budget})
    await world.until(lambda: world.get(BUDGETS, "web").get("status", {}).get("currentHealthy") == replicas)


async def watch_ready(world, found):
    """Counts the pods that are Ready and not in deletion."""
    while True:
        living = [pod for pod in world.pods_of("web") if not pod["metadata"].get("deletionTimestamp")]
        found.append(sum(map(is_ready, living)))
        await world.clock.sleep(0.05)


def deployment(world):
    found = world.get(DEPLOYMENTS, "web")
    return found["spec"]["replicas"], DRAIN_SURGE in (found["metadata"].get("annotations") or {})


@in_world()
@pytest.mark.parametrize(("replicas", "strategy"), [(1, None), (1, LOOSE), (2, LOOSE)])
async def test_the_pod_goes_and_the_budget_is_kept_at_every_instant(world, replicas, strategy):
    await blocked(world, replicas, strategy)
    counts = []
    counting = asyncio.ensure_future(watch_ready(world, counts))
    surging = Surging(world)
    await surging.run()
    assert not surging.drain.has_failed
    await world.until(lambda: deployment(world) == (replicas, False))
    await cancel_and_wait(counting)
    assert min(counts) == replicas
    assert f"Deployment default/web {'gets one more replica' if strategy else 'is restarted'}" in surging.said[0]


@in_world()
@pytest.mark.parametrize("strategy", [None, LOOSE])
async def test_without_the_option_nothing_is_changed(world, strategy):
    await blocked(world, strategy=strategy)
    surging = Surging(world, begins=False)
    running = asyncio.ensure_future(surging.run())
    await world.clock.sleep(30)
    assert deployment(world) == (1, False)
    assert len(world.pods_of("web")) == 1
    await cancel_and_wait(running)
    assert surging.said == []


async def begin(world, surging):
    """Until one more pod was asked for, which cannot start."""
    for name in ("n1", "n2", "n3"):
        await world.client.patch(NODES, name, {"spec": {"unschedulable": True}})
    running = asyncio.ensure_future(surging.run())
    await world.until(lambda: deployment(world) == (2, True))
    return running


@in_world()
async def test_an_interruption_puts_back(world):
    await blocked(world, strategy=LOOSE)
    surging = Surging(world)
    running = await begin(world, surging)
    await cancel_and_wait(running)
    assert deployment(world) == (1, False)
    assert surging.said[-1] == "Deployment default/web is put back"


async def give_owner(world):
    """Something controls the Deployment, as operators do."""
    owner = await world.create(CONFIG_MAPS, {"metadata": {"name": "web"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": owner["metadata"]["uid"]}
    references = {"ownerReferences": [reference | {"controller": True}]}
    await world.client.patch(DEPLOYMENTS, "web", {"metadata": references}, namespace="default")


async def crash(world):
    """A run that dies after it was given one more pod."""
    await blocked(world, strategy=LOOSE)

    async def die(method, target):
        if method == "PATCH" and "/deployments/" in target and deployment(world)[1]:
            raise errors.ApiUnavailable("the process is dead")

    running = await begin(world, Surging(world, trouble=die))
    await cancel_and_wait(running)
    assert deployment(world) == (2, True)
    for name in ("n2", "n3"):
        await world.client.patch(NODES, name, {"spec": {"unschedulable": False}})


@in_world()
@pytest.mark.parametrize("is_owned", [False, True])
async def test_after_a_crash_the_next_run_puts_back_without_the_option_too(world, is_owned):
    await crash(world)
    if is_owned:
        await give_owner(world)
    surging = Surging(world, begins=False)
    await surging.run()
    assert deployment(world) == (1, False)
    assert not surging.drain.has_failed
    assert [one for one in surging.said if "ReplicaSet" in one] == [], (
        "it has a copy of the record, and is its Deployment's"
    )


def refuses(path, error, *, world, seconds=3600.0):
    """Requests that write objects of this path fail for a time."""
    end = world.clock.boottime() + seconds

    async def trouble(method, target):
        if method != "GET" and path in target and world.clock.boottime() < end:
            raise error

    return trouble


@in_world()
@pytest.mark.parametrize(
    "error", [errors.ApiUnavailable("down", code=503), errors.TooManyRequests("busy", code=429, details={})]
)
async def test_a_run_that_gets_no_answer_before_it_has_its_nodes_goes_on_later(world, error):
    await crash(world)
    surging = Surging(world, begins=False, drain_trouble=refuses("/leases", error, world=world, seconds=25))
    await surging.run()
    assert not surging.drain.has_failed
    assert deployment(world) == (1, False)


@in_world()
async def test_a_run_that_may_not_cordon_puts_back_before_anybody_else_can_have_the_node(world):
    await crash(world)
    owned = []

    async def look(method, target):
        if method == "PATCH" and "/deployments/" in target:
            owned.append(world.leases())

    denied = errors.ApiNotPermitted("nodes is forbidden", code=403)
    surging = Surging(world, trouble=look, drain_trouble=refuses("/nodes/", denied, world=world))
    with pytest.raises(errors.ApiNotPermitted, match="nodes is forbidden"):
        await surging.run()
    assert deployment(world) == (1, False)
    assert [len(one) for one in owned] == [1]
    assert world.leases() == []


@in_world()
@pytest.mark.parametrize("seconds", [20.0, 3600.0])
async def test_at_the_end_it_tries_again_for_a_time_and_says_what_it_leaves(world, seconds):
    await blocked(world, strategy=LOOSE)
    surging = Surging(world)
    running = await begin(world, surging)
    down = errors.ApiUnavailable("down", code=503)
    surging.transport.trouble = refuses("/deployments/", down, world=world, seconds=seconds)
    await cancel_and_wait(running)
    is_left = seconds == 3600.0
    assert deployment(world) == ((2, True) if is_left else (1, False))
    said = "was not put back: down; the same command puts it back" if is_left else "is put back"
    assert surging.said[-1] == f"Deployment default/web {said}"
    assert world.leases() == []


@in_world()
async def test_without_the_nodes_it_changes_nothing_and_says_what_is_left(world):
    await crash(world)
    down = errors.ApiUnavailable("down", code=503)
    surging = Surging(world, drain_trouble=refuses("/leases", down, world=world))
    with pytest.raises(errors.ApiUnavailable):
        await surging.run()
    assert deployment(world) == (2, True)
    assert surging.said == [
        "Deployment default/web is left as another run of this drain has changed it; the same command puts it back"
    ]


class RecordedCluster:
    """``SurgeCluster`` with a workload that an earlier run has given one more pod."""

    def __init__(self):
        at = datetime(2026, 1, 1, tzinfo=UTC)
        record = SurgeRecord(drain="n1", method=SurgeMethod.REPLICAS, before=1, after=2, at=at)
        self.workload = workload(replicas=2, annotations={DRAIN_SURGE: msgspec.json.encode(record).decode()})
        self.patches = []

    async def read_workload(self, kind, namespace, name):
        return self.workload

    async def list_autoscalers(self, namespace):
        return ()

    async def patch_subject(self, subject, patch):
        self.patches.append(patch["spec"])


@pytest.mark.parametrize(("is_owner", "patches"), [(False, []), (True, [{"replicas": 1}])])
def test_a_run_that_was_over_before_its_first_look_puts_back_if_it_has_had_the_nodes(is_owner, patches):
    cluster = RecordedCluster()
    parts = SurgeParts(
        cluster=cluster, clock=virtual.VirtualClock, tell=print, is_gone=lambda _: None, is_owner=lambda: is_owner
    )
    target = SurgeTarget(kind="Deployment", namespace="shop", name="web", drain="n1", pods=frozenset("a"))
    asyncio.run(SurgeKeeper([target], parts).put_back())
    assert cluster.patches == patches


@in_world()
@pytest.mark.parametrize(
    ("error", "again"),
    [
        (errors.ApiNotPermitted("deployments.apps is forbidden", code=403), False),
        (errors.Conflict("has changed", code=409), True),
        (errors.ApiUnavailable("down", code=503), True),
        (errors.NotConnected("connection refused"), True),
    ],
)
async def test_failures_are_told_and_tried_again_where_that_helps(world, error, again):
    await blocked(world)
    failures = [error]

    async def trouble(method, target):
        if method == "PATCH" and "/deployments/" in target and failures:
            raise failures.pop()

    surging = Surging(world, trouble=trouble)
    running = asyncio.ensure_future(surging.run())
    await world.clock.sleep(60)
    assert str(error) in surging.said[0]
    assert running.done() is again
    assert any("is restarted" in text for text in surging.said) is again
    await cancel_and_wait(running)
