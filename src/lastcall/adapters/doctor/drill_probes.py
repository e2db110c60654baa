"""Asks, without a change, what a shutdown of this node would depend on: Services, volumes and their drivers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lastcall.adapters.csi.driver_calls import CsiDrivers
from lastcall.adapters.csi.kubelet_directories import KubeletDirectories
from lastcall.adapters.doctor.probes import await_probe
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.adapters.kube.resources import ENDPOINT_SLICES
from lastcall.doctor.drill_facts import DrillVolume, TrafficFacts
from lastcall.doctor.facts import UnknownFact
from lastcall.errors import Unavailable
from lastcall.model.node_volumes import MountedVolume
from lastcall.model.pods import Pod
from lastcall.model.traffic import EndpointSlice, TrafficSettings, find_targets

_SLICES = ENDPOINT_SLICES.with_shape(EndpointSlice)


async def gather_traffic(
    client: Client, pods: Sequence[Pod], settings: TrafficSettings, default_seconds: float
) -> TrafficFacts | UnknownFact:
    """Which of the pods receive traffic now; ``client`` should have the right to list EndpointSlices.

    ``default_seconds`` is the settle time that counts if none is configured and kube-proxy does not tell.
    """
    serving = await await_probe(_list_serving(client, pods))
    if isinstance(serving, UnknownFact):
        return serving
    seconds, source = await _settle_time(settings, default_seconds)
    return TrafficFacts(serving=serving, settle_seconds=seconds, source=source, limit_seconds=settings.limit_seconds)


async def _list_serving(client: Client, pods: Sequence[Pod]) -> frozenset[str]:
    namespaces = sorted({pod.metadata.namespace for pod in pods})
    lists = await asyncio.gather(*(client.list(_SLICES, namespace=namespace) for namespace in namespaces))
    targets = {namespace: find_targets(found.items) for namespace, found in zip(namespaces, lists, strict=True)}
    return frozenset(pod.metadata.uid for pod in pods if targets[pod.metadata.namespace].includes(pod))


async def _settle_time(settings: TrafficSettings, default_seconds: float) -> tuple[float, str]:
    if settings.settle_seconds is not None:
        return settings.settle_seconds, "traffic.settleSeconds"
    learnt = await await_probe(KubeProxyMetrics().read_latency())
    if isinstance(learnt, float):
        return learnt, "measured by kube-proxy"
    return default_seconds, "the default"


async def gather_volumes(kubelet_root: str, pods: Sequence[Pod]) -> tuple[DrillVolume, ...] | UnknownFact:
    """The volumes of these pods that have to be unmounted, each with the reason why it would stay mounted."""
    found = await await_probe(asyncio.to_thread(_list_volumes, KubeletDirectories(kubelet_root), pods))
    if isinstance(found, UnknownFact):
        return found
    drivers = sorted({volume.driver for _, volume in found if isinstance(volume, MountedVolume) and volume.driver})
    calls = CsiDrivers(Path(kubelet_root))
    silent = dict(zip(drivers, await asyncio.gather(*(_silence(calls, one) for one in drivers)), strict=True))
    return tuple(_to_fact(pod, volume, silent) for pod, volume in found)


def _list_volumes(directories: KubeletDirectories, pods: Sequence[Pod]) -> list[tuple[Pod, MountedVolume | str]]:
    """The volumes by pod; the reason in their place if the kubelet's directory of a pod that has some cannot be read."""
    found: list[tuple[Pod, MountedVolume | str]] = []
    for pod in pods:
        try:
            found += ((pod, one) for one in directories.list_volumes(pod.metadata.uid))
        except Unavailable as error:
            if any(one.is_attachable for one in pod.spec.volumes or ()):
                found.append((pod, str(error)))
    return found


async def _silence(drivers: CsiDrivers, name: str) -> str:
    """Why the driver does not answer; "" if it does."""
    answer = await await_probe(drivers.ask_capabilities(name))
    return answer.reason if isinstance(answer, UnknownFact) else ""


def _to_fact(pod: Pod, volume: MountedVolume | str, silent: dict[str, str]) -> DrillVolume:
    if isinstance(volume, str):
        return DrillVolume(pod=pod.key, title="its volumes", problem=volume)
    return DrillVolume(pod=pod.key, title=volume.title, problem=volume.problem or silent.get(volume.driver, ""))
