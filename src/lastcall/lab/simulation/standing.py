"""How a cluster stands, by what its store says: which nodes are ready, and whether every workload is whole.

It is asked twice a second for hours, of tens of thousands of objects: so it reads what has changed, and nothing twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from lastcall.lab.apiserver.store import Compacted, Feed, Key, Kind, Store, Stored

_MANY = 1000

T = TypeVar("T")


class Standing:
    """Of the objects in ``store``."""

    def __init__(self, store: Store) -> None:
        self._nodes = _Reader(store, "nodes", _boot)
        self._leaving = _Reader(store, "pods", _leaves)
        self._excused: set[Key] = set()
        self._unfinished = [_Reader(store, resource, judge) for resource, judge in _JUDGES.items()]

    def boots(self, names: Iterable[str]) -> Mapping[str, str]:
        """Those of these nodes that are ready, and the boot in which each of them is."""
        ready = self._nodes.read()
        return {name: ready[key] for name in names if (key := Key("nodes", "", name)) in ready}

    @property
    def whole(self) -> bool:
        """Every workload has all the pods that it wants, ready, and none that is to go."""
        return not any(reader.read().keys() - self._excused for reader in (self._leaving, *self._unfinished))

    @property
    def unfinished(self) -> Sequence[str]:
        """The names of those that have not."""
        return [key.name for reader in self._unfinished for key in reader.read() if key not in self._excused]

    def excuse(self) -> None:
        """What is missing now does not count as missing from now on."""
        self._excused = {key for reader in (self._leaving, *self._unfinished) for key in reader.read()}


class _Reader(Generic[T]):
    """What ``judge`` says of the objects of one resource for which it says something."""

    def __init__(self, store: Store, resource: str, judge: Callable[[Stored], T | None]) -> None:
        self._store = store
        self._resource = resource
        self._judge = judge
        self._feed: Feed | None = None
        self._said: dict[Key, T] = {}

    def read(self) -> Mapping[Key, T]:
        """As it is now."""
        if self._feed is None:
            return self._begin()
        try:
            while changes := self._feed.take(_MANY):
                for change in changes:
                    self._heed(change.new, gone=change.kind is Kind.DELETED)
        except Compacted:
            return self._begin()
        return self._said

    def _begin(self) -> Mapping[Key, T]:
        self._said = {}
        self._feed = self._store.feed(self._resource, self._store.revision)
        for stored in self._store.objects(self._resource):
            self._heed(stored, gone=False)
        return self._said

    def _heed(self, stored: Stored, *, gone: bool) -> None:
        said = None if gone else self._judge(stored)
        if said is None:
            self._said.pop(stored.key, None)
        else:
            self._said[stored.key] = said


def _boot(node: Stored) -> str | None:
    """The id of its boot, if it is ready."""
    status = node.object().get("status") or {}
    ready = [one["status"] for one in status.get("conditions") or () if one["type"] == "Ready"]
    return str(status.get("nodeInfo", {}).get("bootID", "")) if ready == ["True"] else None


class _Metadata(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata


def _leaves(pod: Stored) -> bool | None:
    if b'"deletionTimestamp"' not in pod.data:
        return None
    return msgspec.json.decode(pod.data, type=_Pod).metadata.deletion_timestamp is not None or None


def _missing(stored: Stored, count: Callable[[Any, Any], tuple[int, int]], *, observed: bool = True) -> bool | None:
    """True if a workload has fewer pods than it wants, or its controller has not seen its newest version."""
    obj = stored.object()
    spec, status = obj["spec"], obj.get("status") or {}
    if observed and status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return True
    wanted, found = count(spec, status)
    return True if found < wanted else None


def _of_replicas(stored: Stored) -> bool | None:
    return _missing(stored, lambda spec, status: (spec.get("replicas", 1), status.get("readyReplicas", 0)))


def _of_nodes(stored: Stored) -> bool | None:
    return _missing(stored, lambda _, status: (status.get("desiredNumberScheduled", 1), status.get("numberReady", 0)))


def _of_jobs(stored: Stored) -> bool | None:
    def count(spec: Any, status: Any) -> tuple[int, int]:
        return spec.get("parallelism", 1), status.get("ready", 0) + status.get("succeeded", 0)

    return _missing(stored, count, observed=False)


_JUDGES: Mapping[str, Callable[[Stored], bool | None]] = {
    "deployments.apps": _of_replicas,
    "statefulsets.apps": _of_replicas,
    "daemonsets.apps": _of_nodes,
    "jobs.batch": _of_jobs,
}
"""By resource; a node that is not ready takes no pod of a DaemonSet away from what it wants."""
