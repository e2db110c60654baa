"""The policy that names the guard in new pods, where the API server has the field and where it has not."""

from random import Random

import pytest
import pytest_asyncio
from support.conformance.admission_policies import Policies
from support.conformance.api_client import Api
from support.conformance.objects import pod

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.resources import NAMESPACES, PODS
from lastcall.manifests.guard_responder_policy import PRIORITY, SERVED, responder_policy
from lastcall.names import GUARD_ENABLED, GUARD_RESPONDER, MIRROR_ANNOTATION
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.catalog.optional_resources import LIFECYCLE
from lastcall_lab.apiserver.server.in_process import InProcessTransport

GUARD = {"name": GUARD_RESPONDER, "priority": PRIORITY}
OTHERS = [{"name": f"acme.io/r{number}", "priority": 20000 + number} for number in range(10)]


@pytest_asyncio.fixture(loop_scope="session")
async def newer():
    """A guarded namespace in a lab that serves ``lifecycle.k8s.io``, with the policy in force."""
    api = Api(InProcessTransport(ApiServer(SystemClock(), Random(1), optional=[LIFECYCLE])), "lab")
    await api.begin()
    await put_in_force(api)
    yield api
    await api.end()


async def put_in_force(api, label="true"):
    spec = responder_policy()
    rest = {key: spec[key] for key in spec if key != "mutations"}
    await Policies(api).mutate(*spec["mutations"], binding={"paramRef": SERVED}, **rest)
    await api.ask(
        "PATCH",
        NAMESPACES.path(name=api.namespace),
        {"metadata": {"labels": {GUARD_ENABLED: label}}},
        kind="application/merge-patch+json",
    )


async def responders(api, **more):
    made = await api.create(PODS, pod(**more))
    return made["spec"].get("evictionResponders", [])


async def test_a_new_pod_names_the_guard(newer):
    assert await responders(newer) == [GUARD]


async def test_other_responders_stay(newer):
    found = await responders(newer, evictionResponders=OTHERS[:2])
    assert sorted(found, key=lambda one: one["priority"]) == [GUARD, *OTHERS[:2]]


async def test_a_pod_that_names_the_guard_keeps_its_priority(newer):
    own = {"name": GUARD_RESPONDER, "priority": 50000}
    assert await responders(newer, evictionResponders=[own]) == [own]


async def test_a_pod_with_as_many_responders_as_there_may_be_is_left_alone(newer):
    """Otherwise the API server would refuse it."""
    assert len(await responders(newer, evictionResponders=OTHERS)) == len(OTHERS)


@pytest.mark.parametrize(
    "more", [{"schedulingGroup": {"podGroupName": "g"}}, {"metadata": {"annotations": {MIRROR_ANNOTATION: "x"}}}]
)
async def test_a_pod_that_may_have_none_is_left_alone(newer, more):
    assert await responders(newer, node="n", **more) == []


async def test_a_namespace_that_is_not_guarded(newer):
    await put_in_force(newer, "false")
    assert await responders(newer) == []


async def test_an_api_server_without_the_field_makes_pods_as_before(api):
    await put_in_force(api)
    made = await api.create(PODS, pod())
    assert [one["name"] for one in made["spec"]["containers"]]
