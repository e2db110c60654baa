"""Allowed changes of a pod's status (``validation.ValidatePodStatusUpdate``), pure."""

from collections.abc import Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import pod_value_rules
from lastcall_lab.apiserver.kinds.pod_update_rules import validate_mirror
from lastcall_lab.apiserver.resources.kind_behaviour import keep_field
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object


def prepare_status(status: Object, before: Object) -> None:
    """Keeps QoS class and observed generation if the writer omits them."""
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name):
            keep_field(status, before, name)
    generations: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        generations.setdefault(condition.get("type"), []).append(condition.get("observedGeneration", 0))
    for index, condition in enumerate(status.get("conditions") or ()):
        known = generations.get(condition.get("type"))
        if known and (generation := known.pop(0)) and not condition.get("observedGeneration"):
            status["conditions"][index] = {**condition, "observedGeneration": generation}
    _one_address(status)


def _one_address(status: Object) -> None:
    """``podIP`` must equal the first of ``podIPs``; if they differ, ``podIP`` wins."""
    single, many = status.get("podIP"), status.get("podIPs") or []
    if single and (not many or many[0].get("ip") != single):
        status["podIPs"] = [{"ip": single}]
    elif many and not single:
        status["podIP"] = many[0].get("ip", "")


def validate_status_change(new: Object, old: Object) -> Iterator[Cause]:
    """Validates a new status against the old one."""
    status, before, spec = new.get("status") or {}, old.get("status") or {}, old["spec"]
    yield from validate_mirror(new, old)
    yield from _conditions(status)
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName") and (wrong := name_rules.subdomain_error(nominated)):
        yield field_errors.invalid("status.nominatedNodeName", nominated, wrong)
    yield from _generation(status, "status.observedGeneration")
    if status.get("qosClass") != before.get("qosClass"):
        yield field_errors.invalid("status.qosClass", status.get("qosClass", ""), "field is immutable")
    policy, sidecars = spec.get("restartPolicy"), _sidecars(spec)
    yield from _back_to_life(status, before, "containerStatuses", policy, set())
    yield from _back_to_life(status, before, "initContainerStatuses", policy, sidecars)
    yield from _back_to_life(status, before, "ephemeralContainerStatuses", "Never", set())
    yield from _addresses(status, "podIPs", "podIP")
    yield from _addresses(status, "hostIPs", "hostIP")


def _conditions(status: Object) -> Iterator[Cause]:
    for index, condition in enumerate(status.get("conditions") or ()):
        path, kind = f"status.conditions[{index}]", condition.get("type", "")
        yield from _generation(condition, f"{path}.observedGeneration")
        if wrong := name_rules.qualified_name_error(kind):
            yield field_errors.invalid(f"{path}.Type", kind, wrong)


def _generation(where: Object, path: str) -> Iterator[Cause]:
    generation = where.get("observedGeneration", 0)
    if generation < 0:
        yield field_errors.invalid(path, generation, "must be a non-negative integer")


def _sidecars(spec: Object) -> set[str]:
    return {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}


def _back_to_life(status: Object, before: Object, name: str, policy: str | None, spared: set[str]) -> Iterator[Cause]:
    """A terminated container must stay terminated if its restart policy forbids restarts."""
    if policy == "Always":
        return
    states = {one["name"]: one.get("state") or {} for one in status.get(name) or ()}
    for index, old in enumerate(before.get(name) or ()):
        ended = (old.get("state") or {}).get("terminated")
        if ended is None or old["name"] in spared or (ended.get("exitCode") and policy == "OnFailure"):
            continue
        if old["name"] in states and "terminated" not in states[old["name"]]:
            why = "may not be transitioned to non-terminated state"
            yield field_errors.forbidden(f"status.{name}[{index}].state", why)


def _addresses(status: Object, name: str, single: str) -> Iterator[Cause]:
    addresses = [one.get("ip", "") for one in status.get(name) or ()]
    if single == "hostIP" and addresses and status.get(single, "") != addresses[0]:
        yield field_errors.invalid(f"status.{name}[0].ip", addresses[0], f"must be equal to `{single}`")
    for index, address in enumerate(addresses):
        if wrong := pod_value_rules.address_error(address):
            yield field_errors.invalid(f"status.{name}[{index}]", address, wrong)
    families = [":" in address for address in addresses]
    if len(set(families)) != len(families):
        why = "may specify no more than one IP for each IP family"
        yield field_errors.invalid(f"status.{name}", status[name], why)
