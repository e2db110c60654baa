"""One object that cannot be written: the rest of its node is failed over all the same, and other nodes are fenced."""

import json

import pytest
from support.failover.small_cluster import World, pod
from support.failover.virtual_cluster import NAMES, failing_over
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.kube.api_errors import ApiStatus, status_error
from lastcall.adapters.kube.api_health import ApiHealth, HealthTrackingTransport
from lastcall.adapters.kube.failover_cluster import COMPONENT
from lastcall.adapters.kube.resources import PODS
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import NotFound, RefusedForSafety, TimedOut, Unavailable
from lastcall.failover.decisions import api_refusals, steps
from lastcall.failover.decisions.case import ApiRefusal
from lastcall_lab.apiserver.server.in_process import InProcessTransport

POLICY = {"limits": {"minHealthy": 1, "settle": "60s", "perDomain": 5, "perHour": 50}}
ALONE = ("podgc", "tainteviction")
"""Who removes pods of lost nodes as well."""
CALL = 'Internal error occurred: failed calling webhook "v.example.org": no endpoints available for service "v"'
DENIAL = 'admission webhook "v.example.org" denied the request: not now'
SICK = "Internal error occurred: unable to decode what is stored"
NOW = 100.0


def said(code, message, **details):
    """As a client raises it."""
    return status_error(ApiStatus(message=message, code=code, details=details))


# -- decided -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [400, 403, 404, 409, 429, 500, 503])
@pytest.mark.parametrize("message", [CALL, DENIAL, DENIAL.removesuffix(": not now") + " without explanation"])
def test_what_a_webhook_does_is_told_by_its_words_whatever_the_code(code, message):
    assert said(code, message).is_by_webhook
    assert not said(code, "too many requests").is_by_webhook
    assert not api_refusals.is_object_gone(said(code, message))
    assert not api_refusals.ends_step(said(code, message), sent=True)


@pytest.mark.parametrize(
    ("failure", "sent", "ends"),
    [
        (RefusedForSafety("it lives"), False, True),
        (RefusedForSafety("it lives"), True, True),
        (TimedOut("no answer"), True, True),
        (Unavailable("away"), True, True),
        (said(500, SICK), True, True),
        (said(500, CALL), True, False),
        (said(500, CALL), False, True),
        (said(403, DENIAL), True, False),
        (said(404, "gone"), True, False),
        (said(409, "changed"), True, False),
    ],
)
def test_which_failures_hold_for_all_objects_of_a_step(failure, sent, ends):
    """What was asked before anything was sent is about the node, or the lease: a webhook there stands in the way of all."""
    assert api_refusals.ends_step(failure, sent=sent) is ends


@pytest.mark.parametrize("failure", [said(500, SICK), Unavailable("away"), TimedOut("no answer")])
def test_what_the_server_fails_at_again_and_again_is_asked_for_ever_more_rarely(failure):
    before, pauses = None, []
    for _ in range(8):
        before = api_refusals.next_refusal(failure, before, NOW)
        pauses.append(before.again - NOW)
    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]
    assert before.why == str(failure)


@pytest.mark.parametrize("failure", [said(code, "a rule") for code in (403, 422)])
def test_what_is_refused_harms_nobody_else_and_is_asked_for_soon(failure):
    assert api_refusals.next_refusal(failure, ApiRefusal(why="w", again=0, pause=160), NOW).again == NOW + 10


@pytest.mark.parametrize("failure", [said(500, CALL), said(403, DENIAL), said(409, DENIAL)])
def test_what_a_webhook_guards_is_asked_for_each_minute_in_the_end(failure):
    before, pauses = None, []
    for _ in range(5):
        before = api_refusals.next_refusal(failure, before, NOW)
        pauses.append(before.again - NOW)
    assert pauses == [10, 20, 40, 60, 60]


def test_what_is_not_as_it_was_read_is_read_again_soon_and_not_for_ever_as_soon():
    before, pauses = None, []
    for _ in range(6):
        before = api_refusals.next_refusal(said(409, "changed"), before, NOW)
        pauses.append(before.again - NOW)
    assert pauses == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("message", ["too many requests", DENIAL])
@pytest.mark.parametrize(("asked", "pause"), [(0, 10), (7, 10), (30, 30), (900, 300)])
def test_a_pause_that_is_asked_for_one_object_is_kept_as_far_as_it_is_bearable(message, asked, pause):
    failure = said(429, message, retryAfterSeconds=asked)
    assert api_refusals.next_refusal(failure, None, NOW).again == NOW + pause


# -- carried out -------------------------------------------------------------------------------------------------------


async def test_what_the_server_fails_at_is_left_out_of_the_next_step():
    world = World()
    world.cluster.trouble = {"a": [said(500, SICK)]}
    with pytest.raises(Unavailable):
        await world.carry_out(steps.ForceDelete, pod("a", phase="Failed"), pod("b", phase="Failed"))
    assert list(world.refusals) == ["a"]
    assert [call[1] for call in world.cluster.calls] == ["b"], "it was under way"


