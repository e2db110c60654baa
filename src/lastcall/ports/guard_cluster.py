"""Port for the cluster as the guard sees it; ``adapters.kube.guard_cluster`` implements it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from lastcall.model.admission import Removal
from lastcall.model.guard_facts import GuardFacts, PodTaints
from lastcall.model.guard_policy import GuardPolicy, GuardPolicyCondition, HeldPod
from lastcall.model.pod_creation import PodService
from lastcall.model.pods import Pod, StatusCondition
from lastcall.ports.guard import GuardProvider

EntryChange = Callable[[GuardPolicy, HeldPod | None], HeldPod | None]
"""What becomes of a pod's entry in the policy as it is stored now; None leaves it as it is."""


class GuardFactsReader(Protocol):
    """Reads what decides about deletions. Errors are those of the API client."""

    async def read_removal_facts(self, removal: Removal, *, fresh: bool) -> GuardFacts:
        """The surroundings of one removal.

        ``fresh``: all of it is read now; otherwise all may be some seconds old.
        """
        ...

    def recall_removal_facts(self, removal: Removal) -> GuardFacts | None:
        """The same, some seconds old at most, if it is known now; None if something has to be read.

        None also if no policy guards the pod's namespace, or the pod is not known.
        """
        ...

    def counts_still(self, removal: Removal, facts: GuardFacts) -> bool:
        """Whether what was recalled for a removal is still what would be recalled. False if it has to be looked for."""
        ...

    async def read_pod_facts(self, namespace: str) -> GuardFacts:
        """The same without the workloads: three requests, and not one for each kind."""
        ...

    async def read_pod_taints(self, pod: Pod) -> PodTaints:
        """The taints of the pod's node and the pod's tolerations, read now."""
        ...

    async def read_policies(self, namespace: str) -> tuple[GuardPolicy, ...]:
        """The GuardPolicies of a namespace, "" for all, read now."""
        ...

    def forget(self, namespace: str) -> None:
        """The caller has changed a GuardPolicy of the namespace: it is of use to read what was remembered again."""
        ...

    async def read_namespace_facts(self, namespace: str, *, fresh: bool = False) -> GuardFacts:
        """All pods, workloads and GuardPolicies of a namespace.

        GuardPolicies are read now, the rest may be some seconds older unless ``fresh``.
        """
        ...


class GuardRecords(Protocol):
    """The entries of held pods in the status of GuardPolicies."""

    async def change_entry(self, policy: GuardPolicy, uid: str, change: EntryChange) -> HeldPod | None:
        """Changes one entry by compare-and-set: ``change`` is asked again after each conflict.

        Returns the entry as it is stored afterwards; None if the policy or the entry is gone.
        """
        ...

    async def remove_entry(self, policy: GuardPolicy, uid: str) -> None:
        """Removes one entry. Without effect if it is gone."""
        ...

    async def write_policy_condition(self, policy: GuardPolicy, condition: GuardPolicyCondition) -> None:
        """Writes the policy's one condition. Without effect if the policy has changed meanwhile, or is gone."""
        ...


class GuardHolds(Protocol):
    """Whether deletions are held at all."""

    async def end(self) -> None:
        """Removes the guard's webhooks: nothing is held from then on. Without effect if they are gone.

        Errors are those of the API client.
        """
        ...


class GuardActions(Protocol):
    """What the guard does besides."""

    async def delete_pod(self, pod: Pod, grace: int | None) -> None:
        """Deletes exactly this pod, as the releaser. Without effect if it is gone. Errors are those of the API client."""
        ...

    async def write_condition(self, pod: Pod, condition: StatusCondition | None) -> None:
        """Writes the pod's condition ``lastcall.dev/GuardReady``, or removes it. Without effect if the pod is gone."""
        ...

    async def write_event(self, pod: Pod, reason: str, message: str, *, is_warning: bool) -> None:
        """Writes an Event on the pod and on its owner; an error is logged."""
        ...


class GuardPolicies(Protocol):
    """The GuardPolicies of the cluster, as last heard of."""

    @property
    def by_key(self) -> Mapping[tuple[str, str], GuardPolicy]:
        """All of them by namespace and name."""
        ...

    @property
    def changes(self) -> int:
        """How many changes were heard of; -1 as long as the policies were not listed."""
        ...

    async def wait_for_change(self, seen: int) -> int:
        """Waits until the number of changes is another than ``seen``, and returns it."""
        ...


class NodeShutdowns(Protocol):
    """The shutdowns that agents have recorded on their Nodes, as last heard of."""

    @property
    def deadlines(self) -> Mapping[str, datetime]:
        """When the machines are gone, by the Node's name. An old record stays until the node's next boot."""
        ...

    @property
    def changes(self) -> int:
        """How often the deadlines have changed."""
        ...

    async def wait_for_change(self, seen: int) -> int:
        """Waits until the number of changes is another than ``seen``, and returns it."""
        ...


class GuardProviders(Protocol):
    """Providers of GuardPolicies."""

    def make_policy_provider(self, policy: GuardPolicy) -> GuardProvider:
        """The provider with the policy's settings. InvalidInput names each violation."""
        ...


class PodSurroundings(Protocol):
    """Reads what decides about new pods. Errors are those of the API client."""

    async def read_settle_label(self, namespace: str) -> str | None:
        """The value of the namespace's label ``lastcall.dev/settle-seconds`` now; None if it has none."""
        ...

    async def read_services(self, namespace: str, *, fresh: bool) -> Sequence[PodService]:
        """The Services of the namespace; some seconds old unless ``fresh``."""
        ...
