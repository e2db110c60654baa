"""The shared dependencies of a node's pod workers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import Object
from lastcall.ports.node import Clock
from lastcall_lab.kubelet.base.node_runtime import NodeRuntime
from lastcall_lab.kubelet.base.settings import KubeletSettings, NodeProfile
from lastcall_lab.kubelet.cluster.config_sources import ConfigSources
from lastcall_lab.kubelet.cluster.event_recorder import KubeletEventRecorder
from lastcall_lab.kubelet.cluster.node_reporter import NodeReporter
from lastcall_lab.kubelet.spec.field_refs import PodLocation
from lastcall_lab.kubelet.volumes.volume_manager import VolumeManager


@dataclass(frozen=True, kw_only=True)
class KubeletDeps:
    """``refusal`` returns reason and message while the node does not admit new pods.

    ``held(uid)``: another component currently ends this pod, or all pods of the node; the kubelet does not start,
    restart or stop anything of it meanwhile. ``leaving(uid)``: another component has begun to end this pod and owns its
    final status. ``withdrawn(uid)``: the pod is not ready whatever its containers say, because it is about to end.
    """

    client: Client
    clock: Clock
    random: Random
    settings: KubeletSettings
    profile: NodeProfile
    runtime: NodeRuntime
    events: KubeletEventRecorder
    node: NodeReporter
    sources: ConfigSources
    volumes: VolumeManager
    refusal: Callable[[], tuple[str, str] | None]
    held: Callable[[str], bool]
    leaving: Callable[[str], bool]
    withdrawn: Callable[[str], bool]

    def pod_location(self, address: str) -> PodLocation:
        """The location of a pod with that address."""
        allocatable: Mapping[str, Any] = (self.node.known.get("status") or {}).get("allocatable") or {}
        return PodLocation(self.profile.name, self.profile.address, address, allocatable or self.profile.capacity)

    def record_event(self, pod: Object, type_: str, reason: str, message: str, container: str = "") -> None:
        """Records an event about a pod or one of its containers."""
        self.events.record_event(
            pod, type_, reason, message, field_path=_field_path(pod, container) if container else ""
        )


def _field_path(pod: Object, container: str) -> str:
    inits = {one["name"] for one in pod["spec"].get("initContainers") or ()}
    return f"spec.{'initContainers' if container in inits else 'containers'}{{{container}}}"
