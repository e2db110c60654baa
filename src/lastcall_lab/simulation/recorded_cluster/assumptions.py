"""What is assumed of a recorded cluster: what its containers do, and how many requests its Services get (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lastcall_lab.simulation.recorded_cluster.state_file import RecordedState
from lastcall_lab.simulation.recorded_cluster.workloads import ASSUMED as UNKNOWN
from lastcall_lab.simulation.scenario import ScenarioWorkload
from lastcall_lab.simulation.scenario_text.field_readers import FieldViolations
from lastcall_lab.simulation.scenario_text.scenario_fields import ASSUME, ASSUMED, BY_WORKLOAD

_AT = "assume"


def assumed_workloads(state: RecordedState, value: Any, wrong: FieldViolations) -> tuple[ScenarioWorkload, ...]:
    """The workloads of a cluster with what a scenario's ``assume`` says of them."""
    said = wrong.read_fields(_AT, value, ASSUME)
    single, requests = said.pop("by_workload", {}), said.pop("requests", {})
    found = {_workload_key(one): _apply_assumptions(one, {**ASSUMED, **said}) for one in state.workloads}
    for name, fields in single.items():
        at = f"{_AT}.byWorkload.{name}"
        own = wrong.read_fields(at, fields, BY_WORKLOAD)
        for key in _matching_names(at, name, list(found), "workload", wrong):
            base = next(one for one in state.workloads if _workload_key(one) == key)
            found[key] = _apply_assumptions(base, {**ASSUMED, **said, **own})
    for name, rate in requests.items():
        at = f"{_AT}.requests.{name}"
        for service in _matching_names(at, name, list(state.services), "Service with pods", wrong):
            _assign_requests(at, service, rate, state.services[service], found, wrong)
    return tuple(found.values())


def _workload_key(workload: ScenarioWorkload) -> str:
    return f"{workload.namespace}/{workload.name}"


def _apply_assumptions(workload: ScenarioWorkload, said: Mapping[str, Any]) -> ScenarioWorkload:
    """``pre_stop`` counts for the hooks that do not say how long they take."""
    hooks = {name: said["pre_stop"] if takes == UNKNOWN else takes for name, takes in workload.hooks.items()}
    others = {name: value for name, value in said.items() if name != "pre_stop"}
    return msgspec.structs.replace(workload, hooks=hooks, **others)


def _matching_names(at: str, name: str, known: Sequence[str], what: str, wrong: FieldViolations) -> Iterator[str]:
    """Of NAMESPACE/NAME; a NAME alone must be clear."""
    found = [key for key in known if name in (key, key.partition("/")[2])]
    if len(found) > 1:
        wrong.add(at, name, f"there are {', '.join(found)}: say which by NAMESPACE/NAME")
    elif not found:
        shown = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
        wrong.add(at, name, f"there is no such {what}; known are {shown or 'none'}")
    else:
        yield found[0]


def _assign_requests(
    at: str, service: str, rate: float, keys: Sequence[str], found: dict[str, ScenarioWorkload], wrong: FieldViolations
) -> None:
    if len(keys) > 1:
        wrong.add(at, service, f"its pods are of several workloads ({', '.join(keys)}): this cannot be measured")
        return
    if found[keys[0]].requests:
        wrong.add(at, service, f"{keys[0]} has the requests of another Service already")
        return
    name = service.partition("/")[2]
    found[keys[0]] = msgspec.structs.replace(found[keys[0]], requests=rate, service=name)
