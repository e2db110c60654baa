"""What is assumed of a recorded cluster: what its containers do, and how many requests its Services get (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lastcall.lab.simulation.scenario import Workload
from lastcall.lab.simulation.state.reading import State
from lastcall.lab.simulation.state.workloads import ASSUMED as UNKNOWN
from lastcall.lab.simulation.wording.fields import Violations
from lastcall.lab.simulation.wording.vocabulary import ASSUME, ASSUMED, BY_WORKLOAD

_AT = "assume"


def workloads(state: State, value: Any, wrong: Violations) -> tuple[Workload, ...]:
    """The workloads of a cluster with what a scenario's ``assume`` says of them."""
    said = wrong.fields(_AT, value, ASSUME)
    single, requests = said.pop("by_workload", {}), said.pop("requests", {})
    found = {_key(one): _assumed(one, {**ASSUMED, **said}) for one in state.workloads}
    for name, fields in single.items():
        at = f"{_AT}.byWorkload.{name}"
        own = wrong.fields(at, fields, BY_WORKLOAD)
        for key in _meant(at, name, list(found), "workload", wrong):
            base = next(one for one in state.workloads if _key(one) == key)
            found[key] = _assumed(base, {**ASSUMED, **said, **own})
    for name, rate in requests.items():
        at = f"{_AT}.requests.{name}"
        for service in _meant(at, name, list(state.services), "Service with pods", wrong):
            _ask(at, service, rate, state.services[service], found, wrong)
    return tuple(found.values())


def _key(workload: Workload) -> str:
    return f"{workload.namespace}/{workload.name}"


def _assumed(workload: Workload, said: Mapping[str, Any]) -> Workload:
    """``pre_stop`` counts for the hooks that do not say how long they take."""
    hooks = {name: said["pre_stop"] if takes == UNKNOWN else takes for name, takes in workload.hooks.items()}
    others = {name: value for name, value in said.items() if name != "pre_stop"}
    return msgspec.structs.replace(workload, hooks=hooks, **others)


def _meant(at: str, name: str, known: Sequence[str], what: str, wrong: Violations) -> Iterator[str]:
    """Of NAMESPACE/NAME; a NAME alone must be clear."""
    found = [key for key in known if name in (key, key.partition("/")[2])]
    if len(found) > 1:
        wrong.add(at, name, f"there are {', '.join(found)}: say which by NAMESPACE/NAME")
    elif not found:
        shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
        wrong.add(at, name, f"there is no such {what}; known are {shown or 'none'}")
    else:
        yield found[0]


def _ask(
    at: str, service: str, rate: float, keys: Sequence[str], found: dict[str, Workload], wrong: Violations
) -> None:
    if len(keys) > 1:
        wrong.add(at, service, f"its pods are of several workloads ({', '.join(keys)}): this cannot be measured")
        return
    if found[keys[0]].requests:
        wrong.add(at, service, f"{keys[0]} has the requests of another Service already")
        return
    name = service.partition("/")[2]
    found[keys[0]] = msgspec.structs.replace(found[keys[0]], requests=rate, service=name)
