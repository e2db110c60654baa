"""What is lost on the way to the API server and back, and what becomes of it."""

import math
from dataclasses import replace

import pytest

from lastcall.adapters.kube.resources import LEASES, NODES, PODS
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import Unavailable
from lastcall_lab import virtual
from lastcall_lab.simulation.invariants import Invariant, find_violations
from lastcall_lab.simulation.network_faults import FaultInjector, FaultyTransport, NetworkFault
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario import (
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)


class Pieces:
    """A watch of so many pieces."""

    def __init__(self, many):
        self.left = [b"%d" % one for one in range(many)]

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)

    async def aclose(self):
        self.left = []


class Server:
    """It does what it is asked, and remembers it."""

    def __init__(self):
        self.asked = []

    async def request(self, method, target, headers, body, *, stream=False):
        self.asked.append(f"{method} {target}")
        return ApiResponse(200, {}, Pieces(40) if stream else b"an answer")

    def close(self):
        """Nothing is open."""


OURS = {"user-agent": "lastcall-controller/1"}


class Way:
    """From one program to the server; ``struck`` is what has happened on it."""

    def __init__(self, **condition):
        self.struck, self.server = [], Server()
        self.weather = FaultInjector(virtual.VirtualClock(), "1", lambda kind, step: self.struck.append((kind, step)))
        self.condition = NetworkFault(**condition)
        self.weather.begin(self.condition)
        self.exposed = FaultyTransport(self.server, self.weather, "node-1")

    def ask(self, method="GET", **options):
        return self.exposed.request(method, "/api/v1/namespaces/default/pods/a", {}, b"", **options)


def virtually(test):
    """Runs a test in virtual time."""

    def run():
        virtual.run(test())

    run.__name__ = test.__name__
    return run


@virtually
async def test_of_half_an_answer_nothing_is_known_but_what_was_asked_for_is_done():
    way = Way(halved=1.0)
    with pytest.raises(Unavailable, match="in the middle"):
        await way.ask("DELETE")
    assert way.server.asked == ["DELETE /api/v1/namespaces/default/pods/a"]
    assert way.struck == [("torn answer", "node-1: DELETE pods")]
    way.weather.end(way.condition)
    assert (await way.ask()).body == b"an answer"


@virtually
async def test_watches_are_no_answers_that_are_torn():
    way = Way(halved=1.0)
    assert len([piece async for piece in (await way.ask(stream=True)).body]) == 40
    assert way.struck == []


@virtually
async def test_some_answers_are_torn():
    way = Way(halved=0.5)
    torn = 0
    for _ in range(100):
        try:
            await way.ask()
        except Unavailable:
            torn += 1
    assert 20 < torn < 80


@virtually
async def test_events_that_are_lost_leave_the_watch_open_and_the_others_in_order():
    way = Way(lost=0.5)
    assert way.weather.loses_events
    told = [int(piece) async for piece in (await way.ask(stream=True)).body]
    assert told == sorted(told)
    assert 5 < len(told) < 35
    assert way.struck == [("lost watch event", "node-1: WATCH pods")] * (40 - len(told))
    way.weather.end(way.condition)
    assert not way.weather.loses_events
    assert len([piece async for piece in (await way.ask(stream=True)).body]) == 40


@virtually
async def test_of_another_program_nothing_is_lost():
    way = Way(lost=1.0, halved=1.0, programs=("node-2",))
    assert len([piece async for piece in (await way.ask(stream=True)).body]) == 40
    assert (await way.ask()).body == b"an answer"


@virtually
async def test_a_way_that_swallows_requests_leaves_open_watches_alone():
    way = Way()
    watch = (await way.ask(stream=True)).body
    way.weather.begin(NetworkFault(unheard=True))
    with pytest.raises(Unavailable, match="no answer came in time"):
        await way.ask("DELETE")
    assert way.server.asked == ["GET /api/v1/namespaces/default/pods/a"], "the deletion has not arrived"
    assert len([piece async for piece in watch]) == 40
    assert way.struck == [("lost request", "node-1: DELETE pods")]


@virtually
async def test_a_way_that_swallows_answers_lets_the_deed_be_done():
    way = Way(unanswered=True)
    with pytest.raises(Unavailable, match="no answer came in time"):
        await way.ask("DELETE")
    assert way.server.asked == ["DELETE /api/v1/namespaces/default/pods/a"]
    assert way.struck == [("lost answer", "node-1: DELETE pods")]


@virtually
async def test_a_list_that_is_behind_is_asked_for_at_an_older_revision():
    way = Way(stale=5.0)
    for revision in (1, 2, 3, 4):
        way.weather.note_revision(revision)
        await way.weather.clock.sleep(3.0)
    pods = "/api/v1/pods"
    for target in (pods, f"{pods}?limit=500", f"{pods}?resourceVersion=0", "/api/v1/nodes/node-1"):
        await way.exposed.request("GET", target, OURS, b"")
    exactly = "resourceVersion=3&resourceVersionMatch=Exact"
    assert way.server.asked == [
        f"GET {pods}?{exactly}",
        f"GET {pods}?limit=500&{exactly}",
        f"GET {pods}?resourceVersion=0",
        "GET /api/v1/nodes/node-1",
    ]
    assert way.struck == [("old list", "node-1: GET pods")] * 2
    way.weather.forget_revisions()
    await way.exposed.request("GET", pods, OURS, b"")
    assert way.server.asked[-1] == f"GET {pods}", "what is compacted cannot be listed"


