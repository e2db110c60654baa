"""Which pods the API server has asked to terminate: to stop any other pod is a violation."""

from typing import Protocol

import msgspec

from lastcall.model.observed import MARK
from lastcall.model.pods import FINISHED
from lastcall.names import OUT_OF_SERVICE
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredChange, StoredChangeKind, StoredObject

_SIGNS = (b'"deletionTimestamp"', b'"Failed"', b'"Succeeded"')
"""A pod that has none of them need not be read."""


class _DeletionMetadata(msgspec.Struct, rename="camel"):
    uid: str
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class _PodPhase(msgspec.Struct):
    phase: str = ""


class _PodTermination(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _DeletedPod(msgspec.Struct):
    metadata: _DeletionMetadata
    spec: _PodTermination = msgspec.field(default_factory=_PodTermination)
    status: _PodPhase = msgspec.field(default_factory=_PodPhase)


class DeletionListener(Protocol):
    """Hears of each pod (its uid) that it is to end from now on, and within how many seconds.

    Zero are left when its object is gone, and when its phase is final; also when it has ended by itself before.
    ``forgotten``: its object is gone, although nobody has said that its machine is out of service.
    """

    def __call__(self, uid: str, grace: float, *, forgotten: bool) -> None:
        """It is so from now on."""


def report_deletions(store: Store, tell: DeletionListener) -> None:
    """Tells of each pod."""
    before = store.on_change

    def hear(change: StoredChange) -> None:
        before(change)
        if change.new.key.resource == "pods" and (found := _deletion_request(change)):
            uid, grace = found
            tell(
                uid,
                grace,
                forgotten=change.kind is StoredChangeKind.DELETED and not _is_out_of_service(store, change.new),
            )

    store.on_change = hear


def _is_out_of_service(store: Store, pod: StoredObject) -> bool:
    """An administrator vouches for it that nothing runs there any more; lastcall's own taint vouches for nothing here."""
    name = msgspec.json.decode(pod.data, type=_DeletedPod).spec.node_name
    node = store.get(StorageKey("nodes", "", name))
    return node is not None and OUT_OF_SERVICE.encode() in node.data and MARK.encode() not in node.data


def _deletion_request(change: StoredChange) -> tuple[str, float] | None:
    """Of what is so already nobody is told again."""
    now = _uid_and_grace(change.new, gone=change.kind is StoredChangeKind.DELETED)
    if change.kind is StoredChangeKind.DELETED:
        return now
    if now is None or (change.old and now[1] == (_uid_and_grace(change.old, gone=False) or ("", None))[1]):
        return None
    return now


def _uid_and_grace(stored: StoredObject, *, gone: bool) -> tuple[str, float] | None:
    if not gone and not any(sign in stored.data for sign in _SIGNS):
        return None
    pod = msgspec.json.decode(stored.data, type=_DeletedPod)
    metadata = pod.metadata
    if gone or pod.status.phase in FINISHED:
        return metadata.uid, 0.0
    if metadata.deletion_timestamp is None:
        return None
    return metadata.uid, float(metadata.deletion_grace_period_seconds or 0)
