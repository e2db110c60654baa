"""Services, their endpoints, and network policies."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.tables.cell_text import (
    NONE,
    UNKNOWN,
    UNSET,
    Printer,
    age_text,
    few_values,
    labels_text,
    name_of,
    selector_text,
    spec_of,
    status_of,
)
from lastcall_lab.apiserver.values.request import Object


def service_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a service."""
    spec = spec_of(obj)
    ips = spec.get("clusterIPs") or [spec.get("clusterIP")]
    return [
        name_of(obj),
        spec.get("type", ""),
        ips[0] or NONE,
        _external(obj),
        ",".join(_port(one) for one in spec.get("ports") or ()) or NONE,
        age_text(obj, now),
        labels_text(spec.get("selector")),
    ]


def _external(obj: Object) -> str:
    spec = spec_of(obj)
    kind, said = spec.get("type", ""), list(spec.get("externalIPs") or ())
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(said) or NONE
    if kind == "LoadBalancer":
        ingress = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
        balancer = sorted({one.get("ip") or one.get("hostname") for one in ingress} - {None, ""})
        return ",".join([*balancer, *said]) or "<pending>"
    return str(spec.get("externalName", "")) if kind == "ExternalName" else UNKNOWN


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', '')}"


def endpoints_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of endpoints."""
    found = few_values(_addresses(obj)) if obj.get("subsets") else NONE
    return [name_of(obj), found, age_text(obj, now)]


def _addresses(obj: Object) -> Iterator[str]:
    for subset in obj["subsets"]:
        addresses = [one["ip"] for one in subset.get("addresses") or ()]
        if not subset.get("ports"):
            yield from addresses
        for port in subset.get("ports") or ():
            yield from (f"[{one}]:{port['port']}" if ":" in one else f"{one}:{port['port']}" for one in addresses)


def endpoint_slice_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of an endpoint slice."""
    ports = (
        str(one["port"]) if one.get("port") is not None else one["name"] if one.get("name") is not None else "*"
        for one in obj.get("ports") or ()
    )
    addresses = (address for one in obj.get("endpoints") or () for address in one.get("addresses") or ())
    name = name_of(obj)
    return [
        name,
        obj.get("addressType", ""),
        few_values(ports) or UNSET,
        few_values(addresses) or UNSET,
        age_text(obj, now),
    ]


def network_policy_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a network policy."""
    return [name_of(obj), selector_text(spec_of(obj).get("podSelector")) or NONE, age_text(obj, now)]


PRINTERS: Mapping[str, Printer] = {
    "Service": service_cells,
    "Endpoints": endpoints_cells,
    "EndpointSlice": endpoint_slice_cells,
    "NetworkPolicy": network_policy_cells,
}
