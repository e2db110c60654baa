"""Rules for Services of type LoadBalancer (``ValidateService``), pure."""

from collections.abc import Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_TYPE = "LoadBalancer"
_ONLY = "may only be used when `type` is 'LoadBalancer'"
_NETWORK_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def check_ranges(spec: Object) -> Iterator[Cause]:
    """Validates source ranges and the load balancer class."""
    path, ranges = "spec.LoadBalancerSourceRanges", spec.get("loadBalancerSourceRanges") or ()
    if ranges and spec["type"] != _TYPE:
        yield field_errors.forbidden(path, _ONLY)
    for index, network in enumerate(ranges):
        if not common_rules.is_network(network.strip()):
            yield field_errors.invalid(f"{path}[{index}]", network.strip(), _NETWORK_RULE)
    name = spec.get("loadBalancerClass")
    if name is not None and spec["type"] != _TYPE:
        yield field_errors.forbidden("spec.loadBalancerClass", _ONLY)
    elif name is not None and (wrong := name_rules.qualified_name_error(name)):
        yield field_errors.invalid("spec.loadBalancerClass", name, wrong)


def check_ingress(balancer: Object, kind: str) -> Iterator[Cause]:
    """``ValidateLoadBalancerStatus`` for a service of type ``kind``."""
    points = balancer.get("ingress") or ()
    if points and kind != _TYPE:
        yield field_errors.forbidden(
            "status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'"
        )
        return
    for index, point in enumerate(points):
        yield from _check_point(point, f"status.loadBalancer.ingress[{index}]")


def _check_point(point: Object, path: str) -> Iterator[Cause]:
    address, mode, host = point.get("ip"), point.get("ipMode"), point.get("hostname")
    if address and not common_rules.is_address(address):
        yield field_errors.invalid(f"{path}.ip", address, _ADDRESS_RULE)
    if address and mode is None:
        yield field_errors.value_required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif mode is not None and not address:
        yield field_errors.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    else:
        yield from common_rules.check_one_of(mode, f"{path}.ipMode", "Proxy", "VIP")
    if host and (wrong := name_rules.subdomain_error(host)):
        yield field_errors.invalid(f"{path}.hostname", host, wrong)
    if host and common_rules.is_address(host):
        yield field_errors.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")
