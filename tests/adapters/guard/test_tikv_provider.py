"""The provider ``tikv`` at an emulated Placement Driver, step by step, and with its faults."""

import json

import pytest
from msgspec.structs import replace
from support.guard import members
from support.guard import placement_driver_servers as placement
from support.guard.scripted_members import ScriptedMembers

from lastcall.adapters.guard import leader_counts
from lastcall.adapters.guard.tikv_provider import TikvProviderFactory
from lastcall.errors import InvalidInput, LastcallError, Unavailable
from lastcall.ports.guard import GuardedMember, PreparationProgress

LOST, READY, STALLED = PreparationProgress.LOST, PreparationProgress.READY, PreparationProgress.STALLED
PREPARING = PreparationProgress.PREPARING
TOO_FEW = "12 regions have too few peers"


class Bench:
    """The emulated servers, and providers as one process makes them."""

    def __init__(self, port):
        self.servers = placement.PlacementDriverServers(port)
        self.factory = TikvProviderFactory()
        self.pods = [placement.pd_pod(number) for number in range(3)]

    def provider(self, **settings):
        settings = {"pdSelector": placement.SELECTOR, "pdPort": self.servers.port, "timeoutSeconds": 1, **settings}
        return self.factory.make_provider(settings, members.Loopback(pods=self.pods))

    async def health(self, member=None):
        found = await self.provider().check_health(member or one(0))
        assert found.is_healthy == (not found.message)
        return found.message

    async def check(self, member=None):
        report = await self.provider().check_progress(member or one(0))
        return report.progress, report.message

    async def prepare(self, number=0):
        await self.provider().prepare(one(number))

    async def move_all(self, number=0):
        """Until it is ready; what was said meanwhile."""
        reports = []
        while not reports or reports[-1].progress is PREPARING:
            reports.append(await self.provider().check_progress(one(number)))
            assert len(reports) < 100
        return reports


@pytest.fixture
def bench(unused_tcp_port):
    made = Bench(unused_tcp_port)
    yield made
    made.servers.end()


def one(number, of=3):
    return members.member(number, of, net=placement.NET)


def replaced(number):
    """The member is gone, and a pod of its name has taken its place."""
    gone, pod = members.gone(number, net=placement.NET), one(number).pod
    new = replace(pod, metadata=replace(pod.metadata, uid="uid-new"))
    return GuardedMember(pod=gone.pod, others=(*gone.others, new))


# -- the steps of a planned restart ------------------------------------------------------------------------------------


async def test_before_anything_is_begun_the_cluster_has_to_be_whole(bench):
    assert await bench.health() == ""
    bench.servers.stores[3].state = "Disconnected"
    assert await bench.health() == "redis-2 (store 3) is Disconnected"
    assert bench.servers.list_changes() == []


async def test_the_leaders_are_moved_away_however_often_it_is_asked(bench):
    assert await bench.check() == (LOST, "store 1 has 4 leaders, and PD does not move them away")
    for _ in range(3):
        await bench.prepare()
    assert bench.servers.evicted == {1}
    assert bench.servers.list_changes() == ["POST /pd/api/v1/schedulers"]


async def test_the_progress_is_counted_from_the_number_at_the_start(bench):
    await bench.prepare()
    *before, last = await bench.move_all()
    assert [report.percent for report in before] == [0, 33, 66]
    assert [report.message for report in before] == [f"store 1 has {left} leaders" for left in (3, 2, 1)]
    assert before[-1].eta_seconds is not None
    assert (last.progress, last.message) == (READY, "store 1 has no leaders")


async def test_it_stays_ready_only_while_what_was_set_stands(bench):
    await bench.prepare()
    await bench.move_all()
    bench.servers.evicted.clear()  # PD has lost it, or an operator has removed it
    assert await bench.check() == (LOST, "store 1 has 0 leaders, and PD does not move them away")
    await bench.prepare()
    assert (await bench.check())[0] is READY
    bench.servers.batch = 0
    bench.servers.regions[1].leader = 1  # raft has elected it all the same
    assert await bench.check() == (PREPARING, "store 1 has 1 leaders")


