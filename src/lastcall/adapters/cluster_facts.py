"""What ``lastcall doctor`` looks at in a cluster."""

import os

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.resources import PODS
from lastcall.adapters.probes import answered
from lastcall.host import Unknown
from lastcall.model.controller_manager import ControllerManager, in_pod

NAMESPACE = "kube-system"


async def controllers(path: str) -> tuple[ControllerManager, ...] | Unknown:
    """Every kube-controller-manager that is a pod of the cluster, by a kubeconfig; InvalidInput if that is wrong."""
    access = kubeconfig.find(SystemClock(), os.environ, kubeconfig=path)
    http = Http(access.endpoint, access.credentials)
    try:
        return await answered(_pods(Client(http, manager="lastcall-doctor")))
    finally:
        http.close()


async def _pods(client: Client) -> tuple[ControllerManager, ...]:
    found = (await client.list(PODS, namespace=NAMESPACE)).items
    return tuple(
        one for pod in found for one in in_pod(pod.get("spec") or {}, f"pod {NAMESPACE}/{pod['metadata']['name']}")
    )
