"""A controller that comes to lead while its watch of Nodes lags: what others have fenced counts for the limits all the same."""

import msgspec
import pytest
from support.failover.small_cluster import MARK, MINE
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.resources import NODES
from lastcall.errors import Unavailable
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.storm_guard import StormGuard
from lastcall.failover.evidence import owner_mark
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.observed import ObjectChange, WatchedKind, WatchedNode
from lastcall.model.power import PowerState

MARKED = owner_mark.encode_mark(MINE)
ZONE = {"metadata": {"labels": {"topology.kubernetes.io/zone": "a"}}}


async def two(world):
    """A leader and who is to follow; two nodes of one zone on each of which something runs."""
    first, lost = world.start("a"), (world.place("db"), world.place("web"))
    assert len({*lost}) == 2
    await world.until(lambda: first.election.leads, 30)
    for name in lost:
        await world.cluster.patch(NODES, name, ZONE, namespace="")
    second = world.start("b")
    await world.cluster.settle(30)
    return first, second, *lost


def lags(candidate, node):
    """Its watch of Nodes tells nothing of one of them any more, without failing."""
    observing = candidate.controller.observing
    hear = observing.handle_change

    def heard(one, now):
        if (one.what, one.name) != (WatchedKind.NODES, node):
            hear(one, now)

    observing.handle_change = heard


def unreadable(candidate, node, *, listed):
    """Nor can the Node be read live, and, if not ``listed``, no Nodes can be listed; what ends the latter."""
    cluster = candidate.controller._cluster
    read, every = cluster.read_node, cluster.list_nodes

    async def one(name):
        if name == node:
            raise Unavailable("the Node cannot be read")
        return await read(name)

    async def none():
        raise Unavailable("Nodes cannot be listed")

    cluster.read_node = one
    if not listed:
        cluster.list_nodes = none

    def heal():
        cluster.list_nodes = every

    return heal


def told_off(world, node):
    return [one for one in world.verbs("off") if one.node == node]


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("limit", ["PerDomain", "PerHour", "MinHealthy"])
def test_what_the_leader_before_is_fencing_counts_though_the_watch_does_not_tell_of_it(limit, listed):
    """Its BMC obeys no order, so that the node stays marked."""
    bounds = {
        "PerDomain": {"minHealthy": 1},
        "PerHour": {"minHealthy": 1, "perHour": 1},
        "MinHealthy": {"minHealthy": 4},
    }
    more = {} if limit == "PerDomain" else {"perDomain": 9}

    @failing_over(policy={"limits": {"settle": "5s", **bounds[limit], **more}})
    async def run(world):
        first, second, gone, other = await two(world)
        lags(second, gone)
        world.fences[gone].lies = PowerState.ON
        world.nodes.silent.add(gone)
        await world.until(lambda: told_off(world, gone), 60)
        if limit == "MinHealthy":  # the node is heard of again, but its order may still be carried out
            world.nodes.silent.discard(gone)
        heal = unreadable(second, gone, listed=listed)
        first.process.kill()
        world.nodes.pull(other)
        await world.until(lambda: second.election.leads, 60)
        await world.cluster.settle(60)
        assert told_off(world, other) == []
        sentence = next(one.sentence for one in second.controller.reconcilers if one.name == other)
        if not listed:
            assert "all Nodes have not been read since this controller leads" in sentence
        heal()
        await world.cluster.settle(60)
        assert told_off(world, other) == []

    run()


@pytest.mark.parametrize("listed", [False, True])
def test_so_does_what_it_has_fenced_within_the_last_hour(listed):
    """The node is back, and nothing but its annotation tells of it."""

    @failing_over(policy={"limits": {"settle": "5s", "minHealthy": 1, "perHour": 1}})
    async def run(world):
        first, second, gone, _ = await two(world)
        lags(second, gone)
        world.nodes.pull(gone)
        await world.until(lambda: world.place() not in (None, gone), 120)
        await world.nodes.boot(gone)
        await world.until(lambda: not world.mark(gone), 120)
        heal = unreadable(second, gone, listed=listed)
        first.process.kill()
        other = world.place()
        world.nodes.pull(other)
        await world.until(lambda: second.election.leads, 60)
        await world.cluster.settle(60)
        assert told_off(world, other) == []
        heal()
        await world.cluster.settle(60)
        assert told_off(world, other) == []
        assert any("1 node was fenced within the last hour" in one.sentence for one in second.controller.reconcilers)

    run()


