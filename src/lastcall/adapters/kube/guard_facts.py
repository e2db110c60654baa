"""What decides about the deletion of guarded pods, read from the API server: no mirror of the cluster is kept."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.recalled_facts import KEPT_SECONDS, RecalledFacts
from lastcall.adapters.kube.recent_reads import RecentReads
from lastcall.adapters.kube.resources import (
    BUDGETS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    GUARD_POLICIES,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    ApiResource,
)
from lastcall.errors import NotFound
from lastcall.model.admission import Removal, RemovalKind
from lastcall.model.base import Facts
from lastcall.model.budgets import Budget
from lastcall.model.guard_config import DEFAULTS, GuardConfig
from lastcall.model.guard_facts import (
    GuardedMetadata,
    GuardedNamespace,
    GuardedNode,
    GuardedTaint,
    GuardFacts,
    PodTaints,
    WorkloadOwner,
    WorkloadSpec,
    WorkloadStatus,
)
from lastcall.model.guard_policy import GuardPolicy
from lastcall.model.pods import OwnerReference, Pod
from lastcall.model.tolerations import Toleration
from lastcall.ports.node import Clock

T = TypeVar("T")

RECENT_SECONDS = 2.0
"""So old may be what a refusal is decided on."""


class _ListedOwner(Facts, frozen=True):
    """An object of a list, which does not say its kind."""

    metadata: GuardedMetadata
    spec: WorkloadSpec | None = None
    status: WorkloadStatus | None = None


class _TaintedNodeSpec(Facts, frozen=True):
    taints: tuple[GuardedTaint, ...] | None = None


class _TaintedNode(Facts, frozen=True):
    spec: _TaintedNodeSpec = _TaintedNodeSpec()


class _TolerantPodSpec(Facts, frozen=True):
    tolerations: tuple[Toleration, ...] | None = None


class _TolerantPod(Facts, frozen=True):
    metadata: GuardedMetadata
    spec: _TolerantPodSpec = _TolerantPodSpec()


_PODS, _POLICIES, _BUDGETS = PODS.with_shape(Pod), GUARD_POLICIES.with_shape(GuardPolicy), BUDGETS.with_shape(Budget)
_NODES = NODES.with_shape(GuardedNode)
_LISTED: Final[Mapping[tuple[str, str], ApiResource[_ListedOwner]]] = {
    ("apps", "StatefulSet"): STATEFUL_SETS.with_shape(_ListedOwner),
    ("apps", "ReplicaSet"): REPLICA_SETS.with_shape(_ListedOwner),
    ("apps", "Deployment"): DEPLOYMENTS.with_shape(_ListedOwner),
}
"""By API group and kind: workloads that are listed, since their other pods matter too."""
_READ: Final[Mapping[tuple[str, str], ApiResource[_ListedOwner]]] = {
    ("apps", "DaemonSet"): DAEMON_SETS.with_shape(_ListedOwner),
    ("batch", "Job"): JOBS.with_shape(_ListedOwner),
    ("batch", "CronJob"): CRON_JOBS.with_shape(_ListedOwner),
    ("", "ReplicationController"): REPLICATION_CONTROLLERS.with_shape(_ListedOwner),
}
"""The same for owners that are read one by one. Others may not be read: they count as existing."""


class KubeGuardFacts:
    """``ports.guard_cluster.GuardFactsReader``. Needs get and list on what it reads, in all guarded namespaces."""

    def __init__(self, client: Client, clock: Clock, config: GuardConfig = DEFAULTS) -> None:
        self._client = client
        self._nothing = GuardFacts(config=config)
        self._recent = RecentReads(clock)
        self._recalled = RecalledFacts(clock)

    async def read_removal_facts(self, removal: Removal, *, fresh: bool) -> GuardFacts:
        """``GuardFactsReader.read_removal_facts``."""
        seconds = 0.0 if fresh else RECENT_SECONDS
        facts = await self._read_surroundings(removal.namespace, seconds)
        if fresh:
            self._recalled.forget(removal.namespace)
        if not facts.policies:
            return await self._unguarded_facts(removal, seconds)
        pod = removal.pod or facts.find_pod(removal.namespace, removal.name)
        if pod is None:
            return facts
        owners = await self._complete_owners(pod, facts.owners, seconds)
        node = await self._find_node(pod.spec.node_name, seconds)
        evicts = removal.kind is RemovalKind.EVICTION
        budgets = await self._list(_BUDGETS, removal.namespace, seconds) if evicts else ()
        nodes = {pod.spec.node_name: node} if node else {}
        return replace(facts, owners=owners, nodes=nodes, budgets=tuple(budgets))

    def recall_removal_facts(self, removal: Removal) -> GuardFacts | None:
        """``GuardFactsReader.recall_removal_facts``; None also for an eviction, and an owner of a kind that is not listed."""
        pod = removal.pod
        if pod is None or not pod.spec.node_name:
            return None
        place = removal.namespace, pod.spec.node_name
        facts = self._recalled.find(*place) or self._recall_facts(*place)
        return facts if facts and facts.policies and _has_all_owners(pod, facts.owners) else None

    def _recall_facts(self, namespace: str, name: str) -> GuardFacts | None:
        """What is remembered of a namespace and a node, with which it is read again in time."""
        seconds = RECENT_SECONDS - KEPT_SECONDS
        around = self._recent.recall(
            _surroundings_key(namespace), partial(self._load_surroundings, namespace), seconds=seconds
        )
        node = self._recent.recall(_NODES.path("", name), partial(self._load_object, _NODES, name), seconds=seconds)
        if around is None or node is None:
            return None
        return self._recalled.compose_facts(namespace, name, around.result(), node.result())

    def counts_still(self, removal: Removal, facts: GuardFacts) -> bool:
        """``GuardFactsReader.counts_still``."""
        return removal.pod is not None and self._recalled.find(removal.namespace, removal.pod.spec.node_name) is facts

    async def read_namespace_facts(self, namespace: str, *, fresh: bool = False) -> GuardFacts:
        """``GuardFactsReader.read_namespace_facts``."""
        policies = await self._list(_POLICIES, namespace, 0.0)
        return await self._read_namespace(namespace, policies, 0.0 if fresh else RECENT_SECONDS)

    async def read_pod_facts(self, namespace: str) -> GuardFacts:
        """``GuardFactsReader.read_pod_facts``."""
        policies, pods, found = await asyncio.gather(
            self.read_policies(namespace),
            self._list(_PODS, namespace, RECENT_SECONDS),
            self._find_namespace(namespace, RECENT_SECONDS),
        )
        namespaces = {namespace: found} if found else {}
        return replace(self._nothing, pods=tuple(pods), namespaces=namespaces, policies=policies)

    async def read_pod_taints(self, pod: Pod) -> PodTaints:
        """``GuardFactsReader.read_pod_taints``. Nothing of it is remembered."""
        node, found = await asyncio.gather(
            self._load_object(NODES.with_shape(_TaintedNode), pod.spec.node_name),
            self._load_object(PODS.with_shape(_TolerantPod), pod.metadata.name, pod.metadata.namespace),
        )
        if node is None or found is None or found.metadata.uid != pod.metadata.uid:
            return PodTaints()
        return PodTaints(taints=node.spec.taints or (), tolerations=found.spec.tolerations or ())

    async def read_policies(self, namespace: str) -> tuple[GuardPolicy, ...]:
        """``GuardFactsReader.read_policies``."""
        return tuple(await self._list(_POLICIES, namespace, 0.0))

    def forget(self, namespace: str) -> None:
        """``GuardFactsReader.forget``."""
        self._recent.forget(_surroundings_key(namespace))
        self._recalled.forget(namespace)

    async def _read_surroundings(self, namespace: str, seconds: float) -> GuardFacts:
        """The policies and what else is in the namespace; nothing else without a policy. Remembered as one answer."""
        return await self._recent.read(
            _surroundings_key(namespace), partial(self._load_surroundings, namespace), seconds=seconds
        )

    async def _load_surroundings(self, namespace: str) -> GuardFacts:
        policies = await self._list(_POLICIES, namespace, 0.0)
        return await self._read_namespace(namespace, policies, 0.0) if policies else self._nothing

    async def _unguarded_facts(self, removal: Removal, seconds: float) -> GuardFacts:
        """An eviction does not show its pod, whose annotation may name a policy that does not exist."""
        pods = [removal.pod] if removal.pod else await self._list(_PODS, removal.namespace, seconds)
        return replace(self._nothing, pods=tuple(pods))

    async def _find_namespace(self, name: str, seconds: float) -> GuardedNamespace | None:
        return await self._find(NAMESPACES.with_shape(GuardedNamespace), name, seconds=seconds)

    async def _find_node(self, name: str, seconds: float) -> GuardedNode | None:
        return await self._find(NODES.with_shape(GuardedNode), name, seconds=seconds) if name else None

    async def _read_namespace(self, name: str, policies: Sequence[GuardPolicy], seconds: float) -> GuardFacts:
        pods, namespace, lists = await asyncio.gather(
            self._list(_PODS, name, seconds),
            self._find_namespace(name, seconds),
            asyncio.gather(*(self._list(resource, name, seconds) for resource in _LISTED.values())),
        )
        kinds = [kind for _, kind in _LISTED]
        return replace(
            self._nothing,
            pods=tuple(pods),
            namespaces={name: namespace} if namespace else {},
            owners=dict(_owner_items(zip(kinds, lists, strict=True))),
            policies=tuple(policies),
        )

    async def _complete_owners(
        self, pod: Pod, owners: Mapping[str, WorkloadOwner], seconds: float
    ) -> Mapping[str, WorkloadOwner]:
        """With the owners of this pod that are of other kinds than those that are listed."""
        known = dict(owners)
        reference = _controller(pod.metadata.owner_references)
        seen: set[str] = set()
        while reference and reference.uid not in seen:
            seen.add(reference.uid)
            if reference.uid not in known:
                owner = await self._read_owner(reference, pod.metadata.namespace, seconds)
                if owner is None:
                    break
                known[reference.uid] = owner
            reference = _controller(known[reference.uid].metadata.owner_references)
        return known

    async def _read_owner(self, reference: OwnerReference, namespace: str, seconds: float) -> WorkloadOwner | None:
        """The owner; None if it does not exist. One that cannot be read counts as existing."""
        kind = (reference.api_version.rpartition("/")[0], reference.kind)
        if kind in _LISTED:
            return None
        if kind not in _READ:
            metadata = GuardedMetadata(name=reference.name, namespace=namespace, uid=reference.uid)
            return WorkloadOwner(kind=reference.kind, metadata=metadata)
        found = await self._find(_READ[kind], reference.name, namespace, seconds=seconds)
        return _with_kind(reference.kind, found) if found and found.metadata.uid == reference.uid else None

    async def _list(self, resource: ApiResource[T], namespace: str, seconds: float) -> Sequence[T]:
        async def load() -> Sequence[T]:
            return (await self._client.list(resource, namespace=namespace)).items

        return await self._recent.read(resource.path(namespace), load, seconds=seconds)

    async def _find(self, resource: ApiResource[T], name: str, namespace: str = "", *, seconds: float) -> T | None:
        load = partial(self._load_object, resource, name, namespace)
        return await self._recent.read(resource.path(namespace, name), load, seconds=seconds)

    async def _load_object(self, resource: ApiResource[T], name: str, namespace: str = "") -> T | None:
        try:
            return await self._client.get(resource, name, namespace=namespace)
        except NotFound:
            return None


def _surroundings_key(namespace: str) -> str:
    """No path of the API begins like this."""
    return f"surroundings of {namespace}"


def _owner_items(lists: Iterable[tuple[str, Sequence[_ListedOwner]]]) -> Iterable[tuple[str, WorkloadOwner]]:
    return ((one.metadata.uid, _with_kind(kind, one)) for kind, listed in lists for one in listed)


def _with_kind(kind: str, owner: _ListedOwner) -> WorkloadOwner:
    return WorkloadOwner(kind=kind, metadata=owner.metadata, spec=owner.spec, status=owner.status)


def _has_all_owners(pod: Pod, owners: Mapping[str, WorkloadOwner]) -> bool:
    """Whether all that control the pod are known."""
    reference, seen = _controller(pod.metadata.owner_references), set[str]()
    while reference and reference.uid in owners and reference.uid not in seen:
        seen.add(reference.uid)
        reference = _controller(owners[reference.uid].metadata.owner_references)
    return reference is None


def _controller(references: Sequence[OwnerReference] | None) -> OwnerReference | None:
    for one in references or ():
        if one.controller:
            return one
    return None
