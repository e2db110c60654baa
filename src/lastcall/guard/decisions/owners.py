"""The objects that control a pod, up to the workload that a person made (pure)."""

from lastcall.model.base import Facts
from lastcall.model.guard_facts import GuardFacts, WorkloadOwner
from lastcall.model.pods import OwnerReference, Pod


class OwnerChain(Facts, frozen=True):
    """The controllers from the pod's own upwards. ``missing`` is the first one that does not exist, or None."""

    owners: tuple[WorkloadOwner, ...] = ()
    missing: OwnerReference | None = None

    @property
    def top_uid(self) -> str:
        """The uid of the topmost controller; "" for a pod without one."""
        return self.missing.uid if self.missing else self.owners[-1].metadata.uid if self.owners else ""

    @property
    def deleted_owner(self) -> WorkloadOwner | None:
        """The first controller that is being deleted."""
        for one in self.owners:
            if one.metadata.deletion_timestamp is not None:
                return one
        return None

    @property
    def workload(self) -> WorkloadOwner | None:
        """The topmost controller with a number of replicas: an old ReplicaSet without any is no workload without any."""
        for one in reversed(self.owners):
            if one.spec is not None and one.spec.replicas is not None:
                return one
        return None


def list_owners(pod: Pod, facts: GuardFacts) -> OwnerChain:
    """The chain of controllers of a pod."""
    found: list[WorkloadOwner] = []
    reference = _controller(pod.metadata.owner_references)
    while reference and reference.uid not in {one.metadata.uid for one in found}:
        owner = facts.owners.get(reference.uid)
        if owner is None:
            return OwnerChain(owners=tuple(found), missing=reference)
        found.append(owner)
        reference = _controller(owner.metadata.owner_references)
    return OwnerChain(owners=tuple(found))


def _controller(references: tuple[OwnerReference, ...] | None) -> OwnerReference | None:
    for one in references or ():
        if one.controller:
            return one
    return None
