"""What the API server has of pods, nodes, budgets and the Leases of drains, and who wrote it, for their judge."""

import json
from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from lastcall.model.pods import FINISHED
from lastcall.names import DRAIN_MARK, DRAINS_NAMESPACE, GUARD_READY
from lastcall_lab import virtual
from lastcall_lab.apiserver.storage.store import Store, StoredChange, StoredChangeKind
from lastcall_lab.simulation.truth import BudgetState, CordonState, LeaseState, PodState, Truth

_BUDGETS = "poddisruptionbudgets.policy"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str
    reason: str = ""


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _PodSpec = _PodSpec()
    status: _Status = _Status()


class _NodeSpec(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class _Node(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _NodeSpec = _NodeSpec()


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _LeaseSpec = _LeaseSpec()


class _BudgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    current_healthy: int = 0


class _Budget(msgspec.Struct, frozen=True):
    status: _BudgetStatus = _BudgetStatus()


class GuardWitness(Protocol):
    """Who knows of guarded applications what is so."""

    def had_work(self, app: str, uid: str) -> bool:
        """Whether a pod that goes now is guarded, and its application is not ready to lose it."""
        ...

    def has_missed(self, name: str) -> bool:
        """Whether no guard has answered for a pod that goes now, and its policy lets it go then."""
        ...


def record_drain_facts(store: Store, truth: Truth, guards: GuardWitness) -> None:
    """Tells the truth what there is, and of each change of pods, nodes and budgets, and of the Leases of drains."""
    for pod in store.objects("pods"):
        truth.record_pod_state(_pod_state(pod.data, "", is_gone=False))
    for node in store.objects("nodes"):
        truth.record_cordon_state(node.key.name, _cordon_state(node.data, ""))
    for budget in store.objects(_BUDGETS):
        truth.record_budget_state(budget.key.name, _budget_state(budget.data, ""))
    before = store.on_change
    hearers: dict[str, Callable[[StoredChange, str, Truth], None]] = {
        "pods": partial(_hear_pod, guards),
        "nodes": _hear_node,
        "leases.coordination.k8s.io": _hear_lease,
        _BUDGETS: _hear_budget,
    }

    def hear(change: StoredChange) -> None:
        before(change)
        if hearer := hearers.get(change.new.key.resource):
            process = virtual.current_process()
            hearer(change, process.name if process else "", truth)

    store.on_change = hear


def _hear_pod(guards: GuardWitness, change: StoredChange, by: str, truth: Truth) -> None:
    state = _pod_state(change.new.data, by, is_gone=change.kind is StoredChangeKind.DELETED)
    old = _pod_state(change.old.data, by, is_gone=False) if change.old else None
    begins_to_end = state.is_ending and not ((old and old.is_ending) or state.is_finished)
    if begins_to_end and guards.had_work(state.app, state.uid):
        state = state._replace(had_work=True, is_unanswered=guards.has_missed(state.name))
    if state != old:
        truth.record_pod_state(state)


def _pod_state(data: bytes, by: str, *, is_gone: bool) -> PodState:
    pod = msgspec.json.decode(data, type=_Pod)
    conditions = pod.status.conditions or ()
    return PodState(
        uid=pod.metadata.uid,
        name=pod.metadata.name,
        app=(pod.metadata.labels or {}).get("app", ""),
        node=pod.spec.node_name,
        is_ready=any(one.type == "Ready" and one.status == "True" for one in conditions),
        is_evicted=any(one.type == "DisruptionTarget" and one.reason == "EvictionByEvictionAPI" for one in conditions),
        is_ending=pod.metadata.deletion_timestamp is not None,
        is_gone=is_gone,
        by=by,
        is_finished=pod.status.phase in FINISHED,
        is_held=any(one.type == GUARD_READY and one.status == "False" for one in conditions),
    )


def _hear_node(change: StoredChange, by: str, truth: Truth) -> None:
    state = _cordon_state(change.new.data, by)
    if change.old is None or state != _cordon_state(change.old.data, by):
        truth.record_cordon_state(change.new.key.name, state)


def _cordon_state(data: bytes, by: str) -> CordonState:
    node = msgspec.json.decode(data, type=_Node)
    mark = (node.metadata.annotations or {}).get(DRAIN_MARK)
    claims = json.loads(mark).get("cordoned", False) if mark else None
    return CordonState(is_cordoned=node.spec.unschedulable, claims_cordon=claims, by=by)


def _hear_lease(change: StoredChange, by: str, truth: Truth) -> None:
    if change.new.key.namespace != DRAINS_NAMESPACE:
        return
    lease = msgspec.json.decode(change.new.data, type=_Lease)
    holder = "" if change.kind is StoredChangeKind.DELETED else lease.spec.holder_identity or ""
    truth.record_lease(change.new.key.name.removeprefix("node-"), LeaseState(holder=holder, by=by))


def _hear_budget(change: StoredChange, by: str, truth: Truth) -> None:
    truth.record_budget_state(change.new.key.name, _budget_state(change.new.data, by))


def _budget_state(data: bytes, by: str) -> BudgetState:
    return BudgetState(healthy=msgspec.json.decode(data, type=_Budget).status.current_healthy, by=by)
