"""Indexes over all nodes, updated with each change: nodes that record fencings, and nodes by system UUID (pure).

The controller decides about each node in trouble repeatedly. With hundreds of them at once, a decision about one node
must not scan all nodes.
"""

from collections.abc import Collection

from lastcall.model.observed import WatchedNode
from lastcall.model.system_uuid import uuid_spellings


class NodeIndexes:
    """The indexes of all nodes that ``update_node`` was called for."""

    def __init__(self) -> None:
        self._fencings: dict[str, None] = {}
        self._histories: dict[str, None] = {}
        self._uuids: dict[str, str] = {}
        """The system UUID of each node, by the node's name."""
        self._sharing: dict[str, dict[str, None]] = {}
        """For each spelling of a system UUID, the names of the nodes that report it."""

    def update_node(self, name: str, node: WatchedNode | None) -> None:
        """Indexes a node's current state; None removes it."""
        _set_listed(self._fencings, name, listed=node is not None and bool(node.mark_text or node.fencing_history_text))
        _set_listed(self._histories, name, listed=node is not None and bool(node.fencing_history_text))
        before = self._uuids.pop(name, "")
        uuid = node.status.node_info.system_uuid if node is not None else ""
        if uuid:
            self._uuids[name] = uuid
        if uuid == before:
            return
        for spelling in uuid_spellings(before):
            del self._sharing[spelling][name]
            if not self._sharing[spelling]:
                del self._sharing[spelling]
        for spelling in uuid_spellings(uuid):
            self._sharing.setdefault(spelling, {})[name] = None

    @property
    def nodes_with_fencings(self) -> Collection[str]:
        """The names of the nodes with a mark or a fencing history. No other node records a fencing."""
        return self._fencings.keys()

    @property
    def nodes_with_history(self) -> Collection[str]:
        """The names of the nodes with a fencing history."""
        return self._histories.keys()

    def node_sharing_uuid(self, name: str, uuid: str) -> str:
        """The name of another node that reports this system UUID in either spelling; empty if there is none."""
        found = uuid_spellings(uuid)
        others = self._sharing.get(min(found), {}) if found else {}
        return next((other for other in others if other != name), "")


def _set_listed(names: dict[str, None], name: str, *, listed: bool) -> None:
    if listed:
        names[name] = None
    else:
        names.pop(name, None)
