"""The health of a cluster, read from its store: which nodes are ready, and whether every workload is complete.

It is read twice a second for hours over tens of thousands of objects, so it reads only what has changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from lastcall_lab.apiserver.storage.store import (
    ChangeFeed,
    Compacted,
    StorageKey,
    Store,
    StoredChangeKind,
    StoredObject,
)

_MANY = 1000

T = TypeVar("T")


class ClusterHealth:
    """Of the objects in ``store``."""

    def __init__(self, store: Store) -> None:
        self._nodes = _ChangeReader(store, "nodes", _ready_boot)
        self._leaving = _ChangeReader(store, "pods", _is_terminating)
        self._excused: set[StorageKey] = set()
        self._unfinished = [_ChangeReader(store, resource, judge) for resource, judge in _JUDGES.items()]

    def ready_boots(self, names: Iterable[str]) -> Mapping[str, str]:
        """Those of these nodes that are ready, and the boot in which each of them is."""
        ready = self._nodes.read()
        return {name: ready[key] for name in names if (key := StorageKey("nodes", "", name)) in ready}

    @property
    def is_complete(self) -> bool:
        """Every workload has all its desired pods ready, and none is terminating."""
        return not any(reader.read().keys() - self._excused for reader in (self._leaving, *self._unfinished))

    @property
    def incomplete_workloads(self) -> Sequence[str]:
        """The names of those that have not."""
        return [key.name for reader in self._unfinished for key in reader.read() if key not in self._excused]

    def excuse_incomplete(self) -> None:
        """What is missing now does not count as missing from now on."""
        self._excused = {key for reader in (self._leaving, *self._unfinished) for key in reader.read()}


class _ChangeReader(Generic[T]):
    """What ``judge`` says of the objects of one resource for which it says something."""

    def __init__(self, store: Store, resource: str, judge: Callable[[StoredObject], T | None]) -> None:
        self._store = store
        self._resource = resource
        self._judge = judge
        self._feed: ChangeFeed | None = None
        self._said: dict[StorageKey, T] = {}

    def read(self) -> Mapping[StorageKey, T]:
        """As it is now."""
        if self._feed is None:
            return self._read_all()
        try:
            while changes := self._feed.take(_MANY):
                for change in changes:
                    self._apply_change(change.new, gone=change.kind is StoredChangeKind.DELETED)
        except Compacted:
            return self._read_all()
        return self._said

    def _read_all(self) -> Mapping[StorageKey, T]:
        self._said = {}
        self._feed = self._store.open_feed(self._resource, self._store.revision)
        for stored in self._store.objects(self._resource):
            self._apply_change(stored, gone=False)
        return self._said

    def _apply_change(self, stored: StoredObject, *, gone: bool) -> None:
        said = None if gone else self._judge(stored)
        if said is None:
            self._said.pop(stored.key, None)
        else:
            self._said[stored.key] = said


def _ready_boot(node: StoredObject) -> str | None:
    """The id of its boot, if it is ready."""
    status = node.to_object().get("status") or {}
    ready = [one["status"] for one in status.get("conditions") or () if one["type"] == "Ready"]
    return str(status.get("nodeInfo", {}).get("bootID", "")) if ready == ["True"] else None


class _TerminatingMetadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _TerminatingPod(msgspec.Struct):
    metadata: _TerminatingMetadata


def _is_terminating(pod: StoredObject) -> bool | None:
    if b'"deletionTimestamp"' not in pod.data:
        return None
    return msgspec.json.decode(pod.data, type=_TerminatingPod).metadata.deletion_timestamp is not None or None


def _lacks_pods(
    stored: StoredObject, count: Callable[[Any, Any], tuple[int, int]], *, observed: bool = True
) -> bool | None:
    """True if a workload has fewer pods than it wants, or its controller has not seen its newest version."""
    obj = stored.to_object()
    spec, status = obj["spec"], obj.get("status") or {}
    if observed and status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return True
    wanted, found = count(spec, status)
    return True if found < wanted else None


def _lacks_replicas(stored: StoredObject) -> bool | None:
    return _lacks_pods(stored, lambda spec, status: (spec.get("replicas", 1), status.get("readyReplicas", 0)))


def _lacks_daemon_pods(stored: StoredObject) -> bool | None:
    return _lacks_pods(
        stored, lambda _, status: (status.get("desiredNumberScheduled", 1), status.get("numberReady", 0))
    )


def _lacks_completions(stored: StoredObject) -> bool | None:
    def count(spec: Any, status: Any) -> tuple[int, int]:
        return spec.get("parallelism", 1), status.get("ready", 0) + status.get("succeeded", 0)

    return _lacks_pods(stored, count, observed=False)


_JUDGES: Mapping[str, Callable[[StoredObject], bool | None]] = {
    "deployments.apps": _lacks_replicas,
    "statefulsets.apps": _lacks_replicas,
    "daemonsets.apps": _lacks_daemon_pods,
    "jobs.batch": _lacks_completions,
}
"""By resource; a node that is not ready takes no pod of a DaemonSet away from what it wants."""
