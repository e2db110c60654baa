"""The nodes with the pods that they have, as one decision sees them (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    verdicts: dict[bytes, "Verdict"] = field(default_factory=dict, compare=False)
    """What it has been found for pods that are alike to it."""

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

    rejection: Rejection | None
    unwelcome: int
    load: tuple[float, Fraction]
    """Rounded, to be compared first, and exactly."""


class Rooms:
    """Makes rooms; it keeps what it has counted of a node as long as nothing about the node and its pods has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Sequence[Object], Room]] = {}
        """With what the view's mark of the node was, and the pods that were coming."""

    def look(self, view: View, assumed: Sequence[tuple[Object, str]]) -> list[Room]:
        """All nodes by name; ``assumed`` are pods that are on their way to a node."""
        coming: dict[str, list[Object]] = {}
        for pod, target in assumed:
            coming.setdefault(target, []).append(pod)
        known, self._known = self._known, {}
        for node in view.all("nodes"):
            name = node["metadata"]["name"]
            mark, arriving, before = view.mark(name), coming.get(name, []), known.get(name)
            if before is None or before[0] != mark or before[1] != arriving:
                present = [pod for pod in view.on_node(name) if pods.phase(pod) not in pods.FINISHED] + arriving
                before = mark, arriving, Room(node, present, _asked(present, before[2].asked if before else {}))
            self._known[name] = before
        return [room for _, _, room in self._known.values()]


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
