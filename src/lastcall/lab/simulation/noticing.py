"""Which nodes are ready, as the API server has it: what the control plane makes of machines, soon or late."""

from collections.abc import Callable

import msgspec

from lastcall.lab.apiserver.store import Change, Kind, Store, Stored


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    conditions: list[_Condition] = msgspec.field(default_factory=list)


class _Node(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


NOTICES = {
    "True": "ready",
    "False": "not ready, as its kubelet says",
    "Unknown": "not ready, since nothing is heard of its kubelet",
}
"""By the status of the condition Ready."""


def notice(store: Store, tell: Callable[[str, str], None]) -> None:
    """Tells of each node (its name) that it is ready now, or no longer, in one of the ``NOTICES``."""
    before, known = store.on_change, dict[str, str]()

    def hear(stored: Stored, *, gone: bool) -> None:
        name, now = stored.key.name, "" if gone else _ready(stored)
        if now != known.get(name, "") and now in NOTICES:
            tell(name, NOTICES[now])
        known[name] = now

    def on_change(change: Change) -> None:
        before(change)
        if change.new.key.resource == "nodes":
            hear(change.new, gone=change.kind is Kind.DELETED)

    store.on_change = on_change


def _ready(node: Stored) -> str:
    conditions = msgspec.json.decode(node.data, type=_Node).status.conditions
    return next((one.status for one in conditions if one.type == "Ready"), "")
