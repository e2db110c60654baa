"""What the API server has of nodes, endpoints and Jobs at each moment, for the judge of an agent beside a kubelet."""

from typing import NamedTuple

import msgspec

from lastcall.names import DRAIN_IN_PROGRESS, NODE_SHUTDOWN_MARK, SHUTDOWN_IN_PROGRESS
from lastcall_lab.apiserver.storage.store import Store, StoredChange, StoredChangeKind
from lastcall_lab.simulation.truth import JobFailures, NodeObjectState, Truth

_SHUTDOWN = (SHUTDOWN_IN_PROGRESS, DRAIN_IN_PROGRESS)


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    name: str = ""
    annotations: dict[str, str] | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _NodeSpec(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class _NodeStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Node(msgspec.Struct, frozen=True):
    metadata: _Metadata
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class _Reference(msgspec.Struct, frozen=True):
    uid: str = ""


class _EndpointConditions(msgspec.Struct, frozen=True):
    ready: bool | None = None
    terminating: bool | None = None


class _Endpoint(msgspec.Struct, frozen=True, rename="camel"):
    target_ref: _Reference | None = None
    conditions: _EndpointConditions = _EndpointConditions()


class _Slice(msgspec.Struct, frozen=True):
    endpoints: list[_Endpoint] | None = None


class _JobStatus(msgspec.Struct, frozen=True):
    failed: int = 0


class _Job(msgspec.Struct, frozen=True):
    metadata: _Metadata
    status: _JobStatus = _JobStatus()


class _Known(NamedTuple):
    nodes: dict[str, NodeObjectState]
    slices: dict[str, frozenset[str]]
    failed: dict[str, int]


def record_objects(store: Store, truth: Truth) -> None:
    """Records each change of what the truth has of objects."""
    before, known = store.on_change, _Known({}, {}, {})

    def hear(change: StoredChange) -> None:
        before(change)
        gone = change.kind is StoredChangeKind.DELETED
        match change.new.key.resource:
            case "nodes":
                _hear_node(change, truth, known)
            case "endpointslices.discovery.k8s.io":
                _hear_slice(change, truth, known, gone=gone)
            case "jobs.batch":
                _hear_job(change, truth, known)

    store.on_change = hear


def _hear_node(change: StoredChange, truth: Truth, known: _Known) -> None:
    node = msgspec.json.decode(change.new.data, type=_Node)
    name = node.metadata.name
    state = NodeObjectState(
        unschedulable=node.spec.unschedulable,
        marked=NODE_SHUTDOWN_MARK in (node.metadata.annotations or {}),
        conditions=tuple(one.type for one in node.status.conditions if one.type in _SHUTDOWN and one.status == "True"),
        is_not_ready=any(one.type == "Ready" and one.status != "True" for one in node.status.conditions),
    )
    if known.nodes.get(name) != state:
        known.nodes[name] = state
        truth.record_node_object(name, state)


def _hear_slice(change: StoredChange, truth: Truth, known: _Known, *, gone: bool) -> None:
    """A pod may be in several slices."""
    key = f"{change.new.key.namespace}/{change.new.key.name}"
    before = frozenset().union(*known.slices.values())
    found = [] if gone else msgspec.json.decode(change.new.data, type=_Slice).endpoints or []
    known.slices[key] = frozenset(
        one.target_ref.uid
        for one in found
        if one.target_ref and one.conditions.ready is not False and not one.conditions.terminating
    )
    now = frozenset().union(*known.slices.values())
    for uid in sorted(before ^ now):
        truth.record_endpoint(uid, ready=uid in now)


def _hear_job(change: StoredChange, truth: Truth, known: _Known) -> None:
    job = msgspec.json.decode(change.new.data, type=_Job)
    if job.status.failed > known.failed.get(job.metadata.uid, 0):
        truth.record_job_failure(JobFailures(job.metadata.uid, job.metadata.name, job.status.failed))
    known.failed[job.metadata.uid] = job.status.failed
