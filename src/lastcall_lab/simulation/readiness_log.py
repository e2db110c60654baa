"""Changes of node readiness as the API server shows them."""

from collections.abc import Callable

import msgspec

from lastcall_lab.apiserver.storage.store import Store, StoredChange, StoredChangeKind, StoredObject


class _NodeCondition(msgspec.Struct):
    type: str
    status: str


class _NodeConditions(msgspec.Struct):
    conditions: list[_NodeCondition] = msgspec.field(default_factory=list)


class _ConditionedNode(msgspec.Struct):
    status: _NodeConditions = msgspec.field(default_factory=_NodeConditions)


NOTICES = {
    "True": "ready",
    "False": "not ready, as its kubelet says",
    "Unknown": "not ready, since nothing is heard of its kubelet",
}
"""By the status of the condition Ready."""


def report_readiness(store: Store, tell: Callable[[str, str], None]) -> None:
    """Tells of each node (its name) that it is ready now, or no longer, in one of the ``NOTICES``."""
    before, known = store.on_change, dict[str, str]()

    def hear(stored: StoredObject, *, gone: bool) -> None:
        name, now = stored.key.name, "" if gone else _ready_status(stored)
        if now != known.get(name, "") and now in NOTICES:
            tell(name, NOTICES[now])
        known[name] = now

    def on_change(change: StoredChange) -> None:
        before(change)
        if change.new.key.resource == "nodes":
            hear(change.new, gone=change.kind is StoredChangeKind.DELETED)

    store.on_change = on_change


def _ready_status(node: StoredObject) -> str:
    conditions = msgspec.json.decode(node.data, type=_ConditionedNode).status.conditions
    return next((one.status for one in conditions if one.type == "Ready"), "")
