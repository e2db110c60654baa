"""What the pods of a node are run with: everything that their workers share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import Object
from lastcall.lab.kubelet.events import Recorder
from lastcall.lab.kubelet.fields import Place
from lastcall.lab.kubelet.node import Node
from lastcall.lab.kubelet.runtime import NodeRuntime
from lastcall.lab.kubelet.settings import Profile, Settings
from lastcall.lab.kubelet.sources import Sources
from lastcall.lab.kubelet.volumes import VolumeManager
from lastcall.ports import Clock


@dataclass(frozen=True, kw_only=True)
class Means:
    """``refusal`` gives reason and message when new pods are not to be admitted now.

    ``held`` by a pod's uid: somebody else ends it, or all pods of this node, now; nothing of it is started, restarted or
    ended meanwhile. ``leaving``: that its end has begun, so that how it ends is for him to say.
    """

    client: Client
    clock: Clock
    random: Random
    settings: Settings
    profile: Profile
    runtime: NodeRuntime
    events: Recorder
    node: Node
    sources: Sources
    volumes: VolumeManager
    refusal: Callable[[], tuple[str, str] | None]
    held: Callable[[str], bool]
    leaving: Callable[[str], bool]

    def place(self, address: str) -> Place:
        """Where a pod with that address runs."""
        allocatable: Mapping[str, Any] = (self.node.known.get("status") or {}).get("allocatable") or {}
        return Place(self.profile.name, self.profile.address, address, allocatable or self.profile.capacity)

    def tell(self, pod: Object, type_: str, reason: str, message: str, container: str = "") -> None:
        """An event about a pod, or about one of its containers."""
        self.events.tell(pod, type_, reason, message, field_path=_field(pod, container) if container else "")


def _field(pod: Object, container: str) -> str:
    inits = {one["name"] for one in pod["spec"].get("initContainers") or ()}
    return f"spec.{'initContainers' if container in inits else 'containers'}{{{container}}}"
