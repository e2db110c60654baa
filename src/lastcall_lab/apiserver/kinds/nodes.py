"""Nodes (``pkg/apis/core``, ``pkg/registry/core/node``)."""

from collections.abc import Iterable, Iterator, Mapping

from lastcall.model import name_rules, quantities
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.pod_resources import is_integer_resource
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour, keep_field
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CIDR_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_TAINTS = "metadata.taints"


class NodeKind(KindBehaviour):
    """A machine. Its kubelet registers it with a status."""

    has_status = True
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """Fields that the status always has; allocatable defaults to capacity."""
        spec, status = common_rules.sub_object(obj, "spec"), common_rules.sub_object(obj, "status")
        common_rules.sub_object(common_rules.sub_object(status, "daemonEndpoints"), "kubeletEndpoint").setdefault(
            "Port", 0
        )
        common_rules.fill_missing(common_rules.sub_object(status, "nodeInfo"), **dict.fromkeys(_INFO, ""))
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        for taint in spec.get("taints") or ():
            if not taint.get("value"):
                taint.pop("value", None)
        for name in ("taints", "unschedulable", "podCIDR", "podCIDRs", "providerID"):
            if not spec.get(name):
                spec.pop(name, None)
        _one_network(spec)

    def prepare_create(self, obj: Object) -> None:
        """Keeps the status from the request, unlike other kinds."""
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        """Keeps the old status."""
        keep_field(new, old, "status")
        new["spec"].pop("configSource", None)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateNode``."""
        spec = obj["spec"]
        yield from check_taints(spec.get("taints") or (), _TAINTS)
        yield from _check_resources(obj.get("status") or {})
        networks = spec.get("podCIDRs") or ()
        for index, network in enumerate(networks):
            if not common_rules.is_network(network):
                yield field_errors.invalid(f"spec.podCIDRs[{index}]", network, _CIDR_RULE)
        if len(networks) > 1 and (len(networks) > 2 or len({":" in network for network in networks}) == 1):
            why = "may specify no more than one CIDR for each IP family"
            yield field_errors.invalid("spec.podCIDRs", networks, why)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateNodeUpdate``, which validates taints and resources again."""
        yield from self.validate(new)
        yield from self.validate_status(new, old)
        for name, said in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
            before = old["spec"].get(name)
            if before and new["spec"].get(name) != before:
                yield field_errors.forbidden(
                    f"spec.{name}", f'node updates may not change {said} except from "" to valid'
                )
        yield from check_taints(new["spec"].get("taints") or (), _TAINTS)
        if new["spec"].get("externalID", "") != old["spec"].get("externalID", ""):
            yield field_errors.forbidden("spec.externalID", "may not be updated")

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """Addresses must be unique."""
        yield from _check_resources(new.get("status") or {})
        seen: list[object] = []
        for index, address in enumerate((new.get("status") or {}).get("addresses") or ()):
            if address in seen:
                said = {"Type": address.get("type", ""), "Address": address.get("address", "")}
                yield field_errors.duplicate(f"status.addresses[{index}]", said)
            seen.append(address)

    def fields(self, obj: Object) -> Mapping[str, str]:
        """Whether it is unschedulable."""
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


def check_taints(taints: Iterable[Object], path: str) -> Iterator[Cause]:
    """``validateNodeTaints``: one taint per key and effect."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at, key, value, effect = f"{path}[{index}]", taint.get("key", ""), taint.get("value", ""), taint.get("effect")
        if wrong := name_rules.qualified_name_error(key):
            yield field_errors.invalid(f"{at}.key", key, wrong)
        if wrong := name_rules.label_value_error(value):
            yield field_errors.invalid(f"{at}.value", value, wrong)
        yield from _effect(effect or "", f"{at}.effect")
        if (key, effect or "") in seen:
            said = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            cause = field_errors.duplicate(at, said)
            yield cause._replace(message=f"{cause.message}: taints must be unique by key and effect pair")
        seen.add((key, effect or ""))


def _check_resources(status: Object) -> Iterator[Cause]:
    """``ValidateNodeResources``."""
    for side in ("capacity", "allocatable"):
        for name, text in (status.get(side) or {}).items():
            amount, path = quantities.parse_quantity(str(text)), f"status.{side}.{name}"
            if amount < 0:
                yield field_errors.invalid(path, text, common_rules.NOT_NEGATIVE)
            if is_integer_resource(name) and amount.denominator != 1:
                yield field_errors.invalid(path, text, "must be an integer")


def _effect(effect: str, path: str) -> Iterator[Cause]:
    if not effect:
        yield field_errors.value_required(path)
    else:
        yield from common_rules.check_one_of(effect, path, *_EFFECTS)


def _one_network(spec: Object) -> None:
    """``podCIDR`` must be the first of ``podCIDRs``."""
    first, networks = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not networks or networks[0] != first):
        spec["podCIDRs"] = [first]
    elif networks and not first:
        spec["podCIDR"] = networks[0]
