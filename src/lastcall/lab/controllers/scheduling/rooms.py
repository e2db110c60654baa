"""The nodes with the pods that they have, as one decision sees them (pure)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from lastcall.lab.controllers import pods
from lastcall.lab.controllers.scheduling import requests
from lastcall.lab.controllers.view import Object, View, controller_of

Port = tuple[str, str, int]
"""Address, protocol and number of a port of the node itself."""


@dataclass(frozen=True)
class Room:
    """A node and the pods on it that have not finished; ``asked`` is what each of these asks for, by uid."""

    node: Object
    pods: Sequence[Object]
    asked: Mapping[str, tuple[int, requests.Amounts]]

    @property
    def name(self) -> str:
        """Of the node."""
        return str(self.node["metadata"]["name"])

    @cached_property
    def capacity(self) -> requests.Amounts:
        """What pods can have."""
        return requests.amounts((self.node.get("status") or {}).get("allocatable"))

    @cached_property
    def used(self) -> requests.Amounts:
        """What its pods ask for together."""
        return requests.total(amounts for _, amounts in self.asked.values())

    @cached_property
    def guessed(self) -> requests.Amounts:
        """The same, with a guess for those that do not say."""
        return requests.total(requests.guessed(amounts) for _, amounts in self.asked.values())

    @cached_property
    def owners(self) -> Counter[str]:
        """How many of its pods each controller (by its uid) has."""
        found = (controller_of(pod) for pod in self.pods)
        return Counter(owner["uid"] for owner in found if owner)

    @cached_property
    def ports(self) -> set[Port]:
        """Those that its pods have taken."""
        return {port for pod in self.pods for port in ports(pod)}

    @cached_property
    def choosy(self) -> Sequence[Object]:
        """Its pods that want others not to be near."""
        return [pod for pod in self.pods if (pod["spec"].get("affinity") or {}).get("podAntiAffinity")]


@dataclass(frozen=True)
class Rejection:
    """Why a node does not do. ``others``: fewer pods on it could help, so that preemption would be thought of."""

    reasons: tuple[str, ...]
    others: bool = False


class Verdict(NamedTuple):
    """How a node does for a pod. ``unwelcome`` counts the taints that advise against it; ``load`` is how full it would be."""

    rejection: Rejection | None = None
    unwelcome: int = 0
    load: tuple[float, Fraction] = (0.0, Fraction(0))
    """Rounded, to be compared first, and exactly."""


class Rooms:
    """Makes rooms, and keeps them as long as nothing about the node and its pods has changed."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        """``changed`` is told the name of each node that has another room now, or none any more."""
        self._changed = changed
        self._marked = 0
        self._coming: dict[str, list[Object]] = {}
        self.rooms: dict[str, Room] = {}
        """By name, those that have changed last at the end."""

    def look(self, view: View, assumed: Sequence[tuple[Object, str]]) -> Sequence[Room]:
        """All nodes; ``assumed`` are pods that are on their way to a node."""
        coming: dict[str, list[Object]] = {}
        for pod, target in assumed:
            coming.setdefault(target, []).append(pod)
        before, self._coming = self._coming, coming
        concerned = {name for name in {*before, *coming} if before.get(name) != coming.get(name)}
        concerned.update(view.stirred(self._marked))
        self._marked = view.marked
        for name in sorted(concerned):
            self._renew(name, view, coming.get(name, []))
        return list(self.rooms.values())

    def _renew(self, name: str, view: View, arriving: Sequence[Object]) -> None:
        node, before = view.get("nodes", "", name), self.rooms.pop(name, None)
        if node is not None:
            present = [pod for pod in view.on_node(name) if pods.phase(pod) not in pods.FINISHED]
            present += arriving
            self.rooms[name] = Room(node, present, _asked(present, before.asked if before else {}))
        self._changed(name)


def ports(pod: Object) -> Iterator[Port]:
    """Those of the node that a pod takes."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("hostIP", ""), port.get("protocol", "TCP"), port["hostPort"]


def _asked(
    present: Sequence[Object], before: Mapping[str, tuple[int, requests.Amounts]]
) -> dict[str, tuple[int, requests.Amounts]]:
    """What is known already is not counted again: what a pod asks for changes with its generation alone."""
    result = {}
    for pod in present:
        uid, generation = pod["metadata"]["uid"], pod["metadata"].get("generation", 0)
        known = before.get(uid)
        result[uid] = known if known and known[0] == generation else (generation, requests.of_pod(pod))
    return result
