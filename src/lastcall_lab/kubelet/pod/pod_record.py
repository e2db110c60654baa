"""The state of one pod on its node, and the status derived from it."""

from dataclasses import replace
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall_lab.kubelet.base.cheap_event import CheapEvent
from lastcall_lab.kubelet.cluster.status_writer import StatusWriter
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.spec import static_pods
from lastcall_lab.kubelet.state import pod_status
from lastcall_lab.kubelet.state.container_facts import ContainerFacts, PodFacts


class PodStateRecord:
    """The pod as last read from the API server, and this node's facts. Each change is written to the server.

    Of a static pod (``is_static``) the server has a mirror pod, under another uid.
    """

    def __init__(self, pod: Object, means: KubeletDeps, *, is_static: bool = False) -> None:
        self.is_static = is_static
        self.api_pod: Object = {}
        """The pod as the API server has it."""
        self.pod: Object = {}
        """The pod as this node knows it."""
        self.replace_pod(pod)
        self.facts = PodFacts(host_ip=means.profile.address)
        self.rejected = False
        self.moved = CheapEvent()
        """Set at every change; a waiter clears it first."""
        self._means = means
        self.writer = StatusWriter(
            means.client,
            means.clock,
            wanted=self.current_status,
            known=lambda: self.api_pod,
            learn=self.update_pod,
            retry=means.settings.retry,
        )

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return str(self.pod["metadata"]["uid"])

    @property
    def is_being_deleted(self) -> bool:
        """Whether its deletion has been requested."""
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    def update_pod(self, pod: Object) -> bool:
        """Stores the pod as the server has it; False if nothing changed."""
        if int(pod["metadata"]["resourceVersion"]) <= int(self.api_pod["metadata"]["resourceVersion"]):
            return False
        self.replace_pod(pod)
        self.notify_change()
        return True

    def replace_pod(self, pod: Object) -> None:
        """Stores a pod of the API without looking at its version."""
        self.api_pod = pod
        self.pod = static_pods.shown_pod(pod) if self.is_static else pod

    def current_status(self) -> Object:
        """The current status."""
        if self.rejected:
            return pod_status.rejected_status(self.pod, self.facts)
        facts = replace(self.facts, leaving=self._means.leaving(self.uid), withdrawn=self._means.withdrawn(self.uid))
        return pod_status.pod_status(self.pod, facts, self._means.clock.wall())

    def set(self, **facts: Any) -> None:
        """Changes some facts of the pod."""
        self._replace_facts(replace(self.facts, **facts))

    def set_container(self, name: str, facts: ContainerFacts) -> None:
        """Changes some facts of one container."""
        self._replace_facts(self.facts.with_container(name, facts))

    def _replace_facts(self, facts: PodFacts) -> None:
        """Notifies only about real changes: a restarted kubelet finds most of its pods unchanged."""
        if facts != self.facts:
            self.facts = facts
            self.notify_change()

    def notify_change(self) -> None:
        """Wakes all waiters."""
        self.writer.mark_changed()
        self.moved.set()

    def tell(self, type_: str, reason: str, message: str, container: str = "") -> None:
        """Records an event about the pod or one of its containers."""
        self._means.record_event(self.pod, type_, reason, message, container)
