"""Reads what decides about a drain from the API server."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from lastcall.adapters.kube.client import PAGE, Client
from lastcall.adapters.kube.resources import (
    BUDGETS,
    CLAIMS,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    GUARD_POLICIES,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    VALIDATING_WEBHOOKS,
    VOLUMES,
    ApiResource,
    dict_resource,
)
from lastcall.errors import ApiNotPermitted, NotFound
from lastcall.model.drain_objects import MEDIK8S_LEASES
from lastcall.model.drain_state_file import DNS_LABEL, DRAIN_KINDS, DrainState, join_facts
from lastcall.names import GUARD_POLICY

_READ: Final[Mapping[str, ApiResource[Any]]] = {
    "Node": NODES,
    "Pod": PODS,
    "DaemonSet": DAEMON_SETS,
    "Service": SERVICES,
    "Namespace": NAMESPACES,
    "PodDisruptionBudget": BUDGETS,
    GUARD_POLICY: GUARD_POLICIES,
    "Deployment": DEPLOYMENTS,
    "ReplicaSet": REPLICA_SETS,
    "StatefulSet": STATEFUL_SETS,
    "ReplicationController": REPLICATION_CONTROLLERS,
    "HorizontalPodAutoscaler": dict_resource("autoscaling", "v2", "horizontalpodautoscalers"),
    "PersistentVolume": VOLUMES,
    "PersistentVolumeClaim": CLAIMS,
    "CSINode": CSI_NODES,
    "ValidatingWebhookConfiguration": VALIDATING_WEBHOOKS,
    "EndpointSlice": ENDPOINT_SLICES,
    "Lease": LEASES,
    "NodeMaintenance": dict_resource("nodemaintenance.medik8s.io", "v1beta1", "nodemaintenances"),
    "DeviceTaintRule": dict_resource("resource.k8s.io", "v1", "devicetaintrules"),
}
"""Machines of Cluster API are read from a file alone: they are in another cluster as a rule."""

_NAMESPACES: Final[Mapping[str, str]] = {"Lease": MEDIK8S_LEASES}
_LABELS: Final[Mapping[str, str]] = {"Service": "=".join(DNS_LABEL)}
"""Which objects of a kind are read, if not all."""

_NECESSARY = ("Node", "Pod")
_FOREIGN = ("NodeMaintenance", "DeviceTaintRule")
"""Kinds of which nothing is said if they may not be read either: a right to read them is seldom given."""
_OPTIONAL = (*_FOREIGN, GUARD_POLICY, "ReplicationController")
"""Kinds without which a cluster is complete: nothing is said if they are not served, since no object of them exists then."""


class DrainFactsReader:
    """Reads the cluster once. Nodes and Pods are necessary; warnings say what else may not be read or is not served.

    Lists are read ``page`` objects at a time; 0: at once.
    """

    def __init__(self, client: Client, *, page: int = PAGE) -> None:
        self._client, self._page = client, page
        self._missing: dict[str, str] = {}

    async def read(self) -> DrainState:
        """All facts. ApiNotPermitted if Nodes or Pods may not be read."""
        lists = await asyncio.gather(*(self._list(kind) for kind in _READ))
        objects = dict(zip(_READ, lists, strict=True))
        facts = join_facts(objects)
        facts = replace(
            facts,
            daemon_sets=None if "DaemonSet" in self._missing else tuple(objects["DaemonSet"]),
            slices=None if "EndpointSlice" in self._missing else tuple(objects["EndpointSlice"]),
        )
        return DrainState(facts, [text for kind in _READ if (text := self._missing.get(kind))])

    async def _list(self, kind: str) -> Sequence[Any]:
        resource = _READ[kind].with_shape(DRAIN_KINDS[kind].type)
        try:
            found = await self._client.list(
                resource, namespace=_NAMESPACES.get(kind, ""), labels=_LABELS.get(kind, ""), limit=self._page
            )
            return found.items
        except NotFound:
            self._missing[kind] = (
                "" if kind in _OPTIONAL else f"{resource.plural} are not counted: the cluster does not serve them"
            )
        except ApiNotPermitted as error:
            if kind in _NECESSARY:
                raise
            silent = kind in _FOREIGN or await self._has_no_namespace(_NAMESPACES.get(kind, ""))
            self._missing[kind] = "" if silent else f"{resource.plural} are not counted: {error}"
        return ()

    async def _has_no_namespace(self, name: str) -> bool:
        """Whether the namespace does not exist, so that nothing in it is missed; False if that may not be asked."""
        if not name:
            return False
        try:
            await self._client.get(NAMESPACES, name)
        except NotFound:
            return True
        except ApiNotPermitted:
            pass
        return False