@pytest.mark.parametrize("error", [Unavailable("no answer"), RuntimeError("a mistake")])
def test_a_list_that_has_failed_is_asked_for_again(error):
    @failing_over
    async def run(world):
        candidate, gone, fails = world.start(), world.place(), [error, error]
        cluster = candidate.controller._cluster
        read = cluster.list_nodes

        async def nodes():
            if fails:
                raise fails.pop()
            return await read()

        cluster.list_nodes = nodes
        world.nodes.pull(gone)
        await world.until(lambda: world.place() not in (None, gone), 120)

    run()


class Healthy:
    """An API server that has not failed."""

    watch_trouble, api_failed_at, api_trouble = "", None, ""


def known(name, annotations):
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations}}, WatchedNode)


def fence_policy():
    spec = {"limits": {"minHealthy": 0, "perHour": 2}, "fencers": [{"name": "f", "manual": {}}]}
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, FencePolicy)


@pytest.mark.parametrize(
    ("annotations", "informed"),
    [
        ({}, True),
        ({"lastcall.dev/failover": MARKED}, False),
        ({"lastcall.dev/fenced": "yesterday"}, False),
        ({"lastcall.dev/fenced": '[{"bootID": "b", "at": "2026-01-01T00:00:00Z"}]'}, True),
    ],
)
def test_what_only_the_watch_can_count_is_waited_for(annotations, informed):
    """A Node that the watch does not know has no failure domain; a text that cannot be read counts for as long as it is there."""
    observing = ClusterView(lambda _: None)
    guard = StormGuard(Healthy(), observing)
    node = known("n", annotations)
    assert guard.learn_nodes([node], now=0.0, wall=0.0) is informed
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n", node), 1.0)
    assert guard.learn_nodes([node], now=1.0, wall=0.0)
    guard.start_leading()
    answer = guard.may_fence("n", "b", fence_policy(), etcd=frozenset(), now=2.0, wall=0.0)
    assert "have not been read since this controller leads" in answer.why
    assert guard.learn_nodes([], now=2.0, wall=0.0)


def test_nothing_is_fenced_by_a_list_that_was_read_in_part():
    """What comes after the Node at which a mistake of ours has ended the reading is not known."""
    guard = StormGuard(Healthy(), ClusterView(lambda _: None))

    def listed():
        yield known("n", {})
        raise RuntimeError("a mistake")

    with pytest.raises(RuntimeError):
        guard.learn_nodes(listed(), now=0.0, wall=0.0)
    answer = guard.may_fence("n", "b", fence_policy(), etcd=frozenset(), now=0.0, wall=0.0)
    assert "have not been read since this controller leads" in answer.why


def test_two_boots_of_one_node_count_twice_in_an_hour():
    """The watch still shows the mark of the first, which made way for that of the second."""
    observing, other = ClusterView(lambda _: None), owner_mark.OwnerMark(**{**MARK, "boot_id": "b2"})
    first = known("n", {"lastcall.dev/failover": MARKED})
    second = known(
        "n",
        {
            "lastcall.dev/failover": owner_mark.encode_mark(other),
            "lastcall.dev/fenced": '[{"bootID":"b1","at":"1970-01-01T00:00:00Z"}]',
        },
    )
    for one in (first, known("m", {}), known("o", {})):
        observing.handle_change(ObjectChange(WatchedKind.NODES, one.metadata.name, one), 0.0)
    guard = StormGuard(Healthy(), observing)
    assert guard.learn_nodes([second], now=0.0, wall=0.0)
    answer = guard.may_fence("m", "b", fence_policy(), etcd=frozenset(), now=1.0, wall=1.0)
    assert answer.why == "2 nodes were fenced within the last hour, and 2 may be"
