"""Services (``pkg/apis/core``, ``pkg/registry/core/service``). Addresses and node ports are given by admission."""

from collections.abc import Iterable, Iterator, Mapping

from lastcall.lab.apiserver import fields, names
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.load_balancers import check_ingress, check_ranges
from lastcall.lab.apiserver.kinds.service_ports import check_ports
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

NO_ADDRESS = "None"
_EXTERNAL = ("NodePort", "LoadBalancer")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_AFFINITY_SECONDS, _LONGEST_AFFINITY = 10800, 86400
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")


class Service(Behaviour):
    """One name and address for several pods."""

    has_status = True
    status_keeps = ()
    status_after_delete = False
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """Within the cluster, without affinity, to the port of the same number."""
        spec = rules.part(obj, "spec")
        spec["type"] = kind = spec.get("type") or "ClusterIP"
        spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
        for port in spec.get("ports") or ():
            rules.fill(port, protocol="TCP")
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
        if spec["sessionAffinity"] == "ClientIP":
            affinity = rules.part(rules.part(spec, "sessionAffinityConfig"), "clientIP")
            rules.fill(affinity, timeoutSeconds=_AFFINITY_SECONDS)
        if kind in _EXTERNAL:
            rules.fill(spec, externalTrafficPolicy="Cluster")
        if kind == "LoadBalancer":
            rules.fill(spec, allocateLoadBalancerNodePorts=True)
        if kind != "ExternalName":
            rules.fill(spec, internalTrafficPolicy="Cluster")
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        balancer = rules.part(rules.part(obj, "status"), "loadBalancer")
        for ingress in balancer.get("ingress") or () if kind == "LoadBalancer" else ():
            if ingress.get("ip"):
                rules.fill(ingress, ipMode="VIP")

    def prepare_create(self, obj: Object) -> None:
        """No load balancer has been made."""
        obj["status"] = {"loadBalancer": {}}

    def prepare_update(self, new: Object, old: Object) -> None:
        """What was given stays given, and what belongs to another type goes with that."""
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
        return names.label(name)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateService``."""
        spec = obj["spec"]
        if not spec.get("ports") and not headless(spec) and spec["type"] != "ExternalName":
            yield fields.required("spec.ports")
        yield from _check_type(spec)
        yield from check_ports(spec.get("ports") or [], "spec.ports", kind=spec["type"])
        yield from rules.check_labels(spec.get("selector"), "spec.selector")
        yield from rules.one_of(spec["sessionAffinity"], "spec.sessionAffinity", "ClientIP", "None")
        if spec["sessionAffinity"] == "ClientIP":
            seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
            if not 0 < seconds <= _LONGEST_AFFINITY:
                path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
                yield fields.invalid(path, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")
        if spec["sessionAffinity"] == "None" and spec.get("sessionAffinityConfig") is not None:
            why = "must not be set when session affinity is None"
            yield fields.forbidden("spec.sessionAffinityConfig", why)
        for index, address in enumerate(spec.get("externalIPs") or ()):
            if not rules.is_address(address):
                yield fields.invalid(f"spec.externalIPs[{index}]", address, _ADDRESS_RULE)
            else:
                yield from rules.check_ordinary(address, f"spec.externalIPs[{index}]")
        yield from rules.one_of(spec["type"], "spec.type", *_TYPES)
        yield from check_ranges(spec)
        yield from _check_policies(spec)
        yield from rules.one_of(spec.get("trafficDistribution"), "spec.trafficDistribution", *_DISTRIBUTIONS)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateServiceStatusUpdate``."""
        return check_ingress((new.get("status") or {}).get("loadBalancer") or {}, new["spec"]["type"])

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """An address does not change (``ValidateServiceUpdate``)."""
        after, before = new["spec"], old["spec"]
        if "ExternalName" not in (after["type"], before["type"]):
            had, has = before.get("clusterIPs") or [], after.get("clusterIPs") or []
            for index, address in enumerate(had):
                if index >= len(has):
                    yield fields.invalid(f"spec.clusterIPs[{index}]", has, "primary clusterIP can not be unset")
                elif has[index] != address:
                    yield fields.invalid(f"spec.clusterIPs[{index}]", has, "may not change once set")
        if after["type"] == before["type"] == "LoadBalancer":
            for name, why in (("loadBalancerClass", "may not change once set"),):
                if after.get(name) != before.get(name):
                    yield fields.invalid(f"spec.{name}", after.get(name), why)
        yield from self.validate(new)

    def warnings(self, obj: Object) -> Iterable[str]:
        """What has no effect."""
        spec = obj["spec"]
        if headless(spec):
            if spec.get("loadBalancerIP"):
                yield "spec.loadBalancerIP is ignored for headless services"
            if spec.get("externalIPs"):
                yield "spec.externalIPs is ignored for headless services"
            if spec["sessionAffinity"] != "None":
                yield "spec.SessionAffinity is ignored for headless services"
        external = spec["type"] == "ExternalName"
        if spec.get("externalIPs") and not headless(spec) and not external:
            yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        if spec.get("externalIPs") and external:
            yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
        if spec.get("externalName") and not external:
            yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
        if spec.get("trafficDistribution") == "PreferClose":
            yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'

    def fields(self, obj: Object) -> Mapping[str, str]:
        """Address and type."""
        spec = obj.get("spec") or {}
        return {"spec.clusterIP": spec.get("clusterIP") or "", "spec.type": spec.get("type") or ""}


def headless(spec: Object) -> bool:
    """Whether the service wants no address."""
    return bool((spec.get("clusterIPs") or [""])[0] == NO_ADDRESS)


def needs_address(spec: Object) -> bool:
    """Whether the service has an address of its own."""
    return spec["type"] != "ExternalName" and not headless(spec)


def needs_node_ports(spec: Object) -> bool:
    """Whether each port has a port on every node."""
    return spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and bool(spec.get("allocateLoadBalancerNodePorts"))
    )


def needs_health_check(spec: Object) -> bool:
    """Whether nodes answer a load balancer that asks whether they have endpoints."""
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
    """What the client has not set anew was meant for the type as it was."""
    for name in names:
        if after.get(name) == before.get(name) or (name == "internalTrafficPolicy"):
            after.pop(name, None)


def _check_type(spec: Object) -> Iterator[Cause]:
    kind = spec["type"]
    if kind in _EXTERNAL and headless(spec):
        yield fields.invalid("spec.clusterIPs[0]", NO_ADDRESS, f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield fields.forbidden(f"spec.{name}", "may not be set for ExternalName services")
    if not (name := (spec.get("externalName") or "").removesuffix(".")):
        yield fields.required("spec.externalName")
    elif wrong := names.subdomain(name):
        yield fields.invalid("spec.externalName", name, wrong)


def _check_policies(spec: Object) -> Iterator[Cause]:
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if external is not None and spec["type"] not in _EXTERNAL and not spec.get("externalIPs"):
        why = "may only be set for externally-accessible services"
        yield fields.invalid("spec.externalTrafficPolicy", external, why)
    else:
        yield from rules.one_of(external, "spec.externalTrafficPolicy", "Cluster", "Local")
    port = spec.get("healthCheckNodePort")
    if port and not needs_health_check(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield fields.invalid("spec.healthCheckNodePort", port, why)
    if spec.get("allocateLoadBalancerNodePorts") is not None and spec["type"] != "LoadBalancer":
        why = "may only be used when `type` is 'LoadBalancer'"
        yield fields.forbidden("spec.allocateLoadBalancerNodePorts", why)
    yield from rules.one_of(internal, "spec.internalTrafficPolicy", "Cluster", "Local")