async def test_a_preparation_that_is_given_up_lets_the_store_have_leaders_again(bench):
    await bench.prepare()
    for _ in range(2):
        await bench.provider().cancel(one(0))
    assert bench.servers.evicted == set()
    assert bench.servers.list_changes()[1:] == ["DELETE /pd/api/v1/schedulers/evict-leader-scheduler-1"]


async def test_the_eviction_ends_when_the_replacement_is_up(bench):
    await bench.prepare()
    await bench.move_all()
    bench.servers.stores[1].state = "Disconnected"
    assert await bench.health(replaced(0)) == "redis-0 (store 1) is Disconnected"
    bench.servers.stores[1].state = "Up"
    assert await bench.health(replaced(0)) == ""
    for _ in range(2):
        await bench.provider().release(replaced(0))
    assert bench.servers.evicted == set()
    assert len(bench.servers.list_changes()) == 2


async def test_one_store_after_the_other(bench):
    await bench.prepare()
    assert await bench.health(one(1)) == "leaders are moved away from redis-0 (store 1) too"
    assert await bench.health(one(0)) == "", "its own eviction is in nobody's way"
    await bench.move_all()
    await bench.provider().release(replaced(0))
    assert await bench.health(one(1)) == ""


async def test_a_store_by_the_address_of_its_pod(bench):
    bench.servers.stores[1].address = f"{one(0).pod.status.pod_ip}:20160"
    await bench.prepare()
    assert bench.servers.evicted == {1}
    new = replaced(0)
    pod = replace(new.others[-1], status=replace(new.others[-1].status, pod_ip="127.63.16.77"))
    moved = GuardedMember(pod=new.pod, others=(*new.others[:-1], pod))
    bench.servers.stores[1].address = "127.63.16.77:20160"  # the store tells PD its new address
    await bench.provider().release(moved)
    assert bench.servers.evicted == set()


@pytest.mark.parametrize(
    ("address", "is_found"),
    [
        ("redis-0:20160", True),
        ("redis-0.redis-peer:20160", True),
        ("redis-0.redis-peer.shop.svc.cluster.local:20160", True),
        ("redis-0.redis-peer.other.svc:20160", False),
        ("redis-00.redis-peer.shop.svc:20160", False),
        ("127.63.16.99:20160", False),
        ("[fd00::7]:20160", False),
        ("", False),
    ],
)
async def test_which_store_is_the_pods(bench, address, is_found):
    bench.servers.stores[1].address = address
    progress, message = await bench.check()
    assert (progress is LOST) == is_found
    if not is_found:
        assert (progress, message) == (STALLED, "PD has no store with the address of redis-0")
        assert "PD has no store with the address of redis-0" in await bench.health()
        await bench.prepare()
        assert bench.servers.list_changes() == []


# -- what is in the way ------------------------------------------------------------------------------------------------


def miss_peers(servers):
    for region in servers.regions:
        region.peers = [store for store in region.peers if store != 3]


def fall_behind(servers, *, learners=False):
    for region in servers.regions[:2]:
        region.pending = {3}
        region.learners = {3} if learners else set()


def lose_peers(servers):
    servers.regions[0].down = {2}


def lose_own_peers(servers):
    for region in servers.regions:
        region.down, region.pending = {1}, {1}


def have_tiflash_down(servers):
    servers.stores[9] = placement.Store(9, "tiflash-0:3930", "Down", {"engine": "tiflash"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (miss_peers, TOO_FEW),
        (fall_behind, "2 regions have a peer that is behind"),
        (lose_peers, "1 regions have a peer that is down"),
        (lambda servers: fall_behind(servers, learners=True), ""),
        (lose_own_peers, ""),
        (have_tiflash_down, ""),
        (
            lambda servers: setattr(servers, "max_replicas", 2),
            "regions have 2 replicas: without one there is no quorum",
        ),
        (lambda servers: setattr(servers.stores[2], "state", "Offline"), "redis-1 (store 2) is Offline"),
        (lambda servers: setattr(servers.stores[1], "state", "Down"), ""),
        (lambda servers: servers.evicted.add(3), "leaders are moved away from redis-2 (store 3) too"),
    ],
    ids=[
        "too few peers",
        "behind",
        "down",
        "learners",
        "own",
        "tiflash",
        "replicas",
        "removal",
        "own down",
        "eviction",
    ],
)
async def test_what_makes_a_cluster_unhealthy(bench, change, message):
    change(bench.servers)
    assert await bench.health() == message


