"""Reads one node's pods and what they need from each other: a few requests, however large the cluster is."""

import asyncio
import difflib
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import (
    CLAIMS,
    CONFIG_MAPS,
    CSI_NODES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    VOLUMES,
    Object,
)
from lastcall.errors import ApiNotPermitted, InvalidInput, NotFound
from lastcall.model.base import Facts
from lastcall.model.decoding import quote_value
from lastcall.model.node_pods import DnsService, NodePods, PriorityClass, pod_claims
from lastcall.model.pods import ObjectMetadata, Pod
from lastcall.names import SYSTEM_NAMESPACE

T = TypeVar("T")

CONFIG_KEY = "agent.yaml"
"""The key of the agent's ConfigMap that has its configuration."""

AGENT_LABELS = "app.kubernetes.io/name=lastcall,app.kubernetes.io/component=agent"
"""Selects the agents' ConfigMap and pods."""

_DNS_NAMESPACE, _DNS = "kube-system", "k8s-app=kube-dns"
_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
"""On a claim, by kube-controller-manager: who makes its volume; for CSI the driver's name."""


class _NamedObject(Facts, frozen=True):
    metadata: ObjectMetadata


class _ClassObject(Facts, frozen=True):
    metadata: ObjectMetadata
    value: int = 0


class _ClaimSpec(Facts, frozen=True):
    volume_name: str = ""


class _Claim(Facts, frozen=True):
    metadata: ObjectMetadata
    spec: _ClaimSpec = _ClaimSpec()


class _CsiVolume(Facts, frozen=True):
    driver: str = ""


class _VolumeSpec(Facts, frozen=True):
    csi: _CsiVolume | None = None


class _Volume(Facts, frozen=True):
    spec: _VolumeSpec = _VolumeSpec()


class _Driver(Facts, frozen=True):
    name: str


class _CsiNodeSpec(Facts, frozen=True):
    drivers: tuple[_Driver, ...] | None = None


class _CsiNode(Facts, frozen=True):
    spec: _CsiNodeSpec = _CsiNodeSpec()


class _ServiceSpec(Facts, frozen=True):
    selector: dict[str, str] | None = None


class _Service(Facts, frozen=True):
    metadata: ObjectMetadata
    spec: _ServiceSpec = _ServiceSpec()


class NodePodsReader:
    """Reads what ``lastcall plan --node`` needs to know of the node ``name``.

    What may not be read and is not necessary is a warning. The Node and its pods are necessary.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name
        self._warnings: list[str] = []

    async def read(self) -> NodePods:
        """All facts. InvalidInput if there is no such Node, with the names that are like it; ApiNotPermitted."""
        _, pods, classes, drivers, dns = await asyncio.gather(
            self._require_node(),
            self._client.list(PODS.with_shape(Pod), fields=f"spec.nodeName={self._name}"),
            self._optional(self._list_classes(), (), "which priority classes could mend an inversion"),
            self._optional(self._list_drivers(), (), "which pods are CSI drivers"),
            self._optional(self._list_dns(), (), "which pods are the cluster's DNS"),
        )
        claims = {claim for pod in pods.items if not pod.is_finished for claim in pod_claims(pod)} if drivers else set()
        found = await self._optional(self._claim_drivers(sorted(claims), drivers), {}, "which pods use CSI volumes")
        return NodePods(
            pods=tuple(pods.items),
            classes=classes,
            drivers=drivers,
            claim_drivers=found,
            dns=dns,
            warnings=tuple(self._warnings),
        )

    async def _optional(self, call: Awaitable[T], default: T, what: str) -> T:
        try:
            return await call
        except NotFound:
            return default
        except ApiNotPermitted as error:
            self._warnings.append(f"not known: {what}: {error}")
            return default

    async def _require_node(self) -> None:
        try:
            await self._client.get(NODES.with_shape(_NamedObject), self._name)
        except NotFound:
            raise InvalidInput("--node", [await self._unknown_node_text()]) from None
        except ApiNotPermitted as error:
            self._warnings.append(f"not known: whether there is a node {self._name}: {error}")

    async def _unknown_node_text(self) -> str:
        said = f"{quote_value(self._name)}: there is no such node"
        try:
            names = await list_node_names(self._client)
        except ApiNotPermitted:
            return said
        near = difflib.get_close_matches(self._name, names)
        return f"{said}; similar: {', '.join(near)}" if near else said

    async def _list_classes(self) -> tuple[PriorityClass, ...]:
        found = (await self._client.list(PRIORITY_CLASSES.with_shape(_ClassObject))).items
        return tuple(PriorityClass(name=one.metadata.name, value=one.value) for one in found)

    async def _list_drivers(self) -> tuple[str, ...]:
        found = await self._client.get(CSI_NODES.with_shape(_CsiNode), self._name)
        return tuple(one.name for one in found.spec.drivers or ())

    async def _list_dns(self) -> tuple[DnsService, ...]:
        found = await self._client.list(SERVICES.with_shape(_Service), namespace=_DNS_NAMESPACE, labels=_DNS)
        return tuple(
            DnsService(namespace=one.metadata.namespace, selector=one.spec.selector or {}) for one in found.items
        )

    async def _claim_drivers(self, claims: Sequence[str], drivers: Sequence[str]) -> dict[str, str]:
        found = await asyncio.gather(*(self._claim_driver(one, drivers) for one in claims))
        return {claim: driver for claim, driver in zip(claims, found, strict=True) if driver}

    async def _claim_driver(self, key: str, drivers: Sequence[str]) -> str:
        """The driver of a claim's volume, from the claim itself if it tells; "" if there is none."""
        namespace, _, name = key.partition("/")
        try:
            claim = await self._client.get(CLAIMS.with_shape(_Claim), name, namespace=namespace)
            provisioner = (claim.metadata.annotations or {}).get(_PROVISIONER, "")
            if provisioner in drivers or not claim.spec.volume_name:
                return provisioner
            volume = await self._client.get(VOLUMES.with_shape(_Volume), claim.spec.volume_name)
        except NotFound:
            return ""
        return volume.spec.csi.driver if volume.spec.csi else ""


async def list_node_names(client: Client) -> list[str]:
    """The names of all Nodes."""
    return [one.metadata.name for one in (await client.list(NODES.with_shape(_NamedObject))).items]


async def read_agent_config(client: Client) -> tuple[str, bytes]:
    """The agents' configuration that is installed in the cluster, and its source for messages.

    InvalidInput if there is none, or several.
    """
    found = (await client.list(CONFIG_MAPS, namespace=SYSTEM_NAMESPACE, labels=AGENT_LABELS)).items
    maps = [one for one in found if CONFIG_KEY in (one.get("data") or {})]
    if len(maps) != 1:
        names = ", ".join(_name(one) for one in maps)
        said = (
            f"several ConfigMaps have a configuration: {names}"
            if maps
            else f"no ConfigMap of an agent has {CONFIG_KEY}"
        )
        raise InvalidInput("--config", [f"missing, and in namespace {SYSTEM_NAMESPACE} {said}: give a FILE"])
    return f"ConfigMap {SYSTEM_NAMESPACE}/{_name(maps[0])}", str(maps[0]["data"][CONFIG_KEY]).encode()


def _name(obj: Object) -> Any:
    return obj["metadata"]["name"]
