"""What ``lastcall doctor`` looks at in a cluster."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from lastcall import names
from lastcall.adapters import own_port
from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.resources import LEASES, PODS
from lastcall.adapters.probes import answered
from lastcall.errors import NotFound
from lastcall.host import PeersFound, PolicyFound, Unknown
from lastcall.model.controller_manager import ControllerManager, in_pod
from lastcall.model.observed import WatchedLease
from lastcall.model.watchdog_lease import Promise, promised

NAMESPACE = "kube-system"

_LEASES = LEASES.read_as(WatchedLease)


async def controllers(path: str) -> tuple[ControllerManager, ...] | Unknown:
    """Every kube-controller-manager that is a pod of the cluster, by a kubeconfig; InvalidInput if that is wrong."""
    with _client(path) as client:
        return await answered(_pods(client))


async def policies(path: str) -> tuple[PolicyFound, ...] | Unknown:
    """Every FencePolicy of the cluster; none if the cluster knows no such kind. InvalidInput as before."""
    with _client(path) as client:
        return await answered(_policies(client))


async def peers(path: str, port: int) -> PeersFound:
    """What the watchdogs of the nodes would agree by, and this machine's port for it; InvalidInput as before.

    Each is asked for by itself: who asks may read some of it. Of the keys nothing but their sizes is kept.
    """
    with _client(path) as client:
        members = KubeMembers(client)
        nodes, keys, promises = await asyncio.gather(
            answered(members.addresses()), answered(_sizes(members)), answered(_promises(client))
        )
    found = {} if isinstance(nodes, Unknown) else nodes
    here = {name: own_port.bindable(address, port) for name, address in found.items() if own_port.own(address)}
    return PeersFound(nodes=nodes, keys=keys, promises=promises, here=here, host=socket.gethostname().lower())


@contextlib.contextmanager
def _client(path: str) -> Iterator[Client]:
    access = kubeconfig.find(SystemClock(), os.environ, kubeconfig=path)
    http = Http(access.endpoint, access.credentials)
    try:
        yield Client(http, manager="lastcall-doctor")
    finally:
        http.close()


async def _pods(client: Client) -> tuple[ControllerManager, ...]:
    found = (await client.list(PODS, namespace=NAMESPACE)).items
    return tuple(
        one for pod in found for one in in_pod(pod.get("spec") or {}, f"pod {NAMESPACE}/{pod['metadata']['name']}")
    )


async def _policies(client: Client) -> tuple[PolicyFound, ...]:
    try:
        found = (await client.list(POLICIES)).items
    except NotFound:
        return ()
    return tuple(PolicyFound(name=policy["metadata"]["name"], unmet=tuple(_unmet(policy))) for policy in found)


def _unmet(policy: Mapping[str, Any]) -> Iterator[str]:
    for one in (policy.get("status") or {}).get("conditions") or ():
        if one["status"] == "False":
            yield " ".join(one["message"].split())


async def _sizes(members: KubeMembers) -> tuple[int, ...]:
    try:
        return tuple(map(len, await members.keys()))
    except NotFound:
        return ()


async def _promises(client: Client) -> dict[str, Promise]:
    """What stands in the Lease of each node that has one."""
    leases = (await client.list(_LEASES, namespace=names.NODES_NAMESPACE)).items
    said = {lease.metadata.name: promised(lease.metadata.annotations) for lease in leases}
    return {name: promise for name, promise in said.items() if promise}
