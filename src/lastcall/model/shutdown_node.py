"""A Node, as far as the shutdown of its machine changes it."""

from collections.abc import Mapping

import msgspec

from lastcall import names
from lastcall.model.base import Facts, Time
from lastcall.model.pods import StatusCondition

AGENT_MANAGER = "lastcall-agent"
"""The field manager of the agent's writes."""

UNKNOWN_MANAGERS = frozenset({"ancient-changes", "before-first-apply"})
"""What the API server writes where it no longer keeps, or never kept, who has set a field (structured-merge-diff)."""


class NodeFieldOwner(Facts, frozen=True):
    """An entry of ``metadata.managedFields``: who has last set which fields. The fields are JSON."""

    manager: str = ""
    fields_v1: msgspec.Raw = msgspec.Raw(b"{}")

    @property
    def owns_cordon(self) -> bool:
        """Whether ``spec.unschedulable`` is one of them."""
        try:
            return b"f:unschedulable" in bytes(self.fields_v1) and "f:unschedulable" in _read_spec(self.fields_v1)
        except (msgspec.DecodeError, UnicodeError):
            return False


class ShutdownNodeMetadata(Facts, frozen=True):
    """The metadata of a Node that the changes depend on."""

    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    managed_fields: tuple[NodeFieldOwner, ...] | None = None


class ShutdownNodeSpec(Facts, frozen=True):
    """v1.ShutdownNodeSpec, as far as it is changed."""

    unschedulable: bool = False


class ShutdownNodeStatus(Facts, frozen=True):
    """v1.NodeStatus, as far as it is changed. ``volumes_in_use`` are the unique names of volumes that it has mounted."""

    conditions: tuple[StatusCondition, ...] | None = None
    volumes_in_use: tuple[str, ...] | None = None


class ShutdownNode(Facts, frozen=True):
    """A Node, as far as a shutdown changes it."""

    metadata: ShutdownNodeMetadata = ShutdownNodeMetadata()
    spec: ShutdownNodeSpec = ShutdownNodeSpec()
    status: ShutdownNodeStatus = ShutdownNodeStatus()


def is_cordoned_by_others(node: ShutdownNode) -> bool:
    """Whether the cordon was set by somebody else after ours was taken away; False if the owners are not known."""
    owners = {one.manager for one in node.metadata.managed_fields or () if one.owns_cordon}
    return bool(owners) and owners.isdisjoint({AGENT_MANAGER, *UNKNOWN_MANAGERS})


class ShutdownMark(Facts, frozen=True):
    """The annotation ``lastcall.dev/node-shutdown``: the boot that shuts down, and whether the agent cordoned the Node.

    ``deadline`` is when the machine is gone; None if an older agent wrote the mark.
    """

    boot_id: str
    cordoned: bool
    deadline: Time | None = None


def _read_spec(fields: msgspec.Raw) -> Mapping[str, object]:
    found = msgspec.json.decode(fields)
    spec = found.get("f:spec") if isinstance(found, dict) else None
    return spec if isinstance(spec, dict) else {}


def read_mark(annotations: Mapping[str, str] | None) -> ShutdownMark | None:
    """The mark of a Node; None if there is none. An unreadable one counts as a mark without a cordon of ours."""
    text = (annotations or {}).get(names.NODE_SHUTDOWN_MARK)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text.encode(), type=ShutdownMark)
    except (msgspec.DecodeError, UnicodeError):
        return ShutdownMark(boot_id="", cordoned=False)