@pytest.mark.parametrize("code", [404, 500])
async def test_what_a_webhook_guards_is_no_trouble_of_the_others(code):
    world = World(room=1)
    world.cluster.trouble = {"a": [said(code, CALL if code == 500 else DENIAL)]}
    await world.carry_out(steps.ForceDelete, *(pod(uid, phase="Failed") for uid in "abc"))
    assert list(world.refusals) == ["a"]
    assert [call[1] for call in world.cluster.calls] == ["b", "c"]
    assert [one.uid for one in world.acted if one.error] == ["a"]
    assert not any(one.gone for one in world.acted)


async def test_what_has_gone_well_or_is_gone_is_refused_no_more():
    world = World()
    subject = await world.subject(pod("a", phase="Failed"), pod("b", phase="Failed"))
    world.refusals.update({uid: ApiRefusal(why="w", again=0, pause=160) for uid in "ab"})
    world.cluster.trouble = {"b": [NotFound("gone")]}
    await world.acting.carry_out(steps.ForceDelete(boot_id="b1", why="w", pods=world.left(subject)), subject)
    assert world.refusals == {}


@pytest.mark.parametrize(("message", "after"), [(DENIAL, NOW), ("too many requests", NOW + 32)])
async def test_a_long_pause_that_one_object_is_answered_does_not_stop_all_others(message, after):
    world = World(room=1)
    world.cluster.trouble = {"a": [said(429, message, retryAfterSeconds=900)]}
    await world.carry_out(steps.ForceDelete, *(pod(uid, phase="Failed") for uid in "abc"))
    assert list(world.refusals) == ["a"]
    assert [call[1] for call in world.cluster.calls] == ["b", "c"]
    assert world.clock.now == after


async def test_a_server_that_asks_for_a_pause_each_time_has_the_last_one_as_well():
    world = World(room=1)
    world.cluster.trouble = {"a": [said(429, "too many requests", retryAfterSeconds=7) for _ in range(5)]}
    await world.carry_out(steps.ForceDelete, *(pod(uid, phase="Failed") for uid in "ab"))
    assert list(world.refusals) == ["a"]
    assert world.clock.now == NOW + 35


class Answers:
    """A transport that gives one answer."""

    def __init__(self, answer):
        self._answer = answer

    async def request(self, method, target, headers, body, *, stream=False):
        return self._answer


@pytest.mark.parametrize(
    ("code", "message", "failed"), [(500, CALL, 0), (503, DENIAL, 0), (500, SICK, 1), (409, "changed", 0)]
)
async def test_a_webhook_that_cannot_be_called_is_no_failure_of_the_server(code, message, failed):
    health = ApiHealth(Hand(NOW))
    body = json.dumps({"kind": "Status", "message": message, "code": code}).encode()
    await HealthTrackingTransport(Answers(ApiResponse(code, {}, body)), health).request("DELETE", "/", {}, b"")
    assert health.run == failed


# -- in a cluster ------------------------------------------------------------------------------------------------------


def guarded(monkeypatch, code, message, **details):
    """All deletions of pods ``aaa`` are answered so; the list grows by one entry for each of the failover controller's."""
    real, asked = InProcessTransport.request, []

    async def request(self, method, target, headers, body, *, stream=False):
        if method == "DELETE" and "/pods/aaa" in target:
            if headers["user-agent"].startswith(COMPONENT):
                asked.append(target)
            status = {"kind": "Status", "status": "Failure", "code": code, "message": message, "details": details}
            return ApiResponse(code, {}, json.dumps(status).encode())
        return await real(self, method, target, headers, body, stream=stream)

    monkeypatch.setattr(InProcessTransport, "request", request)
    return asked


async def beside(world, node):
    """A pod ``aaa`` runs there too."""
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await world.cluster.create(PODS, {"metadata": {"name": "aaa", "labels": {"app": "x"}}, "spec": spec})
    await world.cluster.settle(70)


def bound(world, node):
    """The names of the pods that are bound to it."""
    return [one["metadata"]["name"] for one in world.cluster.all(PODS) if one["spec"].get("nodeName") == node]


async def both_are_failed_over(world, node, seconds):
    """The one with the pod that cannot be deleted, and then another one."""
    world.nodes.pull(node)
    assert await world.until(lambda: world.place() not in (None, node), 120) < 100
    other = next(name for name in NAMES if name != node and bound(world, name))
    world.nodes.pull(other)
    await world.until(lambda: not bound(world, other), seconds)
    assert "aaa" in bound(world, node)


@pytest.mark.parametrize(
    ("code", "message", "seconds"),
    [
        (500, CALL, 180),
        (500, SICK, 900),
        (409, DENIAL, 180),
        (409, "changed", 180),
        (429, DENIAL, 180),
        (429, "too many requests", 180),
    ],
)
def test_one_pod_whose_deletion_fails_stops_neither_its_node_nor_others(monkeypatch, code, message, seconds):
    @failing_over(policy=POLICY, without=ALONE)
    async def scenario(world):
        world.start()
        node = world.place()
        await beside(world, node)
        asked = guarded(monkeypatch, code, message, retryAfterSeconds=900)
        await both_are_failed_over(world, node, seconds)
        asked.clear()
        await world.cluster.settle(300)
        assert 1 <= len(asked) <= 31, "it is tried again, and not without end"

    scenario()
