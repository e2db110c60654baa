"""EvictionRequests of guarded pods in virtual time: what is held, what goes, and what the application is told."""

import asyncio
import logging

import pytest
from support.guard.eviction_world import EvictionWorld

from lastcall.adapters.kube.eviction_requests import EVICTIONS, REQUESTS
from lastcall.guard.eviction_requests.decisions.responder_turns import HEARTBEAT_SECONDS
from lastcall.guard.eviction_requests.eviction_request_loop import ABSENT_SECONDS
from lastcall.manifests.guard_eviction_grants import eviction_request_grants
from lastcall.manifests.rbac import AuditedRequest, ungranted_requests, unused_grants
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.model.eviction_requests import API_VERSION
from lastcall.model.guard_policy import PreparationState
from lastcall.names import GUARD_RESPONDER, GUARD_USER
from lastcall_lab import virtual

EVICTOR = "imperative-eviction.k8s.io/evictor"
KUBERNETES = "1.37"


def play(story, **how):
    async def main():
        world = EvictionWorld(**how)
        await world.open_namespace()
        world.lead()
        making = asyncio.ensure_future(world.run_stateful_set())
        await world.sleep(1)
        await story(world)
        making.cancel()
        await world.close()
        return world

    return virtual.run(main())


async def outcome(world, number=0):
    """The conditions that are True, and the states of the responders, of one Eviction; and those of its request."""
    one, request = (await world.read_evictions())[number], (await world.read_requests())[number]
    states = {target.name: target.state.value for target in one.status.target_responders}
    return true_conditions(one), states, true_conditions(request)


def true_conditions(obj):
    return {one.type: one.reason for one in obj.status.conditions if one.status == "True"}


def test_a_guarded_pod_is_held_while_its_application_prepares_and_evicted_when_it_is_ready():
    async def story(world):
        world.application.seconds = 100
        pod = world.pods["db-1"]
        await world.requester.request(pod.metadata)
        await world.sleep(60)
        assert not world.tries
        [eviction] = await world.read_evictions()
        said = eviction.find_progress(GUARD_RESPONDER)
        assert "% done" in said.message
        assert said.heartbeat_time is not None
        assert eviction.metadata.labels == {
            "lastcall.dev/drain": "requester",
            GUARD_RESPONDER: "responder",
            EVICTOR: "responder",
        }
        await world.sleep(80)
        conditions, states, of_request = await outcome(world)
        assert conditions == of_request == {"TargetEvicted": "PodDeleted"}
        assert states == {GUARD_RESPONDER: "Completed", EVICTOR: "Completed"}
        assert len(world.tries) == 1
        await world.sleep(120)
        assert world.entry("db-1").state is PreparationState.RELEASED

    world = play(story)
    [(_, _, was_safe, _)] = world.went
    assert was_safe
    assert not world.application.moves


def test_a_withdrawn_request_tells_the_application_and_the_pod_stays():
    async def story(world):
        world.application.seconds = 100
        pod = world.pods["db-1"]
        await world.requester.request(pod.metadata)
        await world.sleep(30)
        assert world.application.moves
        await world.requester.withdraw(pod.metadata)
        await world.sleep(15)
        conditions, states, of_request = await outcome(world)
        assert conditions == of_request == {"Failed": "CanceledDueToNoRequesters"}
        assert states == {GUARD_RESPONDER: "Canceled", EVICTOR: "Inactive"}
        assert world.calls("cancel") == [pod.metadata.uid]

    world = play(story)
    assert not world.application.moves
    assert not world.went


@pytest.mark.parametrize("how", ["deleted", "deleted-while-nobody-leads"])
def test_an_eviction_that_is_gone_is_abandoned_too(how):
    async def story(world):
        world.application.seconds = 1000
        pod = world.pods["db-1"]
        await world.requester.request(pod.metadata)
        await world.sleep(30)
        if how == "deleted-while-nobody-leads":
            await world.kill_leader()
        await world.requester.forget(pod.metadata)
        await world.collect_garbage()
        if world.leader is None:
            world.lead()
        await world.sleep(30)
        assert world.calls("cancel") == [pod.metadata.uid]

    assert not play(story).went


def test_a_wish_after_a_withdrawal_is_carried_out():
    async def story(world):
        pod = world.pods["db-1"]
        world.application.seconds = 20
        await world.requester.request(pod.metadata)
        await world.sleep(10)
        await world.requester.withdraw(pod.metadata)
        await world.sleep(10)
        await world.requester.request(pod.metadata)
        await world.sleep(60)
        assert [one.metadata.name for one in await world.read_evictions()] == ["pod-1-db-1", "pod-2-db-1"]
        assert true_conditions((await world.read_requests())[0]) == {"TargetEvicted": "PodDeleted"}

    assert [was_safe for _, _, was_safe, _ in play(story).went] == [True]


def test_an_application_that_cannot_prepare_is_held_for_ever_and_the_guard_keeps_its_turn():
    async def story(world):
        world.application.is_frozen = True
        await world.requester.request(world.pods["db-1"].metadata)
        await world.sleep(3 * HEARTBEAT_SECONDS)
        conditions, states, _ = await outcome(world)
        assert (conditions, states[GUARD_RESPONDER]) == ({}, "Active")
        [eviction] = await world.read_evictions()
        assert "needs a person: a replica does not follow" in eviction.find_progress(GUARD_RESPONDER).message

    world = play(story)
    assert not world.went
    assert not world.tries


