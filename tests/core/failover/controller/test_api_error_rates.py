"""Errors of the API server: one among answers holds nothing back, a share or a run of them does."""

import asyncio
import json
from random import Random

import pytest
from support.failover.small_cluster import Hand
from support.failover.virtual_cluster import NAMES, failing_over

from lastcall.adapters.kube.api_health import PATIENCE, ApiHealth, HealthTrackingTransport
from lastcall.adapters.kube.failover_cluster import COMPONENT, KubeCluster
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import ApiUnavailable, LastcallError, Unavailable
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.storm_guard import StormGuard
from lastcall.model.observed import ClusterEvent
from lastcall_lab.apiserver.server.in_process import InProcessTransport

SICK = json.dumps({"kind": "Status", "status": "Failure", "message": "etcdserver: no leader", "code": 500}).encode()


class Sequence:
    """A transport: each answer is the next code; 0: none."""

    def __init__(self, *codes):
        self.codes = list(codes)

    async def request(self, method, target, headers, body, *, stream=False):
        if (code := self.codes.pop(0)) == 0:
            raise Unavailable("connection reset")
        return ApiResponse(code, {}, SICK if code >= 500 else b"{}")


async def failed(*codes, apart=0.1, method="PATCH"):
    clock = Hand(100.0)
    health = ApiHealth(clock)
    transport = HealthTrackingTransport(Sequence(*codes), health)
    for number in range(len(codes)):
        try:
            await transport.request(method, f"/api/v1/nodes/n{number}?x=y", {}, b"")
        except Unavailable:
            pass
        clock.now += apart
    return health


@pytest.mark.parametrize(
    "codes", [(500,), (0,), (200, 0, 0, 500, 503), (500, 200) * 5, (*[200] * 32, 500) * 10, (*[200] * 9, 0, 0, 500)]
)
async def test_errors_among_answers_are_no_failure_of_the_server(codes):
    assert (await failed(*codes)).failed is None


@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_a_run_of_errors_is_one(method):
    health = await failed(200, 500, 0, 500, 503, 500, method=method)
    assert health.failed == pytest.approx(100.5)
    assert health.trouble == (
        f"5 requests to the API server failed in a row, the last one ({method} /api/v1/nodes/n5: 500)"
    )


async def test_a_share_of_errors_is_one_of_those_of_late_alone():
    assert (await failed(*(200, 200, 500) * 4)).trouble.startswith("4 of 12 requests to the API server failed")
    assert (await failed(*(200, 200, 500) * 4, apart=6.0)).failed is None, "they are too few to be a share"
    assert (await failed(*[500, 200] * 3, *[200] * 9, 500, apart=0.6)).failed is None


async def test_one_object_at_which_the_server_fails_again_and_again_counts_once():
    """It says something of what is read there; another one, or an answer to the same, ends that."""
    clock = Hand(100.0)
    health = ApiHealth(clock)
    transport = HealthTrackingTransport(Sequence(*[500] * 12), health)
    for _ in range(9):
        await transport.request("GET", "/api/v1/nodes/n1", {}, b"")
    assert (health.run, health.failed) == (1, None)
    await transport.request("GET", "/api/v1/nodes/n2", {}, b"")
    await transport.request("GET", "/api/v1/nodes/n1", {}, b"")
    assert health.run == 3


class Deaf:
    """A transport that never answers."""

    async def request(self, method, target, headers, body, *, stream=False):
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(("waited", "run"), [(PATIENCE, 1), (PATIENCE - 0.1, 0)])
async def test_who_gives_up_waiting_for_an_answer_got_none_if_he_has_waited_for_long(waited, run):
    clock = Hand(100.0)
    health = ApiHealth(clock)
    asking = asyncio.create_task(HealthTrackingTransport(Deaf(), health).request("GET", "/x", {}, b""))
    await asyncio.sleep(0)
    clock.now += waited
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert health.run == run


async def test_what_is_written_for_people_alone_never_counts():
    cluster = KubeCluster(Sequence(*[500] * 12), Hand(100.0), Random(1))
    for _ in range(6):
        with pytest.raises(ApiUnavailable):
            await cluster.create_event(ClusterEvent(name="n", uid="u", reason="R", message="m"))
        with pytest.raises(ApiUnavailable):
            await cluster.write_policy_status("p", {})
    assert cluster.api_failed_at is None


