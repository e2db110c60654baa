"""What a pod asks for, and what a node has (pure): ``k8s.io/component-helpers/resource.PodRequests``."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from lastcall.lab.apiserver import quantities
from lastcall.lab.controllers.view import Object

Amounts = dict[str, Fraction]
"""By the names of resources: cores, bytes, or a number."""

_POD_LEVEL = ("cpu", "memory")
_GUESS = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 1024 * 1024)}
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
    return {name: quantities.parse(str(text)) for name, text in (said or {}).items()}


def total(all_of: Iterable[Amounts]) -> Amounts:
    """The sum."""
    return _sum(all_of)


def load(asked: Iterable[Amounts], room: Amounts) -> Fraction:
    """How full a node is with pods that ask for this: the mean of the shares of its processors and of its memory."""
    pods = list(asked)
    shares = []
    for name, guess in _GUESS.items():
        used = sum((one.get(name) or guess for one in pods), Fraction(0))
        shares.append(used / room[name] if room.get(name) else Fraction(1))
    return sum(shares, Fraction(0)) / len(shares)


def _asked(container: Object) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _sum(all_of: Iterable[Amounts]) -> Amounts:
    result: Amounts = {}
    for one in all_of:
        for name, amount in one.items():
            result[name] = result.get(name, Fraction(0)) + amount
    return result


def _most(one: Amounts, other: Amounts) -> Amounts:
    zero = Fraction(0)
    return {name: max(one.get(name, zero), other.get(name, zero)) for name in {**one, **other}}
