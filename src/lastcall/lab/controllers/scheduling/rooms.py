"""The nodes with the pods that they have, as one decision sees them (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lastcall.lab.controllers import pods
from lastcall.lab.controllers.scheduling import requests
from lastcall.lab.controllers.view import Object, View


@dataclass(frozen=True)
class Room:
    """A node and the pods on it that have not finished."""

    node: Object
    pods: Sequence[Object]

    @property
    def name(self) -> str:
        """Of the node."""
        return str(self.node["metadata"]["name"])

    @cached_property
    def capacity(self) -> requests.Amounts:
        """What pods can have."""
        return requests.amounts((self.node.get("status") or {}).get("allocatable"))

    @cached_property
    def asked(self) -> Sequence[requests.Amounts]:
        """What each of its pods asks for."""
        return [requests.of_pod(pod) for pod in self.pods]

    @cached_property
    def used(self) -> requests.Amounts:
        """What they ask for together."""
        return requests.total(self.asked)


@dataclass(frozen=True)
class Rejection:
    """Why a node does not do. ``others``: fewer pods on it could help, so that preemption would be thought of."""

    reasons: tuple[str, ...]
    others: bool = False


def rooms(view: View, assumed: Sequence[tuple[Object, str]]) -> list[Room]:
    """All nodes by name; ``assumed`` are pods that are on their way to a node."""
    result = []
    for node in view.all("nodes"):
        name = node["metadata"]["name"]
        coming = [pod for pod, target in assumed if target == name]
        present = [pod for pod in view.on_node(name) if pods.phase(pod) not in pods.FINISHED]
        result.append(Room(node, [*present, *coming]))
    return result
