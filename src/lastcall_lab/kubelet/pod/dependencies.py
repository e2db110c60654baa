"""What the pods of a node are run with: everything that their workers share."""

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
    """``refusal`` gives reason and message when new pods are not to be admitted now.

    ``held`` by a pod's uid: somebody else ends it, or all pods of this node, now; nothing of it is started, restarted or
    ended meanwhile. ``leaving``: that its end has begun, so that how it ends is for him to say.
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

    def pod_location(self, address: str) -> PodLocation:
        """Where a pod with that address runs."""
        allocatable: Mapping[str, Any] = (self.node.known.get("status") or {}).get("allocatable") or {}
        return PodLocation(self.profile.name, self.profile.address, address, allocatable or self.profile.capacity)

    def record_event(self, pod: Object, type_: str, reason: str, message: str, container: str = "") -> None:
        """An event about a pod, or about one of its containers."""
        self.events.record_event(
            pod, type_, reason, message, field_path=_field_path(pod, container) if container else ""
        )


def _field_path(pod: Object, container: str) -> str:
    inits = {one["name"] for one in pod["spec"].get("initContainers") or ()}
    return f"spec.{'initContainers' if container in inits else 'containers'}{{{container}}}"
