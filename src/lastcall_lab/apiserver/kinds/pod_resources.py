"""Resource requests and limits of containers: validation and QoS class, pure."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from lastcall.model import name_rules, quantities
from lastcall_lab.apiserver.kinds.pod_defaults import containers_of
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_COMPUTE = ("cpu", "memory")
_CONTAINER = (*_COMPUTE, "ephemeral-storage")
_STANDARD = (
    *_CONTAINER,
    *(f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER),
    *("storage", "requests.storage", "pods", "services", "services.nodeports", "services.loadbalancers", "secrets"),
    *("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas"),
)
_HUGE = "hugepages-"


def validate_resources(resources: Object, path: str) -> Iterator[Cause]:
    """Validates requests and limits of one container."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, quantity in limits.items():
        yield from _one(name, quantity, f"{path}.limits[{name}]")
    for name, quantity in requests.items():
        yield from _one(name, quantity, f"{path}.requests[{name}]")
        yield from _within_limit(name, quantity, limits.get(name), path)
    present = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in present) and not present & {*_COMPUTE}:
        yield field_errors.forbidden(path, "HugePages require cpu or memory")


def _within_limit(name: str, request: str, limit: str | None, path: str) -> Iterator[Cause]:
    overcommitted = _native(name) and not name.startswith(_HUGE)
    if limit is None:
        if not overcommitted:
            yield field_errors.value_required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    more = quantities.parse_quantity(str(request)) - quantities.parse_quantity(str(limit))
    if more and not overcommitted:
        yield field_errors.invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
    elif more > 0:
        yield field_errors.invalid(
            f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}"
        )


def _one(name: str, quantity: str, path: str) -> Iterator[Cause]:
    if wrong := name_rules.qualified_name_error(name):
        yield field_errors.invalid(path, name, wrong)
    elif "/" not in name:
        if name not in _STANDARD and not name.startswith(_HUGE):
            yield field_errors.invalid(path, name, "must be a standard resource type or fully qualified")
        if name not in _CONTAINER and not name.startswith(_HUGE):
            yield field_errors.invalid(path, name, "must be a standard resource for containers")
    elif not _native(name) and name.startswith("requests."):
        yield field_errors.invalid(path, name, "doesn't follow extended resource name standard")
    number = quantities.parse_quantity(str(quantity))
    if number < 0:
        yield field_errors.invalid(path, quantity, "must be greater than or equal to 0")
    if not _native(name) and number.denominator != 1:
        yield field_errors.invalid(path, quantity, "must be an integer")


def is_integer_resource(name: str) -> bool:
    """Whether the resource allows only whole numbers (``helper.IsIntegerResourceName``)."""
    return name == "pods" or ("/" in name and not _native(name))


def _native(name: str) -> bool:
    """A native resource of Kubernetes: without a prefix, or with its own."""
    return "/" not in name or "kubernetes.io/" in name


def quality_of_service(pod: Object) -> str:
    """``Guaranteed``, ``Burstable`` or ``BestEffort`` (``pkg/apis/core/v1/helper/qos``)."""
    whole = pod["spec"].get("resources")
    each = [whole] if whole else [one.get("resources") or {} for one in _counted_containers(pod["spec"])]
    requests, limits = Counter[str](), Counter[str]()
    guaranteed = True
    for one in each:
        requests.update(_compute(one.get("requests")))
        found = _compute(one.get("limits"))
        limits.update(found)
        guaranteed = guaranteed and len(found) == len(_COMPUTE)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _counted_containers(spec: Object) -> Iterator[Object]:
    return containers_of(spec, ("containers", "initContainers"))


def _compute(amounts: Object | None) -> dict[str, Fraction]:
    numbers = {name: quantities.parse_quantity(str(text)) for name, text in (amounts or {}).items() if name in _COMPUTE}
    return {name: number for name, number in numbers.items() if number > 0}
