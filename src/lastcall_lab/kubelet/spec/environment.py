"""The variables of containers (pure; ``kubelet_pods.go: makeEnvironmentVariables``, ``pkg/kubelet/envvars``)."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lastcall.adapters.kube.resources import Object
from lastcall_lab.kubelet.base.missing_dependency import MissingDependency
from lastcall_lab.kubelet.spec import field_refs
from lastcall_lab.kubelet.spec.field_refs import PodLocation
from lastcall_lab.traffic.listen_addresses import listen_address

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_ENVIRONMENTS = {"configMapRef": "configmap", "secretRef": "secret"}
_KEYS = {"configMapKeyRef": "configmap", "secretKeyRef": "secret"}


class ConfigSource(NamedTuple):
    """A ConfigMap or a Secret: ``kind`` is ``configmap`` or ``secret``."""

    kind: str
    name: str


Sources = Mapping[ConfigSource, Object | None]
"""Returns the requested object, None if it does not exist."""


def config_sources_of(container: Object) -> list[ConfigSource]:
    """The ConfigMaps and Secrets that a container's variables come from."""
    found = [
        ConfigSource(kind, one[key]["name"])
        for one in container.get("envFrom") or ()
        for key, kind in _ENVIRONMENTS.items()
        if one.get(key)
    ]
    found += [
        ConfigSource(kind, one["valueFrom"][key]["name"])
        for one in container.get("env") or ()
        for key, kind in _KEYS.items()
        if (one.get("valueFrom") or {}).get(key)
    ]
    return list(dict.fromkeys(found))


def container_variables(
    pod: Object, container: Object, *, place: PodLocation, sources: Sources, services: Mapping[str, str]
) -> dict[str, str]:
    """All variables in order. ``env`` overrides ``envFrom``, which overrides the Services' variables.

    MissingDependency names a source that does not exist.
    """
    own: dict[str, str] = {}
    for one in container.get("envFrom") or ():
        own |= _variables_from_source(one, sources)
    for one in container.get("env") or ():
        value = _variable_value(pod, container, one, place, sources, {**services, **own})
        if value is not None:
            own[one["name"]] = value
    return {**services, **own}


def expand_references(text: str, known: Mapping[str, str]) -> str:
    """Replaces ``$(NAME)`` by the variable's value and ``$$(NAME)`` by ``$(NAME)``; unknown names stay."""

    def one(found: "re.Match[str]") -> str:
        if found[0] == "$$":
            return "$"
        return known.get(found[1], found[0])

    return _REFERENCE.sub(one, text)


def _variables_from_source(reference: Mapping[str, Any], sources: Sources) -> dict[str, str]:
    kind, asked = next((kind, reference[key]) for key, kind in _ENVIRONMENTS.items() if reference.get(key))
    found = _find_source(ConfigSource(kind, asked["name"]), sources, optional=asked.get("optional", False))
    prefix = reference.get("prefix", "")
    return {f"{prefix}{key}": value.decode(errors="replace") for key, value in source_data(kind, found or {}).items()}


def _variable_value(
    pod: Object,
    container: Object,
    one: Mapping[str, Any],
    place: PodLocation,
    sources: Sources,
    known: Mapping[str, str],
) -> str | None:
    """None leaves the variable unset, because its optional source does not exist."""
    origin = one.get("valueFrom")
    if not origin:
        return expand_references(one.get("value", ""), known)
    if origin.get("fieldRef"):
        return field_refs.field_value(pod, origin["fieldRef"]["fieldPath"], place)
    if origin.get("resourceFieldRef"):
        return field_refs.resource_value(
            _container_by_name(pod, container, origin["resourceFieldRef"]), origin["resourceFieldRef"], place
        )
    for key, kind in _KEYS.items():
        if asked := origin.get(key):
            return _key_value(ConfigSource(kind, asked["name"]), asked, sources)
    raise MissingDependency(f'variable "{one["name"]}": this kind of source is not supported')


def _container_by_name(pod: Object, container: Object, reference: Mapping[str, Any]) -> Object:
    name = reference.get("containerName") or container["name"]
    return next((other for other in pod["spec"]["containers"] if other["name"] == name), container)


def _key_value(source: ConfigSource, asked: Mapping[str, Any], sources: Sources) -> str | None:
    optional = asked.get("optional", False)
    found = _find_source(source, sources, optional=optional)
    content = source_data(source.kind, found) if found else {}
    if asked["key"] in content:
        return content[asked["key"]].decode(errors="replace")
    if optional:
        return None
    kind = "ConfigMap" if source.kind == "configmap" else "Secret"
    namespace = (found or {"metadata": {}})["metadata"].get("namespace", "")
    raise MissingDependency(f"couldn't find key {asked['key']} in {kind} {namespace}/{source.name}")


def _find_source(source: ConfigSource, sources: Sources, *, optional: bool) -> Object | None:
    found = sources.get(source)
    if found is None and not optional:
        raise MissingDependency(f'{source.kind} "{source.name}" not found')
    return found


def source_data(kind: str, obj: Object) -> dict[str, bytes]:
    """The data of a ConfigMap or a Secret."""
    if kind == "secret":
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    text = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
    binary = {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}
    return {**text, **binary}


# -- services ----------------------------------------------------------------------------------------------------------

MASTER = ("default", "kubernetes")
"""Namespace and name of the Service whose variables every container gets."""


def has_service_links(pod: Object) -> bool:
    """Whether its containers get variables for the Services in its namespace."""
    return bool(pod["spec"].get("enableServiceLinks", True))


def service_variables(pod: Object, known: Iterable[Object], *, node: int, privileged: bool) -> dict[str, str]:
    """Variables for the Services in the pod's namespace and for ``kubernetes``: the addresses of this node's proxy."""
    namespace = pod["metadata"]["namespace"]
    links = has_service_links(pod)
    chosen: dict[str, Object] = {}
    for one in known:
        metadata = one["metadata"]
        if (metadata["namespace"], metadata["name"]) == MASTER or (links and metadata["namespace"] == namespace):
            chosen[metadata["name"]] = one
    found: dict[str, str] = {}
    for name in sorted(chosen):
        found.update(_variables_of_service(chosen[name], node, privileged=privileged))
    return found


def _variables_of_service(service: Object, node: int, *, privileged: bool) -> Iterator[tuple[str, str]]:
    """The variables of Docker links, which Kubernetes still provides."""
    ip, ports = service["spec"].get("clusterIP", ""), service["spec"].get("ports") or []
    if not ports or ip in ("", "None"):
        return
    prefix = service["metadata"]["name"].upper().replace("-", "_")
    doors = [(port, listen_address(ip, port["port"], node, privileged=privileged)) for port in ports]
    first, entry = doors[0]
    yield f"{prefix}_SERVICE_HOST", entry.address
    yield f"{prefix}_SERVICE_PORT", str(entry.port)
    for port, at in doors:
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}", str(at.port)
    yield f"{prefix}_PORT", f"{first.get('protocol', 'TCP').lower()}://{entry.address}:{entry.port}"
    for port, at in doors:
        protocol = port.get("protocol", "TCP")
        one = f"{prefix}_PORT_{port['port']}_{protocol}"
        yield one, f"{protocol.lower()}://{at.address}:{at.port}"
        yield f"{one}_PROTO", protocol.lower()
        yield f"{one}_PORT", str(at.port)
        yield f"{one}_ADDR", at.address