def test_a_guard_that_is_away_is_passed_over_after_twenty_minutes_and_its_webhook_still_holds():
    async def story(world):
        world.application.seconds = 30
        world.application.is_frozen = True
        await world.requester.request(world.pods["db-1"].metadata)
        await world.sleep(30)
        await world.kill_leader()
        await world.sleep(HEARTBEAT_SECONDS - 60)
        world.lead()
        await world.sleep(20)
        assert (await outcome(world))[1] == {GUARD_RESPONDER: "Active", EVICTOR: "Inactive"}
        await world.kill_leader()
        await world.sleep(HEARTBEAT_SECONDS + 60)
        world.lead()
        await world.sleep(60)
        assert (await outcome(world))[1] == {GUARD_RESPONDER: "Interrupted", EVICTOR: "Active"}
        assert world.tries, "the evictor asks"
        assert not world.went, "and the guard's webhook refuses"
        world.application.is_frozen = False
        await world.sleep(700)
        assert (await outcome(world))[0] == {"TargetEvicted": "PodDeleted"}

    assert [was_safe for _, _, was_safe, _ in play(story).went] == [True]


def test_two_members_that_are_to_go_at_once_go_one_after_the_other():
    async def story(world):
        await asyncio.gather(*(world.requester.request(world.pods[name].metadata) for name in ("db-0", "db-2")))
        await world.sleep(25)
        assert len(world.went) == 1
        waiting = [one for one in await world.read_evictions() if not one.is_over]
        assert any("is in front" in one.find_progress(GUARD_RESPONDER).message for one in waiting)
        await world.sleep(120)
        assert len(world.went) == 2

    world = play(story)
    assert all(was_safe for _, _, was_safe, _ in world.went)


def test_a_budget_that_refuses_is_asked_again_and_a_withdrawal_undoes_the_preparation_then():
    async def story(world):
        world.budget = "Cannot evict pod as it would violate the pod's disruption budget."
        pod = world.pods["db-1"]
        await world.requester.request(pod.metadata)
        await world.sleep(300)
        assert 4 <= len(world.tries) <= 10, "its backoff grows"
        [eviction] = await world.read_evictions()
        assert "disruption budget" in eviction.find_progress(EVICTOR).message
        await world.requester.withdraw(pod.metadata)
        await world.sleep(15)
        assert (await outcome(world))[1] == {GUARD_RESPONDER: "Completed", EVICTOR: "Canceled"}
        assert world.calls("cancel") == [pod.metadata.uid]

    assert not play(story).went


def test_a_pod_without_the_responder_is_evicted_by_the_api_alone_which_the_webhook_holds():
    async def story(world):
        await world.requester.request(world.pods["db-1"].metadata)
        await world.sleep(60)
        assert (await outcome(world))[0] == {"TargetEvicted": "PodDeleted"}

    world = play(story, has_responder=False)
    assert len(world.tries) > 1
    assert [was_safe for _, _, was_safe, _ in world.went] == [True]


def test_the_rights_are_those_that_are_used_and_the_objects_those_of_kubernetes():
    """But for what the world has no API for: pods, and their evictions."""
    validate = pytest.importorskip("kubernetes_validate").validate
    stored = []

    async def story(world):
        await world.requester.request(world.pods["db-0"].metadata)
        await world.requester.request(world.pods["db-1"].metadata)
        await world.sleep(20)
        await world.requester.withdraw(world.pods["db-1"].metadata)
        await world.sleep(60)
        for resource, kind in ((EVICTIONS, "Eviction"), (REQUESTS, "EvictionRequest")):
            found = (await world.client.list(resource.with_shape(dict))).items
            assert len(found) == 2
            stored.extend({"apiVersion": API_VERSION, "kind": kind, **obj} for obj in found)

    world = play(story)
    for obj in stored:
        assert validate(obj, KUBERNETES, strict=True) == KUBERNETES
    requests = [
        AuditedRequest(**{field: getattr(one, field) for field in AuditedRequest._fields})
        for one in world.server.audit.records
        if one.user == GUARD_USER
    ]
    grants = eviction_request_grants(EvictionRequestMode.CONTROL)
    assert ungranted_requests(grants, requests) == []
    assert {(grant.resource, verb) for grant, verb in unused_grants(grants, requests)} == {("pods/eviction", "create")}


def test_without_the_api_there_is_one_line_and_the_rest_of_the_guard_works(caplog):
    caplog.set_level(logging.WARNING)

    async def story(world):
        await world.ask_until_gone("db-1")
        await world.sleep(2 * ABSENT_SECONDS)

    world = play(story, optional=())
    [line] = [one for one in caplog.messages if "EvictionRequests" in one]
    assert line == (
        "EvictionRequests are not answered, and all else of the guard works: the API server does not serve"
        " lifecycle.k8s.io/v1alpha1, which Kubernetes 1.37 has behind EvictionRequestAPI"
    )
    assert [was_safe for _, _, was_safe, _ in world.went] == [True]
