"""The resources that requests address, and how their objects are decoded."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from lastcall import names

_PLAIN = re.compile(r"[\w.:~-]+", re.ASCII).fullmatch
"""Names of resources whose content must not be quoted."""

Object = dict[str, Any]
T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True)
class ApiResource(Generic[T]):
    """One resource in one version; its objects are read as ``shape``: a dict of JSON, or a msgspec struct."""

    group: str
    version: str
    plural: str
    shape: type[T]

    def with_shape(self, type_: type[S]) -> "ApiResource[S]":
        """The same resource with another type for its objects, for instance with fewer fields."""
        return replace(self, shape=type_)  # type: ignore[arg-type, return-value]  # replace cannot change T

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of a collection, object or subresource; without a namespace, of a cluster-wide one."""
        collection = _collection_path(self.group, self.version, namespace, self.plural)
        below = [name, *subresource.split("/")] if subresource else [name]
        return "/".join([collection, *(_quote_part(part) for part in below if part)])


@lru_cache(maxsize=1024)  # the same few for nearly all requests
def _collection_path(group: str, version: str, namespace: str, plural: str) -> str:
    parts = ["apis", group, version] if group else ["api", version]
    if namespace:
        parts += ["namespaces", namespace]
    return "/" + "/".join(_quote_part(part) for part in [*parts, plural] if part)


def _quote_part(part: str) -> str:
    return part if _PLAIN(part) else quote(part, safe=":")


class ObjectRevision(msgspec.Struct, rename="camel", gc=False):
    """Name and revision from an object's metadata."""

    name: str = ""
    resource_version: str = ""


class WrittenObject(msgspec.Struct, gc=False):
    """The fields of a write's answer that its caller needs."""

    metadata: ObjectRevision


def dict_resource(group: str, version: str, plural: str) -> ApiResource[Object]:
    """A resource whose objects are dicts."""
    return ApiResource(group, version, plural, dict)


PODS = dict_resource("", "v1", "pods")
NODES = dict_resource("", "v1", "nodes")
NAMESPACES = dict_resource("", "v1", "namespaces")
EVENTS = dict_resource("", "v1", "events")
SERVICES = dict_resource("", "v1", "services")
CONFIG_MAPS = dict_resource("", "v1", "configmaps")
SECRETS = dict_resource("", "v1", "secrets")
VOLUMES = dict_resource("", "v1", "persistentvolumes")
CLAIMS = dict_resource("", "v1", "persistentvolumeclaims")
ENDPOINT_SLICES = dict_resource("discovery.k8s.io", "v1", "endpointslices")
LEASES = dict_resource("coordination.k8s.io", "v1", "leases")
ATTACHMENTS = dict_resource("storage.k8s.io", "v1", "volumeattachments")
STORAGE_CLASSES = dict_resource("storage.k8s.io", "v1", "storageclasses")
CSI_NODES = dict_resource("storage.k8s.io", "v1", "csinodes")
DEPLOYMENTS = dict_resource("apps", "v1", "deployments")
REPLICA_SETS = dict_resource("apps", "v1", "replicasets")
STATEFUL_SETS = dict_resource("apps", "v1", "statefulsets")
DAEMON_SETS = dict_resource("apps", "v1", "daemonsets")
JOBS = dict_resource("batch", "v1", "jobs")
CRON_JOBS = dict_resource("batch", "v1", "cronjobs")
REPLICATION_CONTROLLERS = dict_resource("", "v1", "replicationcontrollers")
BUDGETS = dict_resource("policy", "v1", "poddisruptionbudgets")
PRIORITY_CLASSES = dict_resource("scheduling.k8s.io", "v1", "priorityclasses")
VALIDATING_WEBHOOKS = dict_resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
MUTATING_WEBHOOKS = dict_resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")
DEFINITIONS = dict_resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
GUARD_POLICIES = dict_resource(names.GROUP, names.API_VERSION.partition("/")[2], "guardpolicies")
NODE_SHUTDOWNS = dict_resource(names.GROUP, names.API_VERSION.partition("/")[2], "nodeshutdowns")
