"""The discovery documents in both forms, generated from the scheme (pure)."""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence

from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.values.request import Object

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The media type of aggregated discovery."""

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = ("alpha", "beta", "")

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_PART = ("get", "patch", "update")
_STREAM = ("create", "get")
_SUBRESOURCES = {
    "binding": ("", "", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "scale": ("autoscaling", "v1", "Scale", _PART),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
    "attach": ("", "", "PodAttachOptions", _STREAM),
    "exec": ("", "", "PodExecOptions", _STREAM),
    "portforward": ("", "", "PodPortForwardOptions", _STREAM),
    "log": ("", "", "", ("get",)),
    "finalize": ("", "", "", ("update",)),
}
"""Group, version, kind and verbs of subresources with an own kind; the others are parts of their objects."""

_STORED_VERSIONS = {
    "customresourcedefinitions.apiextensions.k8s.io": "v1beta1",
    "mutatingadmissionpolicies.admissionregistration.k8s.io": "v1beta1",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": "v1beta1",
}
"""Resources whose storage version differs from the served one."""

_PRIORITY = (
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
)
"""The order of the groups, which decides ambiguous short names; other groups follow by name."""


def named_groups(scheme: ResourceScheme) -> Sequence[tuple[str, Sequence[str]]]:
    """The named groups with their versions, the preferred one first."""
    versions: dict[str, list[str]] = {}
    for one in scheme:
        if one.group and one.version not in versions.setdefault(one.group, []):
            versions[one.group].append(one.version)
    order = {name: place for place, name in enumerate(_PRIORITY)}
    names = sorted(versions, key=lambda name: (order.get(name, len(order)), name))
    return [(name, sorted(versions[name], key=_age, reverse=True)) for name in names]


def aggregated_discovery(scheme: ResourceScheme, *, core: bool) -> Object:
    """``/api`` (``core``) or ``/apis`` as one APIGroupDiscoveryList."""
    wanted = [("", ["v1"])] if core else named_groups(scheme)
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {"version": version, "resources": _aggregated_resources(scheme, name, version), "freshness": "Current"}
                for version in versions
            ],
        }
        for name, versions in wanted
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def core_versions(address: str) -> Object:
    """``/api``; ``address`` is the host and port of the server."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(scheme: ResourceScheme) -> Object:
    """``/apis``."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in named_groups(scheme)],
    }


def api_group(scheme: ResourceScheme, name: str) -> Object | None:
    """``/apis/GROUP``; None if it does not exist."""
    versions = dict(named_groups(scheme)).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def resource_list(scheme: ResourceScheme, name: str, version: str) -> Object | None:
    """``/api/v1`` or ``/apis/GROUP/VERSION``; None if it does not exist."""
    found = _resources(scheme, name, version)
    if not found:
        return None
    head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if name else {})}
    resources = [entry for one in found for entry in _legacy(one, scheme)]
    return {**head, "groupVersion": f"{name}/{version}" if name else version, "resources": resources}


def _group(name: str, versions: Sequence[str]) -> Object:
    said = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": said, "preferredVersion": said[0]}


def _age(version: str) -> tuple[int, int, int]:
    """Stable and later versions come first (``version.CompareKubeAwareVersionStrings``)."""
    found = _VERSION.fullmatch(version)
    if not found:
        return (-1, 0, 0)
    major, stage, minor = found.groups()
    return (_STAGES.index(stage or ""), int(major), int(minor or 0))


def _resources(scheme: ResourceScheme, name: str, version: str) -> Sequence[ServedResource]:
    return sorted((one for one in scheme if (one.group, one.version) == (name, version)), key=lambda one: one.plural)


def _subresources(one: ServedResource) -> Iterable[tuple[str, str, str, str, Sequence[str]]]:
    """Name, group, version, kind and verbs of each."""
    names = one.subresources if one.custom else sorted(one.subresources)
    for name in names:
        group, version, kind, verbs = _SUBRESOURCES.get(name, ("", "", "", _PART))
        yield name, group, version, kind or one.kind, verbs


def resource_verbs(one: ServedResource) -> Sequence[str]:
    """The verbs of a resource, in the order of the documents."""
    return one.verbs or (_CUSTOM_VERBS if one.custom else _VERBS)


def _names(one: ServedResource) -> Object:
    names = {"shortNames": list(one.short_names), "categories": list(one.categories)}
    return {key: value for key, value in names.items() if value}


def _legacy(one: ServedResource, scheme: ResourceScheme) -> Iterable[Object]:
    place = {"namespaced": one.namespaced}
    entry = {
        "name": one.plural,
        "singularName": one.singular,
        **place,
        "kind": one.kind,
        "verbs": list(resource_verbs(one)),
    }
    stored = scheme.stored_in(one.storage)
    hashed = {"storageVersionHash": _hash(stored or one)} if "watch" in resource_verbs(one) else {}
    yield {**entry, **_names(one), **hashed}
    for name, group, version, kind, can in _subresources(one):
        other = {"group": group, "version": version} if group else {}
        yield {"name": f"{one.plural}/{name}", "singularName": "", **place, **other, "kind": kind, "verbs": list(can)}


def _aggregated_resources(scheme: ResourceScheme, name: str, version: str) -> Sequence[Object]:
    return [_aggregated_one(one) for one in _resources(scheme, name, version)]


def _aggregated_one(one: ServedResource) -> Object:
    own = {"group": one.group, "version": one.version} if one.custom else {"group": "", "version": ""}
    entry: Object = {
        "resource": one.plural,
        "responseKind": {**own, "kind": one.kind},
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.singular,
        "verbs": list(resource_verbs(one)),
        **_names(one),
    }
    parts = [
        {
            "subresource": name,
            "responseKind": {**({"group": group, "version": version} if group else own), "kind": kind},
            "verbs": list(can),
        }
        for name, group, version, kind, can in _subresources(one)
    ]
    return {**entry, "subresources": parts} if parts else entry


def _hash(one: ServedResource) -> str:
    """The hash by which clients detect changes of the storage version (``discovery.StorageVersionHash``)."""
    version = _STORED_VERSIONS.get(one.qualified_name, one.version)
    digest = hashlib.sha256(f"{one.group}/{version}/{one.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()
