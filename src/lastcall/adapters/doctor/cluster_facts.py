"""Facts about a cluster for ``lastcall doctor``."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from lastcall import names
from lastcall.adapters.doctor import address_probes
from lastcall.adapters.doctor.probes import await_probe
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.resources import LEASES, PODS, VALIDATING_WEBHOOKS
from lastcall.doctor.facts import GuardInstallation, PeerFacts, PolicyFacts, UnknownFact
from lastcall.errors import NotFound
from lastcall.model.controller_manager import ControllerManager, managers_in_pod
from lastcall.model.guard_webhooks import NAME, CopyState, read_webhook_state
from lastcall.model.observed import WatchedLease
from lastcall.model.watchdog_lease import WatchdogPromise, parse_promise

NAMESPACE = "kube-system"

_LEASES = LEASES.with_shape(WatchedLease)


async def list_controller_managers(path: str) -> tuple[ControllerManager, ...] | UnknownFact:
    """Lists the kube-controller-managers that run as pods. Raises InvalidInput for a wrong kubeconfig."""
    with _open_client(path) as client:
        return await await_probe(_list_controller_pods(client))


async def list_fence_policies(path: str) -> tuple[PolicyFacts, ...] | UnknownFact:
    """Lists the FencePolicies; none if the cluster has no such kind. Raises InvalidInput for a wrong kubeconfig."""
    with _open_client(path) as client:
        return await await_probe(_list_policies(client))


async def find_guard(path: str) -> GuardInstallation | UnknownFact:
    """Reads the guard's ValidatingWebhookConfiguration. Raises InvalidInput for a wrong kubeconfig."""
    with _open_client(path) as client:
        return await await_probe(_find_guard(client))


async def probe_watchdog_peers(path: str, port: int) -> PeerFacts:
    """Reads what the nodes' watchdogs would agree by, and tries this machine's port. Raises InvalidInput as above.

    Each fact is requested separately, because the user may have the right to read only some. Of the keys only the sizes
    are kept.
    """
    with _open_client(path) as client:
        members = KubeMembers(client)
        nodes, keys, promises = await asyncio.gather(
            await_probe(members.list_addresses()),
            await_probe(_key_sizes(members)),
            await_probe(_promises_by_node(client)),
        )
    found = {} if isinstance(nodes, UnknownFact) else nodes
    here = {
        name: address_probes.try_bind(address, port)
        for name, address in found.items()
        if address_probes.is_own_address(address)
    }
    return PeerFacts(nodes=nodes, keys=keys, promises=promises, here=here, host=socket.gethostname().lower())


@contextlib.contextmanager
def _open_client(path: str) -> Iterator[Client]:
    access = kubeconfig.find_access(SystemClock(), os.environ, kubeconfig=path)
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        yield Client(http, manager="lastcall-doctor")
    finally:
        http.close()


async def _list_controller_pods(client: Client) -> tuple[ControllerManager, ...]:
    found = (await client.list(PODS, namespace=NAMESPACE)).items
    return tuple(
        one
        for pod in found
        for one in managers_in_pod(pod.get("spec") or {}, f"pod {NAMESPACE}/{pod['metadata']['name']}")
    )


async def _list_policies(client: Client) -> tuple[PolicyFacts, ...]:
    try:
        found = (await client.list(POLICIES)).items
    except NotFound:
        return ()
    return tuple(
        PolicyFacts(name=policy["metadata"]["name"], unmet=tuple(_unmet_conditions(policy))) for policy in found
    )


async def _find_guard(client: Client) -> GuardInstallation:
    try:
        found = await client.get(VALIDATING_WEBHOOKS, NAME)
    except NotFound:
        return GuardInstallation()
    return GuardInstallation(
        is_installed=True,
        failure_policies=tuple(one.get("failurePolicy", "Fail") for one in found.get("webhooks") or ()),
        is_withdrawn=read_webhook_state(found).copy is CopyState.WHOLE,
    )


def _unmet_conditions(policy: Mapping[str, Any]) -> Iterator[str]:
    for one in (policy.get("status") or {}).get("conditions") or ():
        if one["status"] == "False":
            yield " ".join(one["message"].split())


async def _key_sizes(members: KubeMembers) -> tuple[int, ...]:
    try:
        return tuple(map(len, await members.read_keys()))
    except NotFound:
        return ()


async def _promises_by_node(client: Client) -> dict[str, WatchdogPromise]:
    """The watchdog promise in the Lease of each node that has one."""
    leases = (await client.list(_LEASES, namespace=names.NODES_NAMESPACE)).items
    said = {lease.metadata.name: parse_promise(lease.metadata.annotations) for lease in leases}
    return {name: promise for name, promise in said.items() if promise}