@pytest.mark.parametrize(
    ("change", "progress", "message"),
    [
        (lambda servers: setattr(servers.stores[3], "state", "Down"), STALLED, "redis-2 (store 3) is Down"),
        (fall_behind, PREPARING, "2 regions have a peer that is behind"),
        (miss_peers, PREPARING, TOO_FEW),
        (lose_own_peers, READY, "store 1 has no leaders"),
    ],
    ids=["a store down", "behind", "too few peers", "own"],
)
async def test_without_leaders_it_may_go_only_while_a_quorum_remains(bench, change, progress, message):
    await bench.prepare()
    await bench.move_all()
    change(bench.servers)
    assert await bench.check() == (progress, message)


async def test_too_many_regions_to_be_read_are_many(bench):
    bench.servers.regions = bench.servers.regions * 20
    for region in bench.servers.regions:
        region.pending = {3}
    assert await bench.health() == "many regions have a peer that is behind"


async def test_leaders_that_do_not_move_are_told_and_nothing_is_forced(bench, monkeypatch):
    await bench.prepare()
    bench.servers.batch = 0
    assert await bench.check() == (PREPARING, "store 1 has 4 leaders")
    monkeypatch.setattr(leader_counts, "STALL_SECONDS", 0.0)
    assert await bench.check() == (STALLED, "store 1 has 4 leaders")
    bench.servers.batch = 4
    assert (await bench.check())[0] is READY


async def test_a_store_that_is_removed_has_nothing_to_lose(bench):
    bench.servers.stores[1].state = "Tombstone"
    assert await bench.health() == ""
    assert await bench.check() == (READY, "store 1 is removed")
    await bench.prepare()
    assert bench.servers.list_changes() == []


async def test_a_store_that_is_gone_is_not_asked_about_which_crashes_old_versions(bench):
    bench.servers.is_old = True
    await bench.prepare()
    del bench.servers.stores[1]
    assert (await bench.check())[0] is STALLED
    await bench.provider().release(members.gone(0, net=placement.NET))
    await bench.provider().cancel(one(0))
    assert not bench.servers.has_crashed
    assert len(bench.servers.list_changes()) == 1


# -- the Placement Driver's own faults ---------------------------------------------------------------------------------


async def test_after_a_restart_what_pd_does_not_know_yet_is_no_proof(bench):
    """Its new leader counts no leaders at all until the stores have told it of their regions."""
    await bench.prepare()
    bench.servers.restart()
    assert await bench.check() == (PREPARING, "PD does not know the leaders of 12 of 12 regions")
    bench.servers.hear_of_regions(6)
    bench.servers.batch = 0
    progress, message = await bench.check()
    assert progress is PREPARING
    assert message == "store 1 has 2 leaders; PD does not know the leaders of 6 of 12 regions"
    bench.servers.hear_of_regions()
    bench.servers.batch = 4
    assert (await bench.check())[0] is READY


async def test_without_a_leader_pd_says_nothing(bench):
    await bench.prepare()
    bench.servers.leader = None
    for ask in (bench.provider().check_progress, bench.provider().check_health, bench.provider().cancel):
        with pytest.raises(Unavailable, match="answered 503: .*redirect finds no leader"):
            await ask(one(0))


async def test_a_follower_that_does_not_answer_or_redirects_is_passed_over(bench):
    bench.servers.leader = 2
    bench.servers.frozen.add(0)
    bench.servers.redirecting.add(1)
    assert await bench.health() == ""
    await bench.prepare()
    assert bench.servers.evicted == {1}
    assert {number for number, _ in bench.servers.asked} == {0, 1, 2}
    assert [title for number, title in bench.servers.asked if number == 1 and title.startswith("POST")] == []


