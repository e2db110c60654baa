"""An order to a fence that takes longer than a lease lasts: a healthy leader waits for it, and one that leads no more does not."""

import asyncio

import pytest
from support.failover.small_cluster import World
from support.failover.virtual_cluster import Bmc, failing_over
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.kube.api_health import ApiHealth, HealthTrackingTransport
from lastcall.aio import cancel_and_wait
from lastcall.errors import ApiUnavailable, RefusedForSafety, TimedOut
from lastcall.failover.controller import fencer_orders
from lastcall.failover.decisions import fencer_choice
from lastcall_lab.simulation.network_faults import NetworkFault

SLOW = {"fencers": [{"name": "bmc", "attempts": 1, "timeoutSeconds": 40, "manual": {}}]}


@pytest.mark.parametrize(
    ("timeout", "over_by", "until"),
    [(40, 1015, 1014.5), (40, 1030, 1029.5), (40, 1100, 1040), (10, 1015, 1010), (40, float("-inf"), float("-inf"))],
)
def test_until_when_an_order_may_last(timeout, over_by, until):
    assert fencer_choice.order_deadline(timeout, began=1000, over_by=over_by) == until


class Slow(Bmc):
    """Waits for the power to be off, for 30 s, unless its time is over before; its end can be put off."""

    def __init__(self, nodes, node):
        super().__init__(nodes, node)
        self.ends, self.over, self.struck = [], None, None

    async def switch_off(self, within):
        clock = self.nodes.cluster.clock
        began = clock.boottime()
        self.ends.append(began + within)
        try:
            while clock.boottime() < began + 30:
                if clock.boottime() >= self.ends[-1]:
                    raise TimedOut("it was killed")
                await clock.sleep(0.25)
        finally:
            self.over = clock.boottime()
        self.struck = self.over
        await super().switch_off(within)

    def extend_order(self, until):
        self.ends.append(max(until, self.ends[-1]))


def slow(world):
    """The node, and its fence."""
    node = world.place()
    world.fences.bmcs[node] = Slow(world.nodes, node)
    return node, world.fences[node]


@failing_over(policy=SLOW)
async def test_a_leader_that_renews_its_lease_waits_for_an_order_as_long_as_the_policy_says(world):
    world.start()
    node, fence = slow(world)
    world.nodes.silent.add(node)
    await world.until(lambda: world.place() not in (None, node), 180)
    (acted,) = world.verbs("off")
    assert acted.error == ""
    assert acted.ended - acted.began >= 30
    assert max(fence.ends) <= acted.began + 40


@failing_over(policy=SLOW)
async def test_the_order_of_one_that_leads_no_more_is_over_before_another_leads(world):
    first = world.start("a")
    await world.cluster.settle(5)
    second = world.start("b")
    node, fence = slow(world)
    world.nodes.silent.add(node)
    await world.until(lambda: fence.ends, 60)
    world.weather.begin(NetworkFault(programs=("a",), refused=1.0))
    await world.until(lambda: second.election.leads, 60)
    assert fence.over is not None
    assert fence.over < world.now
    assert max(fence.ends) <= world.now
    assert not first.election.leads
    assert [one for one in asyncio.all_tasks() if "putting off" in one.get_name()] == []


@pytest.mark.parametrize("sign", ["boot", "back"])
@pytest.mark.parametrize("mute", [False, True], ids=["watched", "looked-at"])
def test_an_order_is_given_up_when_the_node_comes_back(monkeypatch, sign, mute):
    """As one that logs in for half a minute before it strikes, while somebody presses the button of the machine.

    Either the watch tells of it, or a live look.
    """
    if not mute:
        monkeypatch.setattr(fencer_orders, "LOOK", 1e9)

    @failing_over(policy=SLOW)
    async def scenario(world):
        controller = world.start()
        node, fence = slow(world)
        world.nodes.silent.add(node)
        await world.until(lambda: fence.ends, 60)
        await world.cluster.settle(2)
        if mute:
            controller.controller.observing.handle_change = lambda *_: None
        await getattr(world.nodes, sign)(node)
        back = world.now
        await world.until(lambda: fence.over is not None, 60)
        assert fence.over - back < 15
        await world.cluster.settle(40)
        assert fence.struck is None
        assert node not in world.nodes.off
        assert world.verbs("off")[0].error.startswith("node ")

    scenario()


@pytest.mark.parametrize("seconds", [3.05, 3.1, 3.2])
def test_an_order_that_is_over_in_the_middle_of_a_look_is_no_failure_of_the_api_server(seconds):
    """As with an API server that takes half a second: else no other node would be fenced for the policy's ``settle``."""

    @failing_over
    async def scenario(world):
        candidate = world.start()
        node = world.place()
        world.weather.begin(NetworkFault(slow=0.5))
        fence, began = world.fences[node], []

        async def off(within):
            began.append(world.now)
            await world.cluster.clock.sleep(seconds)

        fence.switch_off = off
        world.nodes.pull(node)
        await world.until(lambda: world.verbs("off"), 100)
        assert world.now < began[0] + seconds + 0.5, "nor is the end of the look waited for"
        assert candidate.controller._cluster.api_failed_at is None

    scenario()


class Silent:
    """A transport that answers nothing."""

    async def request(self, method, target, headers, body, *, stream=False):
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(("waited", "failed"), [(1.9, 0), (2.0, 1), (60.0, 1)])
async def test_who_gives_up_after_a_while_has_got_no_answer(waited, failed):
    clock = Hand(100.0)
    health = ApiHealth(clock)
    asking = asyncio.create_task(HealthTrackingTransport(Silent(), health).request("GET", "/", {}, b""))
    await asyncio.sleep(0)
    clock.now += waited
    await cancel_and_wait(asking)
    assert health.run == failed


async def test_a_look_that_is_not_answered_ends_no_order():
    world = World()
    await world.subject()
    surety = world.surety()

    async def away(_):
        raise ApiUnavailable("the API server is away")

    node, world.cluster.read_node = world.cluster.read_node, away
    await surety.verify_during_order()
    world.cluster.read_node = node
    await surety.verify_during_order()
    world.cluster.renewed, world.cluster.beat, world.cluster.revision = "r2", "2", 2
    with pytest.raises(RefusedForSafety, match="was heard of meanwhile"):
        await surety.verify_during_order()
    with pytest.raises(RefusedForSafety, match="was heard of meanwhile"):
        surety.recheck_cached()