@pytest.mark.parametrize(("code", "said"), [(500, "GET /api/v1/nodes/n1: 500"), (0, "GET /api/v1/nodes/n1")])
async def test_an_error_names_what_was_asked(code, said):
    with pytest.raises(LastcallError) as caught:
        await KubeCluster(Sequence(code), Hand(100.0), Random(1)).read_node("n1")
    assert caught.value.request == said


# -- in a cluster ------------------------------------------------------------------------------------------------------


def sick(monkeypatch, chosen):
    """The controller's requests for which ``chosen(number, method, target)`` says so are answered by 500."""
    real, count = InProcessTransport.request, [0]

    async def request(self, method, target, headers, body, *, stream=False):
        if headers["user-agent"].startswith(COMPONENT):
            count[0] += 1
            if chosen(count[0], method, target):
                return ApiResponse(500, {}, SICK)
        return await real(self, method, target, headers, body, stream=stream)

    monkeypatch.setattr(InProcessTransport, "request", request)


@pytest.mark.parametrize("which", ["each 33rd", "events"])
def test_a_node_is_fenced_although_some_requests_fail(monkeypatch, which):
    def chosen(number, method, target):
        return number % 33 == 0 if which == "each 33rd" else method == "POST" and "/events" in target

    @failing_over(policy={"limits": {"minHealthy": 1, "settle": "60s"}})
    async def run(world):
        world.start()
        await world.cluster.settle(90)
        sick(monkeypatch, chosen)
        gone = world.place()
        world.nodes.pull(gone)
        await world.until(lambda: world.verbs("off"), 50)
        await world.until(lambda: world.place() not in (None, gone), 90)

    run()


@failing_over(policy={"limits": {"minHealthy": 1, "settle": "60s"}})
async def test_a_server_that_fails_at_most_requests_holds_fencing_back_and_it_is_said_how_long(world):
    candidate = world.start()
    await world.cluster.settle(90)
    with pytest.MonkeyPatch.context() as patching:
        gone = world.place()
        world.nodes.pull(gone)
        sick(patching, lambda number, method, target: "watch=" not in target and COMPONENT not in target)
        await world.until(lambda: candidate.controller.reconcilers and candidate.controller._cluster.api_failed_at, 90)
        (worker,) = candidate.controller.reconcilers
        assert "nothing can be done now: GET /" in worker.sentence
        assert ": 500: etcdserver: no leader" in worker.sentence
    await world.until(lambda: "requests to the API server failed" in worker.sentence, 60)
    assert worker.step.until is not None
    await world.until(lambda: world.verbs("off"), 120)
    assert world.verbs("off")[0].began >= candidate.controller._cluster.api_failed_at + 60


# -- a view that is not to be trusted ----------------------------------------------------------------------------------


def test_a_watch_that_has_failed_holds_fencing_back():
    from core.failover.controller.test_storm_guard import fence_policy, node, renewed

    from lastcall.model.observed import ObjectChange, WatchedKind

    observing = ClusterView(lambda _: None)
    for name in NAMES:
        observing.handle_change(ObjectChange(WatchedKind.NODES, name, node(name)), 0.0)
        observing.handle_change(ObjectChange(WatchedKind.LEASES, name, renewed(name, 0)), 0.0)
    for what in WatchedKind:
        observing.handle_change(ObjectChange(what, "", None), 0.0)
    for name in NAMES[1:]:
        observing.handle_change(ObjectChange(WatchedKind.LEASES, name, renewed(name, 90)), 90.0)

    class Cluster:
        watch_trouble, api_failed_at, api_trouble = "", None, ""

    cluster = Cluster()
    guard = StormGuard(cluster, observing)
    guard.learn_nodes([], now=99.0, wall=0.0)
    assert guard.may_fence("n1", "n1", fence_policy(), etcd=frozenset(), now=100.0, wall=0.0).allowed
    cluster.watch_trouble = "Lease: connection reset"
    answer = guard.may_fence("n1", "n1", fence_policy(), etcd=frozenset(), now=100.0, wall=0.0)
    assert (answer.allowed, answer.why) == (False, "a watch has failed (Lease: connection reset) 0s ago")
