"""Services (``pkg/apis/core``, ``pkg/registry/core/service``). Admission allocates addresses and node ports."""

from collections.abc import Iterable, Iterator, Mapping

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.load_balancers import check_ingress, check_ranges
from lastcall_lab.apiserver.kinds.service_ports import check_ports
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

NO_ADDRESS = "None"
_EXTERNAL = ("NodePort", "LoadBalancer")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_AFFINITY_SECONDS, _LONGEST_AFFINITY = 10800, 86400
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")


class ServiceKind(KindBehaviour):
    """A stable name and address for a set of pods."""

    has_status = True
    status_keeps = ()
    status_after_delete = False
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """Type ClusterIP, no session affinity, target port equal to the port."""
        spec = common_rules.sub_object(obj, "spec")
        spec["type"] = kind = spec.get("type") or "ClusterIP"
        spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
        for port in spec.get("ports") or ():
            common_rules.fill_missing(port, protocol="TCP")
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
        if spec["sessionAffinity"] == "ClientIP":
            affinity = common_rules.sub_object(common_rules.sub_object(spec, "sessionAffinityConfig"), "clientIP")
            common_rules.fill_missing(affinity, timeoutSeconds=_AFFINITY_SECONDS)
        if kind in _EXTERNAL:
            common_rules.fill_missing(spec, externalTrafficPolicy="Cluster")
        if kind == "LoadBalancer":
            common_rules.fill_missing(spec, allocateLoadBalancerNodePorts=True)
        if kind != "ExternalName":
            common_rules.fill_missing(spec, internalTrafficPolicy="Cluster")
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        balancer = common_rules.sub_object(common_rules.sub_object(obj, "status"), "loadBalancer")
        for ingress in balancer.get("ingress") or () if kind == "LoadBalancer" else ():
            if ingress.get("ip"):
                common_rules.fill_missing(ingress, ipMode="VIP")

    def prepare_create(self, obj: Object) -> None:
        """Clears the status."""
        obj["status"] = {"loadBalancer": {}}

    def prepare_update(self, new: Object, old: Object) -> None:
        """Keeps allocated values, and drops those that the new type does not use."""
        super().prepare_update(new, old)
        after, before = new["spec"], old["spec"]
        if after["type"] == "ExternalName":
            _drop_unchanged(after, before, *_ADDRESSES, "internalTrafficPolicy")
        elif before["type"] != "ExternalName":
            _keep_addresses(after, before)
        _keep_node_ports(after, before)
        _keep_health_check(after, before)
        if after["type"] not in _EXTERNAL:
            _drop_unchanged(after, before, "externalTrafficPolicy")
        if after["type"] != "LoadBalancer":
            _drop_unchanged(after, before, "allocateLoadBalancerNodePorts", "loadBalancerClass")

    def validate_name(self, name: str) -> str:
        """RFC 1123 label (since 1.36: ``RelaxedServiceNameValidation``)."""
        return name_rules.dns_label_error(name)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateService``."""
        spec = obj["spec"]
        if not spec.get("ports") and not is_headless(spec) and spec["type"] != "ExternalName":
            yield field_errors.value_required("spec.ports")
        yield from _check_type(spec)
        yield from check_ports(spec.get("ports") or [], "spec.ports", kind=spec["type"])
        yield from common_rules.check_labels(spec.get("selector"), "spec.selector")
        yield from common_rules.check_one_of(spec["sessionAffinity"], "spec.sessionAffinity", "ClientIP", "None")
        if spec["sessionAffinity"] == "ClientIP":
            seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
            if not 0 < seconds <= _LONGEST_AFFINITY:
                path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
                yield field_errors.invalid(path, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")
        if spec["sessionAffinity"] == "None" and spec.get("sessionAffinityConfig") is not None:
            why = "must not be set when session affinity is None"
            yield field_errors.forbidden("spec.sessionAffinityConfig", why)
        for index, address in enumerate(spec.get("externalIPs") or ()):
            if not common_rules.is_address(address):
                yield field_errors.invalid(f"spec.externalIPs[{index}]", address, _ADDRESS_RULE)
            else:
                yield from common_rules.check_endpoint_address(address, f"spec.externalIPs[{index}]")
        yield from common_rules.check_one_of(spec["type"], "spec.type", *_TYPES)
        yield from check_ranges(spec)
        yield from _check_policies(spec)
        yield from common_rules.check_one_of(
            spec.get("trafficDistribution"), "spec.trafficDistribution", *_DISTRIBUTIONS
        )

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateServiceStatusUpdate``."""
        return check_ingress((new.get("status") or {}).get("loadBalancer") or {}, new["spec"]["type"])

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """An allocated address is immutable (``ValidateServiceUpdate``)."""
        after, before = new["spec"], old["spec"]
        if "ExternalName" not in (after["type"], before["type"]):
            had, has = before.get("clusterIPs") or [], after.get("clusterIPs") or []
            for index, address in enumerate(had):
                if index >= len(has):
                    yield field_errors.invalid(f"spec.clusterIPs[{index}]", has, "primary clusterIP can not be unset")
                elif has[index] != address:
                    yield field_errors.invalid(f"spec.clusterIPs[{index}]", has, "may not change once set")
        if after["type"] == before["type"] == "LoadBalancer":
            for name, why in (("loadBalancerClass", "may not change once set"),):
                if after.get(name) != before.get(name):
                    yield field_errors.invalid(f"spec.{name}", after.get(name), why)
        yield from self.validate(new)

    def warnings(self, obj: Object) -> Iterable[str]:
        """Warns about fields without effect."""
        spec = obj["spec"]
        if is_headless(spec):
            if spec.get("loadBalancerIP"):
                yield "spec.loadBalancerIP is ignored for headless services"
            if spec.get("externalIPs"):
                yield "spec.externalIPs is ignored for headless services"
            if spec["sessionAffinity"] != "None":
                yield "spec.SessionAffinity is ignored for headless services"
        external = spec["type"] == "ExternalName"
        if spec.get("externalIPs") and not is_headless(spec) and not external:
            yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        if spec.get("externalIPs") and external:
            yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
        if spec.get("externalName") and not external:
            yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
        if spec.get("trafficDistribution") == "PreferClose":
            yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'

    def fields(self, obj: Object) -> Mapping[str, str]:
        """Cluster IP and type."""
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}


