"""What is known of one pod, and what is said of it."""

from dataclasses import replace
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall.lab.kubelet import pod_status
from lastcall.lab.kubelet.facts import ContainerFacts, PodFacts
from lastcall.lab.kubelet.flag import Flag
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.status_writer import StatusWriter


class Record:
    """The pod as the API server has it, the facts as this node knows them; what changes is written to the server."""

    def __init__(self, pod: Object, means: Means) -> None:
        self.pod = pod
        self.facts = PodFacts(host_ip=means.profile.address)
        self.rejected = False
        self.moved = Flag()
        """Set when anything has changed; who waits for it clears it first."""
        self._means = means
        self.writer = StatusWriter(
            means.client,
            means.clock,
            wanted=self.wanted,
            known=lambda: self.pod,
            learn=self.learn,
            retry=means.settings.retry,
        )

    @property
    def uid(self) -> str:
        """The pod's."""
        return str(self.pod["metadata"]["uid"])

    @property
    def deleted(self) -> bool:
        """Whether somebody has asked for its deletion."""
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    def learn(self, pod: Object) -> bool:
        """The pod as the server has it; False if that is no news."""
        if int(pod["metadata"]["resourceVersion"]) <= int(self.pod["metadata"]["resourceVersion"]):
            return False
        self.pod = pod
        self.changed()
        return True

    def wanted(self) -> Object:
        """The status as it is now."""
        if self.rejected:
            return pod_status.rejected(self.pod, self.facts)
        facts = replace(self.facts, leaving=self._means.leaving(self.uid))
        return pod_status.status(self.pod, facts, self._means.clock.wall())

    def set(self, **facts: Any) -> None:
        """Some facts are others now."""
        self._know(replace(self.facts, **facts))

    def set_container(self, name: str, facts: ContainerFacts) -> None:
        """Those of one container."""
        self._know(self.facts.having(name, facts))

    def _know(self, facts: PodFacts) -> None:
        """What is no news wakes nobody: a kubelet that begins anew finds most of its pods as they were."""
        if facts != self.facts:
            self.facts = facts
            self.changed()

    def changed(self) -> None:
        """Whoever waits looks again."""
        self.writer.changed()
        self.moved.set()

    def tell(self, type_: str, reason: str, message: str, container: str = "") -> None:
        """An event about the pod, or about one of its containers."""
        self._means.tell(self.pod, type_, reason, message, container)
