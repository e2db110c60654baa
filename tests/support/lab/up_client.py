"""A client of a lab that is a process of its own, and what ``kubectl apply`` would put into it."""

import asyncio
from contextlib import contextmanager

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig, resources
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.errors import NotFound
from lastcall.manifests.controller import ControllerChoices, controller_objects


@contextmanager
def client_of(lab):
    """By the lab's kubeconfig: it may do all."""
    access = kubeconfig.load_kubeconfig([lab.kubeconfig], SystemClock())
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        yield Client(http)
    finally:
        http.close()


async def served(call, seconds=60):
    """Calls again until it is no NotFound: a kind is served a moment after its definition was made."""
    for _ in range(seconds * 10):
        try:
            return await call()
        except NotFound:
            await asyncio.sleep(0.1)
    return await call()


async def install_controller(client, policy):
    """All that the controller's manifests hold but what runs in pods, and the policy."""
    for obj in controller_objects(ControllerChoices()):
        if obj["kind"] in ("Namespace", "CustomResourceDefinition", "Lease"):
            group, _, version = obj["apiVersion"].rpartition("/")
            kind = resources.dict_resource(group, version, f"{obj['kind'].lower()}s")
            await client.create(kind, obj, namespace=obj["metadata"].get("namespace", ""))
    await served(lambda: client.create(POLICIES, policy))
