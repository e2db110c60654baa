"""From which sources the priorities of the pods that run here are known, as an agent would look for them."""

import asyncio
import os
import socket
from pathlib import Path

from lastcall.adapters.cri.connection import CriConnection
from lastcall.adapters.cri.pod_cache import read_running_pods
from lastcall.adapters.cri.spec_sources import PodsByUid, SpecSources
from lastcall.adapters.doctor.probes import await_probe, run_probe
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.kubelet_process import find_kubelet_process, flag_value
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.node_access import find_node_access
from lastcall.adapters.kube.resources import PODS
from lastcall.adapters.pods.static_pods import StaticPods
from lastcall.adapters.state.pod_checkpoint import read_checkpoint
from lastcall.doctor.facts import PriorityFacts, UnknownFact
from lastcall.model.own_pods import runtime_uid
from lastcall.model.pods import Pod

_NAME = "hostname-override"
"""The kubelet's flag for its Node's name."""


async def gather_priorities(
    endpoint: str, state_dir: Path, *, static_pod_path: str, kubeconfig: str, root: Path
) -> PriorityFacts | UnknownFact:
    """The sources of the pods' priorities; UnknownFact if the runtime does not list its pods.

    ``kubeconfig`` and ``root`` as in ``find_node_access``.
    """
    name = await asyncio.to_thread(node_name, root)
    known, api = await read_spec_sources(
        name, state_dir, static_pod_path=static_pod_path, kubeconfig=kubeconfig, root=root
    )
    runtime = CriConnection(endpoint)
    try:
        found = await await_probe(read_running_pods(runtime, known, name))
    finally:
        runtime.close()
    if isinstance(found, UnknownFact):
        return found
    return PriorityFacts(sources={live.pod.key: live.priority_source for live in found[0]}, api=api)


async def read_spec_sources(
    name: str, state_dir: Path, *, static_pod_path: str, kubeconfig: str, root: Path
) -> tuple[SpecSources, UnknownFact | None]:
    """What is known about the pods of the node ``name`` outside the runtime, and why the API does not tell, if it does not."""
    watched = await await_probe(_list_own_pods(name, kubeconfig, root))
    checkpoint = await await_probe(asyncio.to_thread(read_checkpoint, state_dir))
    manifests = StaticPods(Path(static_pod_path), name) if static_pod_path else dict[tuple[str, str], Pod]
    known = SpecSources(
        watched={} if isinstance(watched, UnknownFact) else watched,
        checkpoint={} if isinstance(checkpoint, UnknownFact) else checkpoint,
        manifests=await asyncio.to_thread(manifests),
    )
    return known, watched if isinstance(watched, UnknownFact) else None


async def _list_own_pods(name: str, kubeconfig: str, root: Path) -> PodsByUid:
    access = await asyncio.to_thread(find_node_access, SystemClock(), os.environ, kubeconfig=kubeconfig, root=root)
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        listed = await Client(http, manager="lastcall-doctor").list(
            PODS.with_shape(Pod), fields=f"spec.nodeName={name}"
        )
    finally:
        http.close()
    return {runtime_uid(pod): pod for pod in listed.items}


def node_name(root: Path) -> str:
    """The name under which the kubelet here registers its Node."""
    process = run_probe(lambda: find_kubelet_process(root))
    given = "" if process is None or isinstance(process, UnknownFact) else flag_value(process.arguments, _NAME)
    return given or socket.gethostname().lower()
