"""What the guard's webhook for new pods does beyond the policies of ``test_pod_policies``: it sees Services."""

import pytest
import pytest_asyncio
from support.conformance.objects import pod
from support.conformance.settle_webhook import SettleWebhook

from lastcall.adapters.kube.resources import NAMESPACES, PODS, SERVICES
from lastcall.names import PRIORITY_ANNOTATION, SETTLE_SECONDS, SLEEP_ADDED

IMAGE = "registry.invalid/nothing:1"
OWN = {"preStop": {"exec": {"command": ["/bin/true"]}}}
SLEEP = {"preStop": {"sleep": {"seconds": 7}}}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "u", "controller": True}
BARE = {"name": "c", "image": IMAGE}
DECLARES = {**BARE, "ports": [{"containerPort": 80}]}


@pytest_asyncio.fixture(loop_scope="session")
async def webhook(api, hooks):
    found = SettleWebhook(api, hooks)
    await found.put()
    labels = {"metadata": {"labels": {SETTLE_SECONDS: "default"}}}
    await api.ask("PATCH", NAMESPACES.path(name=api.namespace), labels, kind="application/merge-patch+json")
    return found


async def serve(api, *ports, selector=None, **more):
    """A Service for the pods with the label ``app: web``."""
    spec = {"selector": selector or {"app": "web"}, **({"ports": list(ports)} if ports else {}), **more}
    await api.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec})


async def made(api, *containers, **labels):
    metadata = {"ownerReferences": [OWNER], "labels": labels or {"app": "web", "tier": "front"}}
    return await api.create(PODS, pod(metadata=metadata, containers=list(containers)))


def sleeps(got):
    return [one.get("lifecycle") == SLEEP for one in got["spec"]["containers"]]


@pytest.mark.parametrize(
    ("service", "containers"),
    [
        (({"port": 80},), [BARE]),
        (({"port": 80, "targetPort": 8080},), [BARE]),
        (
            ({"port": 80}, {"name": "b", "port": 81, "targetPort": 8080}),
            [{**DECLARES, "lifecycle": OWN}, BARE | {"name": "d"}],
        ),
    ],
    ids=["the same port", "another port", "one of two is declared"],
)
async def test_a_service_that_uses_a_port_which_nobody_declares(api, webhook, service, containers):
    await serve(api, *({"name": "a", **one} for one in service))
    got = await made(api, *containers)
    assert sleeps(got)[-1]
    assert got["spec"]["terminationGracePeriodSeconds"] == 37
    assert got["metadata"]["annotations"][SLEEP_ADDED] == "7"


async def test_a_headless_service_without_ports(api, webhook):
    await serve(api, clusterIP="None")
    assert sleeps(await made(api, BARE)) == [True]


@pytest.mark.parametrize(
    ("spec", "containers"),
    [
        ({"selector": {"app": "web", "tier": "back"}}, [BARE]),
        ({"type": "ExternalName", "externalName": "example.com"}, [BARE]),
        ({}, [{**DECLARES, "lifecycle": OWN}, {**BARE, "name": "d"}]),
        ({}, [{**BARE, "lifecycle": OWN}]),
    ],
    ids=["of others", "of a name elsewhere", "whose port has a hook", "hooks everywhere"],
)
async def test_services_that_do_not_count(api, webhook, spec, containers):
    await serve(api, {"port": 80}, **spec)
    got = await made(api, *containers)
    assert sleeps(got) == [False] * len(containers)
    assert SLEEP_ADDED not in got["metadata"]["annotations"]
    assert got["metadata"]["annotations"][PRIORITY_ANNOTATION] == "0"


async def test_a_service_from_a_moment_before(api, webhook):
    """What is remembered of the Services lacks it."""
    await made(api, BARE)
    await serve(api, {"port": 80})
    got = await api.create(
        PODS, pod("q", metadata={"ownerReferences": [OWNER], "labels": {"app": "web"}}, containers=[BARE])
    )
    assert sleeps(got) == [True]
