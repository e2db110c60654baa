"""Endpoints and EndpointSlices (``pkg/apis/core``, ``pkg/apis/discovery``)."""

from collections.abc import Iterable, Iterator

from lastcall.lab.apiserver import fields, names
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.service_ports import PROTOCOLS
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

_TYPES = ("FQDN", "IPv4", "IPv6")
_VERSIONS = {"IPv4": 4, "IPv6": 6}
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS = 1000, 100, 100
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


class Endpoints(Behaviour):
    """Where a service's pods are, as it used to be said."""

    creates_on_update = True
    deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

    def default(self, obj: Object) -> None:
        """TCP."""
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                rules.fill(port, protocol="TCP")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateEndpoints``."""
        for index, subset in enumerate(obj.get("subsets") or ()):
            path = f"subsets[{index}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                yield fields.required(path, "must specify `addresses` or `notReadyAddresses`")
            for name in ("addresses", "notReadyAddresses"):
                for number, address in enumerate(subset.get(name) or ()):
                    if not rules.is_address(address.get("ip", "")):
                        yield fields.invalid(f"{path}.{name}[{number}].ip", address.get("ip", ""), _ADDRESS_RULE)
            ports = subset.get("ports") or ()
            for number, port in enumerate(ports):
                if len(ports) > 1 and not port.get("name"):
                    yield fields.required(f"{path}.ports[{number}].name")
                yield from rules.check_port(port.get("port"), f"{path}.ports[{number}].port")
                yield from rules.one_of(port["protocol"], f"{path}.ports[{number}].protocol", *PROTOCOLS)


class EndpointSlice(Behaviour):
    """Where a service's pods are, and whether they are ready, serve, or terminate."""

    has_generation = True

    def default(self, obj: Object) -> None:
        """Unnamed ports, TCP."""
        obj["endpoints"] = obj.get("endpoints")
        for endpoint in obj["endpoints"] or ():
            rules.part(endpoint, "conditions")
        obj["ports"] = obj.get("ports")
        for port in obj["ports"] or ():
            rules.fill(port, name="", protocol="TCP")

    def wanted(self, obj: Object) -> object:
        """Everything, the labels too."""
        return super().wanted(obj), obj["metadata"].get("labels")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateEndpointSlice``."""
        kind = obj.get("addressType") or ""
        if not kind:
            yield fields.required("addressType")
        else:
            yield from rules.one_of(kind, "addressType", *_TYPES)
        endpoints, ports = obj["endpoints"] or (), obj["ports"] or ()
        yield from _too_many(endpoints, "endpoints", _MOST_ENDPOINTS)
        for index, endpoint in enumerate(endpoints):
            yield from _check_endpoint(endpoint, kind, f"endpoints[{index}]")
        yield from _too_many(ports, "ports", _MOST_PORTS)
        seen: list[str] = []
        for index, port in enumerate(ports):
            yield from rules.one_of(port["protocol"], f"ports[{index}].protocol", *PROTOCOLS)
            if port["name"] in seen:
                yield fields.duplicate("ports", port["name"])
            seen.append(port["name"])

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The type of address stays as it is."""
        yield from self.validate(new)
        yield from rules.immutable(new, old, "", "addressType")


def _check_endpoint(endpoint: Object, kind: str, path: str) -> Iterator[Cause]:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield fields.required(f"{path}.addresses", "must contain at least 1 address")
    yield from _too_many(addresses, f"{path}.addresses", _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        at = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            if wrong := names.subdomain(address):
                yield fields.invalid(at, address, wrong)
        elif not rules.is_address(address):
            yield fields.invalid(at, address, _ADDRESS_RULE)
        elif kind in _VERSIONS and not rules.is_address(address, _VERSIONS[kind]):
            yield fields.invalid(at, address, f"must be an {kind} address")
    if (node := endpoint.get("nodeName")) is not None and (wrong := names.subdomain(node)):
        yield fields.invalid(f"{path}.nodeName", node, wrong)
    if (host := endpoint.get("hostname")) is not None and (wrong := names.label(host)):
        yield fields.invalid(f"{path}.hostname", host, wrong)


def _too_many(values: Iterable[object], path: str, most: int) -> Iterator[Cause]:
    if (count := len(list(values))) > most:
        yield Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", path)
