"""Resource requests of pods and capacities of nodes (pure): ``k8s.io/component-helpers/resource.PodRequests``."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from lastcall.model import quantities
from lastcall_lab.controllers.framework.view import Object

Amounts = dict[str, int]
"""By resource name: millicores (``cpu``), bytes, or a number; rounded up."""

_POD_LEVEL = ("cpu", "memory")
_GUESS = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""The assumed requests of a pod without requests, for comparing node loads (``DefaultMilliCPURequest``)."""


def pod_requests(pod: Object) -> Amounts:
    """The effective request of a pod. Init containers run in sequence before the others; sidecars keep running.

    It is the maximum of what all containers and sidecars need together and of what each init container needs together
    with the sidecars before it. The overhead and pod-level requests are included.
    """
    spec = pod["spec"]
    total = _add_up(_container_requests(one) for one in spec["containers"])
    sidecars: Amounts = {}
    first: Amounts = {}
    for one in spec.get("initContainers") or ():
        asked = _container_requests(one)
        if one.get("restartPolicy") == "Always":
            total, sidecars = _add_up([total, asked]), _add_up([sidecars, asked])
            first = _max_amounts(first, sidecars)
        else:
            first = _max_amounts(first, _add_up([asked, sidecars]))
    whole = {name: amount for name, amount in _container_requests(spec).items() if name in _POD_LEVEL}
    return _add_up([{**_max_amounts(total, first), **whole}, parse_amounts(spec.get("overhead"))])


def parse_amounts(said: Mapping[str, Any] | None) -> Amounts:
    """The quantities as numbers."""
    return {name: _quantity_number(name, str(text)) for name, text in (said or {}).items()}


def sum_amounts(all_of: Iterable[Amounts]) -> Amounts:
    """The sum by resource."""
    return _add_up(all_of)


def with_default_requests(asked: Amounts) -> Amounts:
    """CPU and memory, with defaults for a pod that does not request them."""
    return {name: asked.get(name) or guess for name, guess in _GUESS.items()}


def load_share(used: Amounts, room: Amounts) -> Fraction:
    """The utilization of a node: the mean of its CPU and memory shares."""
    shares = [Fraction(used[name], room[name]) if room.get(name) else Fraction(1) for name in _GUESS]
    return sum(shares, Fraction(0)) / len(shares)


def _container_requests(container: Object) -> Amounts:
    return parse_amounts((container.get("resources") or {}).get("requests"))


def _quantity_number(name: str, text: str) -> int:
    return math.ceil(quantities.parse_quantity(text) * (1000 if name == "cpu" else 1))


def _add_up(all_of: Iterable[Amounts]) -> Amounts:
    result: Amounts = {}
    for one in all_of:
        for name, amount in one.items():
            result[name] = result.get(name, 0) + amount
    return result


def _max_amounts(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
