"""What is known of each order to a BMC at its moment, so that it can be judged afterwards."""

from collections.abc import Mapping, Sequence

from lastcall.lab.simulation.truth import Order

OVERLOOKED = 30.0
"""Seconds for which nobody is blamed that he has not noticed yet that a machine is silent."""


def order(
    at: float,
    node: str,
    hit: str,
    *,
    silences: Mapping[str, float],
    suspect_after: float,
    ready: Mapping[str, str],
    before: Sequence[Order],
    domains: Mapping[str, str],
    powered: bool,
    boot_id: str,
) -> Order:
    """``silences`` and ``domains`` are those of all machines; ``ready``: the boot of each node that is ready."""
    away = {one.hit for one in before} - ready.keys() - {hit}
    lost = {name for name, seconds in silences.items() if seconds > suspect_after + OVERLOOKED}
    return Order(
        at=at,
        node=node,
        hit=hit,
        powered=powered,
        boot_id=boot_id,
        silence=silences[hit],
        away=tuple(sorted(one for one in away if domains[one] == domains[hit])),
        healthy=len(silences.keys() - away - lost - {hit}),
        every=len(silences),
    )
