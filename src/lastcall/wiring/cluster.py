"""Connects the agent to the objects of its node at the API server."""

import contextlib
import os
from collections.abc import AsyncIterator
from random import Random

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.node_objects import KubeNodeObjects
from lastcall.adapters.kube.pod_endpoints import KubePodEndpoints
from lastcall.graceful.cluster.cluster_node_face import ClusterNodeFace
from lastcall.model.traffic import TrafficSettings
from lastcall.ports.node import NodeFace


@contextlib.asynccontextmanager
async def cluster_node_face(
    kubelet: NodeFace, node_name: str, *, kubeconfig: str, traffic: TrafficSettings
) -> AsyncIterator[ClusterNodeFace]:
    """A face that writes the Node and its pods while the context lasts. InvalidInput if no API server is configured."""
    clock = SystemClock()
    found = access.find_access(clock, os.environ, kubeconfig=kubeconfig)
    http = HttpsTransport(found.endpoint, found.credentials)
    client = Client(http, manager="lastcall-agent")
    endpoints = KubePodEndpoints(client, clock, Random())  # noqa: S311 - it spreads retries
    face = ClusterNodeFace(
        kubelet,
        KubeNodeObjects(client, node_name),
        endpoints,
        boot_id=boot_id(),
        traffic=traffic,
        clock=clock,
    )
    try:
        yield face
    finally:
        await face.close()
        http.close()