def is_headless(spec: Object) -> bool:
    """Whether the Service is headless (clusterIP None)."""
    return bool((spec.get("clusterIPs") or [""])[0] == NO_ADDRESS)


def needs_address(spec: Object) -> bool:
    """Whether the Service needs a cluster IP."""
    return spec["type"] != "ExternalName" and not is_headless(spec)


def needs_node_ports(spec: Object) -> bool:
    """Whether each of its ports needs a node port."""
    return spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and bool(spec.get("allocateLoadBalancerNodePorts"))
    )


def needs_health_check(spec: Object) -> bool:
    """Whether it needs a health check node port, with which load balancers find nodes with endpoints."""
    return spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _keep_addresses(after: Object, before: Object) -> None:
    if not after.get("clusterIP") and after.get("clusterIPs") in (None, [], before.get("clusterIPs")):
        for name in ("clusterIP", "clusterIPs"):
            if name in before:
                after[name] = before[name]
    elif after.get("clusterIP") != before.get("clusterIP") and after.get("clusterIPs") == before.get("clusterIPs"):
        after["clusterIPs"] = [after["clusterIP"]]
    for name in ("ipFamilies", "ipFamilyPolicy"):
        if name in before:
            after.setdefault(name, before[name])


def _keep_node_ports(after: Object, before: Object) -> None:
    given = {(port["protocol"], port.get("port")): port.get("nodePort") for port in before.get("ports") or ()}
    used = {port.get("nodePort") for port in after.get("ports") or ()}
    for port in after.get("ports") or ():
        had = given.get((port["protocol"], port.get("port")))
        if not needs_node_ports(after) and before["type"] != after["type"] and port.get("nodePort") == had:
            port.pop("nodePort", None)
        elif needs_node_ports(after) and not port.get("nodePort") and had and had not in used:
            port["nodePort"] = had


def _keep_health_check(after: Object, before: Object) -> None:
    had = before.get("healthCheckNodePort")
    if needs_health_check(before) and needs_health_check(after) and not after.get("healthCheckNodePort"):
        after["healthCheckNodePort"] = had
    elif not needs_health_check(after) and after.get("healthCheckNodePort") == had:
        after.pop("healthCheckNodePort", None)


def _drop_unchanged(after: Object, before: Object, *names: str) -> None:
    """Drops values of the old type that the client did not set again."""
    for name in names:
        if after.get(name) == before.get(name) or (name == "internalTrafficPolicy"):
            after.pop(name, None)


def _check_type(spec: Object) -> Iterator[Cause]:
    kind = spec["type"]
    if kind in _EXTERNAL and is_headless(spec):
        yield field_errors.invalid("spec.clusterIPs[0]", NO_ADDRESS, f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield field_errors.forbidden(f"spec.{name}", "may not be set for ExternalName services")
    if not (name := (spec.get("externalName") or "").removesuffix(".")):
        yield field_errors.value_required("spec.externalName")
    elif wrong := name_rules.subdomain_error(name):
        yield field_errors.invalid("spec.externalName", name, wrong)


def _check_policies(spec: Object) -> Iterator[Cause]:
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if external is not None and spec["type"] not in _EXTERNAL and not spec.get("externalIPs"):
        why = "may only be set for externally-accessible services"
        yield field_errors.invalid("spec.externalTrafficPolicy", external, why)
    else:
        yield from common_rules.check_one_of(external, "spec.externalTrafficPolicy", "Cluster", "Local")
    port = spec.get("healthCheckNodePort")
    if port and not needs_health_check(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield field_errors.invalid("spec.healthCheckNodePort", port, why)
    if spec.get("allocateLoadBalancerNodePorts") is not None and spec["type"] != "LoadBalancer":
        why = "may only be used when `type` is 'LoadBalancer'"
        yield field_errors.forbidden("spec.allocateLoadBalancerNodePorts", why)
    yield from common_rules.check_one_of(internal, "spec.internalTrafficPolicy", "Cluster", "Local")
