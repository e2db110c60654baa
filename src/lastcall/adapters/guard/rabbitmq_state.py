"""A RabbitMQ cluster as its management API tells it: ``GET /api/nodes`` and the health checks (no I/O)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lastcall.adapters.guard.application_answers import shorten_message
from lastcall.adapters.guard.member_hosts import is_host_of, short_host
from lastcall.errors import LastcallError
from lastcall.model.base import Facts
from lastcall.model.pods import Pod
from lastcall.ports.guard import GuardedMember

_MOST_QUEUES = 3
"""So many queues are named."""


class RabbitNode(Facts, frozen=True):
    """A node of the cluster, such as ``rabbit@rabbitmq-0.rabbitmq-nodes.shop``."""

    name: str
    is_running: bool

    @property
    def host(self) -> str:
        """What follows the @."""
        return self.name.partition("@")[2]

    @property
    def short_name(self) -> str:
        """The name of its pod, if its host has one."""
        return short_host(self.host)


class RabbitView(Facts, frozen=True):
    """All nodes of a cluster."""

    nodes: tuple[RabbitNode, ...]

    def find_node(self, member: GuardedMember) -> RabbitNode | None:
        """The member's node, by its host; of a member that is gone also by that of the pod that has its name now."""
        name = member.pod.metadata.name
        pods = [member.pod, *(one for one in member.others if one.metadata.name == name)]
        return next((one for pod in pods for one in self.nodes if is_host_of(one.host, pod)), None)

    def list_absent(self) -> Iterator[str]:
        """Each node that does not run."""
        yield from (f"{one.short_name} does not run" for one in self.nodes if not one.is_running)

    def list_strangers(self, pods: Sequence[Pod]) -> Iterator[str]:
        """Each node that is no pod of the application, and each pod that is no node."""
        for one in self.nodes:
            if not any(is_host_of(one.host, pod) for pod in pods):
                yield f"{one.name} is no pod of the application"
        for pod in pods:
            if not any(is_host_of(one.host, pod) for one in self.nodes):
                yield f"{pod.metadata.name} is no node of the RabbitMQ cluster"


def parse_nodes(value: Any) -> RabbitView:
    """Reads the answer to ``/api/nodes``. LastcallError if it is none."""
    if not isinstance(value, list) or not all(isinstance(one, dict) and "running" in one for one in value):
        raise LastcallError("the answer to /api/nodes has no nodes")
    return RabbitView(nodes=tuple(map(_parse_node, value)))


def describe_check(value: Any) -> str:
    """Why a health check has failed, and for which queues. LastcallError if it does not say that it has."""
    if not isinstance(value, dict) or value.get("status") != "failed":
        raise LastcallError("the answer is that of no health check")
    listed = value.get("queues")
    queues = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    names = [str(one.get("readable_name") or one.get("name", "?")) for one in queues[:_MOST_QUEUES]]
    more = [f"{len(queues) - len(names)} more"] if len(queues) > len(names) else []
    text = str(value.get("reason", "a health check has failed"))
    return shorten_message(f"{text}: {', '.join([*names, *more])}" if names else text)


def _parse_node(value: Mapping[str, Any]) -> RabbitNode:
    return RabbitNode(name=shorten_message(str(value.get("name", ""))), is_running=value.get("running") is True)
