"""What is known of one pod, and what is said of it."""

from dataclasses import replace
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall_lab.kubelet.base.cheap_event import CheapEvent
from lastcall_lab.kubelet.cluster.status_writer import StatusWriter
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.state import pod_status
from lastcall_lab.kubelet.state.container_facts import ContainerFacts, PodFacts


class PodStateRecord:
    """The pod as the API server has it, the facts as this node knows them; what changes is written to the server."""

    def __init__(self, pod: Object, means: KubeletDeps) -> None:
        self.pod = pod
        self.facts = PodFacts(host_ip=means.profile.address)
        self.rejected = False
        self.moved = CheapEvent()
        """Set when anything has changed; who waits for it clears it first."""
        self._means = means
        self.writer = StatusWriter(
            means.client,
            means.clock,
            wanted=self.current_status,
            known=lambda: self.pod,
            learn=self.update_pod,
            retry=means.settings.retry,
        )

    @property
    def uid(self) -> str:
        """The pod's."""
        return str(self.pod["metadata"]["uid"])

    @property
    def is_being_deleted(self) -> bool:
        """Whether somebody has asked for its deletion."""
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    def update_pod(self, pod: Object) -> bool:
        """The pod as the server has it; False if that is no news."""
        if int(pod["metadata"]["resourceVersion"]) <= int(self.pod["metadata"]["resourceVersion"]):
            return False
        self.pod = pod
        self.notify_change()
        return True

    def current_status(self) -> Object:
        """The status as it is now."""
        if self.rejected:
            return pod_status.rejected_status(self.pod, self.facts)
        facts = replace(self.facts, leaving=self._means.leaving(self.uid))
        return pod_status.pod_status(self.pod, facts, self._means.clock.wall())

    def set(self, **facts: Any) -> None:
        """Some facts are others now."""
        self._replace_facts(replace(self.facts, **facts))

    def set_container(self, name: str, facts: ContainerFacts) -> None:
        """Those of one container."""
        self._replace_facts(self.facts.with_container(name, facts))

    def _replace_facts(self, facts: PodFacts) -> None:
        """What is no news wakes nobody: a kubelet that begins anew finds most of its pods as they were."""
        if facts != self.facts:
            self.facts = facts
            self.notify_change()

    def notify_change(self) -> None:
        """Whoever waits looks again."""
        self.writer.mark_changed()
        self.moved.set()

    def tell(self, type_: str, reason: str, message: str, container: str = "") -> None:
        """An event about the pod, or about one of its containers."""
        self._means.record_event(self.pod, type_, reason, message, container)
