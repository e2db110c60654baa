"""Indexes of all nodes, kept up with each change: which ones tell of fencings, and which show a system UUID (pure).

Each node in trouble is decided about again and again. When hundreds are in trouble at once, a decision about one of them must
not take a look at all nodes.
"""

from collections.abc import Collection

from lastcall.model.observed import WatchedNode
from lastcall.model.system_uuid import uuid_spellings


class NodeIndexes:
    """Of all nodes that were put in."""

    def __init__(self) -> None:
        self._fencings: dict[str, None] = {}
        self._histories: dict[str, None] = {}
        self._uuids: dict[str, str] = {}
        """By name, as the nodes show them."""
        self._sharing: dict[str, dict[str, None]] = {}
        """The names of those that show it, by each spelling of a system UUID."""

    def update_node(self, name: str, node: WatchedNode | None) -> None:
        """A node as it is now; None if there is no such node any more."""
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
        """The names of those that have a mark, or say what they were fenced for: no other node tells of a fencing."""
        return self._fencings.keys()

    @property
    def nodes_with_history(self) -> Collection[str]:
        """The names of those that say what they were fenced for."""
        return self._histories.keys()

    def node_sharing_uuid(self, name: str, uuid: str) -> str:
        """The name of a node other than ``name`` that shows this system UUID in either spelling; empty if there is none."""
        found = uuid_spellings(uuid)
        others = self._sharing.get(min(found), {}) if found else {}
        return next((other for other in others if other != name), "")


def _set_listed(names: dict[str, None], name: str, *, listed: bool) -> None:
    if listed:
        names[name] = None
    else:
        names.pop(name, None)
