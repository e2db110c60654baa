"""Endpoints and EndpointSlices (``pkg/apis/core``, ``pkg/apis/discovery``)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.service_ports import PROTOCOLS
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_TYPES = ("FQDN", "IPv4", "IPv6")
_VERSIONS = {"IPv4": 4, "IPv6": 6}
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_HINTS = 1000, 100, 20000, 8
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


class EndpointsKind(KindBehaviour):
    """The addresses of a Service's pods, in the deprecated form."""

    creates_on_update = True
    deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

    def default(self, obj: Object) -> None:
        """Protocol TCP."""
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                common_rules.fill_missing(port, protocol="TCP")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateEndpoints``."""
        for index, subset in enumerate(obj.get("subsets") or ()):
            path = f"subsets[{index}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                yield field_errors.value_required(path, "must specify `addresses` or `notReadyAddresses`")
            for name in ("addresses", "notReadyAddresses"):
                for number, address in enumerate(subset.get(name) or ()):
                    if not common_rules.is_address(address.get("ip", "")):
                        yield field_errors.invalid(f"{path}.{name}[{number}].ip", address.get("ip", ""), _ADDRESS_RULE)
            ports = subset.get("ports") or ()
            for number, port in enumerate(ports):
                if len(ports) > 1 and not port.get("name"):
                    yield field_errors.value_required(f"{path}.ports[{number}].name")
                yield from common_rules.check_port(port.get("port"), f"{path}.ports[{number}].port")
                yield from common_rules.check_one_of(port["protocol"], f"{path}.ports[{number}].protocol", *PROTOCOLS)


class EndpointSliceKind(KindBehaviour):
    """The addresses of a Service's pods, with their ready, serving and terminating conditions."""

    has_generation = True
    leaves_alone = True

    def default(self, obj: Object) -> None:
        """Empty port names, protocol TCP."""
        obj["endpoints"] = obj.get("endpoints")
        for endpoint in obj["endpoints"] or ():
            common_rules.sub_object(endpoint, "conditions")
        obj["ports"] = obj.get("ports")
        for port in obj["ports"] or ():
            common_rules.fill_missing(port, name="", protocol="TCP")

    def prepare_create(self, obj: Object) -> None:
        """Drops the fields that v1 removed (``dropTopologyOnV1``)."""
        for endpoint in obj["endpoints"] or ():
            endpoint.pop("deprecatedTopology", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        """Drops the same fields."""
        self.prepare_create(new)

    def warnings(self, obj: Object) -> Iterable[str]:
        """Warns about FQDN addresses."""
        if obj.get("addressType") == "FQDN":
            yield "spec.addressType: FQDN endpoints are deprecated"

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """No warnings about addresses, which were given at creation."""
        return ()

    def generation_source(self, obj: Object) -> object:
        """Everything, including the labels."""
        return super().generation_source(obj), obj["metadata"].get("labels")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateEndpointSlice``."""
        return self._check(obj, ())

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The address type is immutable. Unchanged endpoints are not validated again."""
        yield from self._check(new, (old["endpoints"] or ()) if new.get("addressType") == old["addressType"] else ())
        yield from common_rules.check_immutable(new, old, "", "addressType")

    def _check(self, obj: Object, known: Sequence[Object]) -> Iterator[Cause]:
        kind = obj.get("addressType") or ""
        if not kind:
            yield field_errors.value_required("addressType")
        else:
            yield from common_rules.check_one_of(kind, "addressType", *_TYPES)
        endpoints = obj["endpoints"] or ()
        yield from _check_ports(obj["ports"] or ())
        yield from _too_many(endpoints, "endpoints", _MOST_ENDPOINTS)
        good = frozenset(map(id, known))
        for index, endpoint in enumerate(endpoints):
            if id(endpoint) not in good:
                yield from _check_endpoint(endpoint, kind, f"endpoints[{index}]")


def _check_ports(ports: Sequence[Object]) -> Iterator[Cause]:
    if len(ports) > _MOST_PORTS:
        yield from _too_many(ports, "ports", _MOST_PORTS)
        return
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name, application = f"ports[{index}]", port["name"], port.get("appProtocol")
        if name and (wrong := name_rules.dns_label_error(name)):
            yield field_errors.invalid(f"{path}.name", name, wrong)
        if name in seen:
            yield field_errors.duplicate(f"{path}.name", name)
        seen.add(name)
        yield from common_rules.check_one_of(port["protocol"], f"{path}.protocol", *PROTOCOLS)
        if application is not None and (wrong := name_rules.qualified_name_error(application)):
            yield field_errors.invalid(f"{path}.appProtocol", application, wrong)


def _check_hints(hints: Sequence[Object], path: str, wrong: Callable[[str], str]) -> Iterator[Cause]:
    yield from _too_many(hints, path, _MOST_HINTS)
    seen: set[str] = set()
    for index, hint in enumerate(hints if len(hints) <= _MOST_HINTS else ()):
        name = hint.get("name", "")
        if name in seen:
            yield field_errors.duplicate(f"{path}[{index}].name", name)
        seen.add(name)
        if why := wrong(name):
            yield field_errors.invalid(f"{path}[{index}].name", name, why)


def _check_endpoint(endpoint: Object, kind: str, path: str) -> Iterator[Cause]:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield field_errors.value_required(f"{path}.addresses", "must contain at least 1 address")
    yield from _too_many(addresses, f"{path}.addresses", _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        at = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            if wrong := name_rules.subdomain_error(address):
                yield field_errors.invalid(at, address, wrong)
        elif not common_rules.is_address(address):
            yield field_errors.invalid(at, address, _ADDRESS_RULE)
        elif kind in _VERSIONS and not common_rules.is_address(address, _VERSIONS[kind]):
            yield field_errors.invalid(f"{path}.addresses", address, f"must be an {kind} address")
        if kind in _VERSIONS and common_rules.is_address(address):
            yield from common_rules.check_endpoint_address(address, at)
    if (node := endpoint.get("nodeName")) is not None and (wrong := name_rules.subdomain_error(node)):
        yield field_errors.invalid(f"{path}.nodeName", node, wrong)
    if (host := endpoint.get("hostname")) is not None and (wrong := name_rules.dns_label_error(host)):
        yield field_errors.invalid(f"{path}.hostname", host, wrong)
    hints = endpoint.get("hints") or {}
    yield from _check_hints(hints.get("forZones") or (), f"{path}.hints.forZones", name_rules.label_value_error)
    yield from _check_hints(hints.get("forNodes") or (), f"{path}.hints.forNodes", name_rules.subdomain_error)


def _too_many(values: Iterable[object], path: str, most: int) -> Iterator[Cause]:
    if (count := len(list(values))) > most:
        yield Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", path)
