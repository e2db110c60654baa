"""A Node, as far as the shutdown of its machine changes it."""

from lastcall.model.base import Facts
from lastcall.model.pods import StatusCondition


class NodeMetadata(Facts, frozen=True):
    """The metadata of a Node that the changes depend on."""

    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class NodeSpec(Facts, frozen=True):
    """v1.NodeSpec, as far as it is changed."""

    unschedulable: bool = False


class NodeStatus(Facts, frozen=True):
    """v1.NodeStatus, as far as it is changed."""

    conditions: tuple[StatusCondition, ...] | None = None


class ShutdownNode(Facts, frozen=True):
    """A Node, as far as a shutdown changes it."""

    metadata: NodeMetadata = NodeMetadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
