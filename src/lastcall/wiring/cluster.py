"""Connects the agent to the objects of its node at the API server."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from random import Random

from lastcall.adapters.csi.kubelet_directories import KubeletDirectories
from lastcall.adapters.csi.node_volumes import CsiNodeVolumes
from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.kubeconfig import ClusterAccess, find_access
from lastcall.adapters.kube.node_objects import KubeNodeObjects
from lastcall.adapters.kube.pod_endpoints import KubePodEndpoints
from lastcall.adapters.kube.pod_owners import KubePodOwners
from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.adapters.systemd.host_unmount import HostUnmount
from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError
from lastcall.graceful.cluster.cluster_node_face import ClusterNodeFace
from lastcall.model.pods import Pod
from lastcall.model.traffic import TrafficSettings
from lastcall.ports.node import Clock, KubeletFace


@contextlib.asynccontextmanager
async def cluster_node_face(
    kubelet: KubeletFace,
    node_name: str,
    *,
    client: Callable[[], Client | None],
    kubeconfig: str,
    in_cluster: bool,
    traffic: TrafficSettings,
    observe_withdrawal: Callable[[float], None],
    find_pod: Callable[[str], Pod | None],
    kubelet_root: str,
) -> AsyncIterator[ClusterNodeFace]:
    """A face that writes the Node and its pods while the context lasts.

    ``client`` has the node's identity, and returns None as long as none is known. EndpointSlices are read with the
    agent's own identity, of ``kubeconfig`` or of its pod, since the Node authorizer refuses them; without one they are
    read with ``client``. ``kubelet_root`` is the kubelet's --root-dir.
    """
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as opened:
        reader = client
        if own := _own_access(clock, kubeconfig, in_cluster=in_cluster):
            http = HttpsTransport(own.endpoint, own.credentials)
            opened.callback(http.close)
            preparing = asyncio.create_task(http.prepare(), name="TLS of the agent's own identity")
            opened.push_async_callback(cancel_and_wait, preparing)
            own_client = Client(http, manager="lastcall-agent")
            reader = lambda: own_client  # noqa: E731 - as ``client``
        face = ClusterNodeFace(
            kubelet,
            KubeNodeObjects(client, node_name, clock),
            KubePodEndpoints(reader, clock, Random()),  # noqa: S311 - spreads retries
            KubeProxyMetrics(),
            KubePodOwners(reader),
            volumes=CsiNodeVolumes(KubeletDirectories(kubelet_root), HostUnmount(clock)),
            find_pod=find_pod,
            boot_id=boot_id(),
            traffic=traffic,
            clock=clock,
            observe_withdrawal=observe_withdrawal,
        )
        opened.push_async_callback(face.close)
        yield face


def _own_access(clock: Clock, kubeconfig: str, *, in_cluster: bool) -> ClusterAccess | None:
    """None also if it is not valid: the record of the shutdown, which needs it too, reports that."""
    with contextlib.suppress(LastcallError):
        return find_access(clock, os.environ, kubeconfig=kubeconfig) if kubeconfig or in_cluster else None
    return None
