"""What a pod asks for, and what a node has (pure): ``k8s.io/component-helpers/resource.PodRequests``."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from lastcall.lab.apiserver import quantities
from lastcall.lab.controllers.view import Object

Amounts = dict[str, int]
"""By the names of resources: thousandths of a processor (``cpu``), bytes, or a number; rounded up."""

_POD_LEVEL = ("cpu", "memory")
_GUESS = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a pod that asks for nothing is taken for when the least loaded node is looked for (``DefaultMilliCPURequest``)."""


def of_pod(pod: Object) -> Amounts:
    """Init containers run one after the other, before the others; sidecars begin among them and stay.

    So a pod needs the most of what all containers and sidecars need together, and of what each init container needs
    together with the sidecars before it. Its overhead, and what it asks for as a whole, are counted as well.
    """
    spec = pod["spec"]
    total = _sum(_asked(one) for one in spec["containers"])
    sidecars: Amounts = {}
    first: Amounts = {}
    for one in spec.get("initContainers") or ():
        asked = _asked(one)
        if one.get("restartPolicy") == "Always":
            total, sidecars = _sum([total, asked]), _sum([sidecars, asked])
            first = _most(first, sidecars)
        else:
            first = _most(first, _sum([asked, sidecars]))
    whole = {name: amount for name, amount in _asked(spec).items() if name in _POD_LEVEL}
    return _sum([{**_most(total, first), **whole}, amounts(spec.get("overhead"))])


def amounts(said: Mapping[str, Any] | None) -> Amounts:
    """Quantities as numbers."""
    return {name: _number(name, str(text)) for name, text in (said or {}).items()}


def total(all_of: Iterable[Amounts]) -> Amounts:
    """The sum."""
    return _sum(all_of)


def guessed(asked: Amounts) -> Amounts:
    """Processor and memory, also of a pod that does not ask for them."""
    return {name: asked.get(name) or guess for name, guess in _GUESS.items()}


def load(used: Amounts, room: Amounts) -> Fraction:
    """How full a node is: the mean of the shares of its processors and of its memory."""
    shares = [Fraction(used[name], room[name]) if room.get(name) else Fraction(1) for name in _GUESS]
    return sum(shares, Fraction(0)) / len(shares)


def _asked(container: Object) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _number(name: str, text: str) -> int:
    return math.ceil(quantities.parse(text) * (1000 if name == "cpu" else 1))


def _sum(all_of: Iterable[Amounts]) -> Amounts:
    result: Amounts = {}
    for one in all_of:
        for name, amount in one.items():
            result[name] = result.get(name, 0) + amount
    return result


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