async def test_without_the_leader_a_redirect_is_no_answer(bench):
    bench.servers.leader = 2
    bench.servers.redirecting.update((0, 1))
    bench.servers.frozen.add(2)
    with pytest.raises(Unavailable, match="answered 307"):
        await bench.check()


async def test_pods_that_are_ready_are_asked_first(bench):
    unready = replace(bench.pods[0], status=replace(bench.pods[0].status, conditions=()))
    bench.pods[0] = unready
    await bench.check()
    assert {number for number, _ in bench.servers.asked} == {1}


async def test_without_pods_of_pd_nothing_is_known(bench):
    bench.pods.clear()
    with pytest.raises(Unavailable, match="no pod with an address is selected by pdSelector"):
        await bench.check()


class ScriptedDriver(ScriptedMembers):
    """One pod of PD that answers as it is told."""

    async def list_pods(self, selector):
        return (placement.pd_pod(0),)


def scripted(**changes):
    stores = {"count": 1, "stores": [{"store": {"id": 1, "address": "redis-0:20160", "state_name": "Up"}}]}
    answers = {
        "GET /pd/api/v1/stores": (200, stores),
        "GET /pd/api/v1/stores?state=2": (200, {"count": 0, "stores": []}),
        "GET /pd/api/v1/regions/count": (200, {"count": 0, "regions": None}),
        "GET /pd/api/v1/scheduler-config/evict-leader-scheduler/list": (404, "404 page not found"),
        "POST /pd/api/v1/schedulers": (200, json.dumps("The scheduler is created.")),
        **{f"GET /pd/api/v1/{path}": answer for path, answer in changes.items()},
    }
    return ScriptedDriver({"pd-100": answers})


def scripted_provider(access):
    return TikvProviderFactory().make_provider({"pdSelector": placement.SELECTOR}, access)


async def test_a_count_of_leaders_that_is_missing_is_zero():
    report = await scripted_provider(scripted()).check_progress(one(0))
    assert (report.progress, report.message) == (LOST, "store 1 has 0 leaders, and PD does not move them away")


async def test_what_pd_refuses_is_told():
    access = scripted()
    access.answers["pd-100"]["POST /pd/api/v1/schedulers"] = (400, '"store 1 not found"')
    with pytest.raises(LastcallError, match="evict-leader-scheduler of store 1: answered 400: store 1 not found"):
        await scripted_provider(access).prepare(one(0))
    access.answers["pd-100"]["POST /pd/api/v1/schedulers"] = (500, '"scheduler existed"')
    with pytest.raises(Unavailable, match="scheduler existed"):
        await scripted_provider(access).prepare(one(0))


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("stores", (200, {"count": 1})),
        ("stores", (200, "<html>")),
        ("stores", (401, "who are you?")),
        ("regions/count", (200, {"regions": []})),
        ("regions/count", (404, "404 page not found")),
    ],
)
async def test_who_is_not_pd_is_no_proof(path, answer):
    with pytest.raises(LastcallError, match="PD"):
        await scripted_provider(scripted(**{path: answer})).check_progress(one(0))


@pytest.mark.parametrize(
    ("settings", "violation"),
    [
        ({}, "spec.provider.tikv.pdSelector: "),
        ({"pdSelector": {}}, "spec.provider.tikv.pdSelector: {}: needs at least one requirement"),
        ({"pdSelector": {"matchLabel": {}}}, "spec.provider.tikv.pdSelector.matchLabel: {}: unknown field"),
        (
            {"pdSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "spec.provider.tikv.pdSelector.matchExpressions[a].values: []: at least one value",
        ),
        ({"pdSelector": placement.SELECTOR, "pdPort": 0}, "spec.provider.tikv.pdPort: 0: "),
        (
            {"pdSelector": placement.SELECTOR, "caSecret": {"name": "c"}},
            'spec.provider.tikv.caSecret: "c": needs scheme',
        ),
    ],
)
def test_settings_that_are_wrong_are_named(settings, violation):
    found = TikvProviderFactory().check_settings(settings)
    assert any(one.startswith(violation) for one in found), found
    with pytest.raises(InvalidInput):
        TikvProviderFactory().make_provider(settings, members.Loopback())