@virtually
async def test_a_kubelet_takes_no_list_that_is_older_than_what_it_has_seen():
    way = Way(stale=5.0)
    way.weather.note_revision(1)
    await way.weather.clock.sleep(6.0)
    pods, kubelet = "/api/v1/pods", {"user-agent": "kubelet/1"}
    await way.exposed.request("GET", f"{pods}?watch=true", kubelet, b"", stream=True)
    await way.exposed.request("GET", pods, kubelet, b"")
    assert way.server.asked == [f"GET {pods}?watch=true", f"GET {pods}"]
    assert (await way.exposed.request("GET", f"{pods}?watch=true", OURS, b"", stream=True)).status == 410


@virtually
async def test_only_the_first_list_of_a_life_is_behind_where_programs_start():
    way, told = Way(stale_starts=5.0), []
    way.weather.listed_old = lambda program, since: told.append((program, since))
    for revision in (1, 2, 3, 4):
        way.weather.note_revision(revision)
        await way.weather.clock.sleep(3.0)
    pods, nodes = "/api/v1/pods", "/api/v1/nodes"

    async def live():
        for target in (pods, nodes, pods):
            await way.exposed.request("GET", target, {}, b"")

    for _ in range(2):
        await virtual.VirtualProcess("node-1").start(live(), "a life")
    old = "?resourceVersion=3&resourceVersionMatch=Exact"
    assert way.server.asked == [f"GET {pods}{old}", f"GET {nodes}{old}", f"GET {pods}"] * 2
    assert way.struck == [("old first list", "node-1: GET pods"), ("old first list", "node-1: GET nodes")] * 2
    assert told == [("node-1", 6.0)] * 4


@virtually
async def test_a_first_list_that_was_refused_is_still_the_first():
    way = Way(stale_starts=5.0)
    way.weather.note_revision(1)
    await way.weather.clock.sleep(6.0)
    answers = iter((429, 200, 200))

    async def request(method, target, *_, **__):
        way.server.asked.append(target)
        return ApiResponse(next(answers), {}, b"")

    way.server.request = request
    for _ in range(3):
        await way.exposed.request("GET", "/api/v1/pods", {}, b"")
    assert ["resourceVersion=1" in target for target in way.server.asked] == [True, True, False]


# -- what becomes of it ------------------------------------------------------------------------------------------------


def drained(*, lasts):
    """A node that hears nothing of its pods is drained; it ends before its watches are mute for so long that it lists."""
    web = ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=2)
    deaf = ScenarioEvent(at=10, verb=Verb.WATCH_LOST, nodes=("node-1",), lasts=lasts, amount=1.0)
    drain = ScenarioEvent(at=20, verb=Verb.DRAIN, nodes=("node-1",))
    return Scenario("deaf", nodes=(NodeGroup(count=2),), workloads=(web,), timeline=(deaf, drain), lasts=200)


def rehearsed(scenario):
    async def main():
        rehearsal = Rehearsal(scenario, 1)
        await rehearsal.run()
        pods = rehearsal.cluster.list_objects(PODS)
        here = [pod for pod in pods if pod["spec"]["nodeName"] == "node-1"]
        ended = [one.at - rehearsal.start for one in rehearsal.cluster.truth.happenings if one.what == "TERM"]
        return build_outcome(rehearsal), [pod["metadata"].get("deletionTimestamp") for pod in here], ended

    return virtual.run(main())


def test_when_the_api_server_has_started_again_everybody_knows_what_was_lost():
    found, left, ended = rehearsed(drained(lasts=90.0))
    assert found.violations == ()
    assert left == []
    assert ended
    assert min(ended) > 100
    assert any(one.kind == "lost watch event" and "WATCH pods" in one.step for one in found.faults)


def misled(verb):
    """A kubelet is killed right after its pods have come, and begins again with a list that may be older than they."""
    web = ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=4)
    here = ("node-1",)
    timeline = (
        ScenarioEvent(at=10, verb=Verb.DRAIN, nodes=("node-2",), lasts=1),
        ScenarioEvent(at=15, verb=verb, nodes=here, lasts=10.0, amount=8.0),
        ScenarioEvent(at=16, verb=Verb.KILL_AGENT, nodes=here, lasts=1.0),
    )

    async def main():
        rehearsal = Rehearsal(Scenario("m", nodes=(NodeGroup(count=2),), workloads=(web,), timeline=timeline), 1)
        await rehearsal.run()
        return rehearsal.run_record(), rehearsal.start

    return virtual.run(main())


def test_a_kubelet_that_begins_with_an_old_list_ends_what_it_has_not_heard_of_and_that_is_told():
    """As ``HandlePodCleanups`` does with pods that no source tells of; nobody can promise a grace by objects then."""
    run, start = misled(Verb.STALE_STARTS)
    assert 17 < run.set_back - start < 20
    assert find_violations(run) == []
    assert {one.rule for one in find_violations(replace(run, set_back=math.inf))} >= {Invariant.UNASKED}
    run, _ = misled(Verb.WATCH_LATE)
    assert run.set_back == math.inf
    assert find_violations(run) == []


def test_while_events_are_lost_nobody_demands_that_anything_ends():
    found, left, ended = rehearsed(drained(lasts=None))
    assert found.violations == ()
    assert left
    assert all(left)
    assert ended == []


@virtually
async def test_after_a_restart_the_revision_that_all_know_is_an_old_one():
    rehearsal = Rehearsal(Scenario("restart", nodes=(NodeGroup(count=1),), lasts=1), 1)
    await rehearsal.run()
    plane = rehearsal.cluster.plane
    for _ in range(2):
        _, known = await plane.admin.list_raw(NODES)
        plane.stop()
        plane.start()
        told = b"".join([one async for one in await plane.admin.watch(NODES, known)])
        assert b'"code":410' in told
    lease = await plane.admin.get(LEASES, "apiserver", namespace="kube-system")
    assert lease["spec"]["renewTime"]
