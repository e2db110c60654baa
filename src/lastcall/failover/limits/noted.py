"""Indexes of all nodes, kept up with each change: which ones tell of fencings, and which show a system UUID (pure).

Each node in trouble is decided about again and again. When hundreds are in trouble at once, a decision about one of them must
not take a look at all nodes.
"""

from collections.abc import Collection

from lastcall.model.observed import WatchedNode
from lastcall.model.system_uuid import spellings


class Noted:
    """Of all nodes that were put in."""

    def __init__(self) -> None:
        self._fencings: dict[str, None] = {}
        self._histories: dict[str, None] = {}
        self._uuids: dict[str, str] = {}
        """By name, as the nodes show them."""
        self._sharing: dict[str, dict[str, None]] = {}
        """The names of those that show it, by each spelling of a system UUID."""

    def put(self, name: str, node: WatchedNode | None) -> None:
        """A node as it is now; None if there is no such node any more."""
        _list(self._fencings, name, listed=node is not None and bool(node.mark or node.fenced))
        _list(self._histories, name, listed=node is not None and bool(node.fenced))
        before = self._uuids.pop(name, "")
        uuid = node.status.node_info.system_uuid if node is not None else ""
        if uuid:
            self._uuids[name] = uuid
        if uuid == before:
            return
        for spelling in spellings(before):
            del self._sharing[spelling][name]
            if not self._sharing[spelling]:
                del self._sharing[spelling]
        for spelling in spellings(uuid):
            self._sharing.setdefault(spelling, {})[name] = None

    @property
    def fencings(self) -> Collection[str]:
        """The names of those that have a mark, or say what they were fenced for: no other node tells of a fencing."""
        return self._fencings.keys()

    @property
    def histories(self) -> Collection[str]:
        """The names of those that say what they were fenced for."""
        return self._histories.keys()

    def sharing(self, name: str, uuid: str) -> str:
        """The name of a node other than ``name`` that shows this system UUID in either spelling; empty if there is none."""
        found = spellings(uuid)
        others = self._sharing.get(min(found), {}) if found else {}
        return next((other for other in others if other != name), "")


def _list(names: dict[str, None], name: str, *, listed: bool) -> None:
    if listed:
        names[name] = None
    else:
        names.pop(name, None)
