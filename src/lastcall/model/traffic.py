"""Which endpoints of a Service receive traffic (pure): kube-proxy's rule, KEP-1669.

Terminating pods get new connections only while no endpoint is ready, and only those that still serve.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from lastcall.model.base import Facts
from lastcall.model.own_pods import is_static
from lastcall.model.pods import Pod


class TrafficSettings(Facts, frozen=True):
    """``traffic`` of an AgentConfiguration: how long a pod's SIGTERM waits for its Services to leave it."""

    limit_seconds: Annotated[float, Meta(ge=0, le=60)] = 2.0
    """The longest wait; a quarter of the pod's phase is another limit. 0: no pod waits."""
    settle_seconds: Annotated[float, Meta(ge=0, le=60)] | None = None
    """Seconds after the pod is out of its EndpointSlices in which the proxies of all nodes follow. None: learnt from
    this node's kube-proxy."""


class PodReference(Facts, frozen=True):
    """The pod behind an endpoint; ``name`` and ``uid`` are empty if the slice does not give them."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class EndpointConditions(Facts, frozen=True):
    """discovery/v1.EndpointConditions; a missing ``ready`` or ``serving`` counts as true."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class SliceEndpoint(Facts, frozen=True):
    """discovery/v1.Endpoint."""

    target_ref: PodReference | None = None
    conditions: EndpointConditions = EndpointConditions()


class SliceMetadata(Facts, frozen=True):
    """The name and labels of an EndpointSlice."""

    name: str = ""
    labels: Mapping[str, str] | None = None


class EndpointSlice(Facts, frozen=True):
    """discovery/v1.EndpointSlice, as far as it says which pods are ready."""

    metadata: SliceMetadata = SliceMetadata()
    endpoints: tuple[SliceEndpoint, ...] | None = None


class TrafficTargets(NamedTuple):
    """The pods of a namespace that its EndpointSlices name as ready and not terminating, by uid and by name."""

    uids: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def includes(self, pod: Pod) -> bool:
        """Whether the pod is one of them.

        A static pod goes by its name, which no pod of another node has: the slices have the uid of its mirror pod.
        """
        return pod.metadata.name in self.names if is_static(pod) else pod.metadata.uid in self.uids


def find_targets(slices: Iterable[EndpointSlice]) -> TrafficTargets:
    """The pods that slices of one namespace name as ready and not terminating.

    A Service with publishNotReadyAddresses has ready endpoints until their pods are gone; ``terminating`` is true then.
    """
    found = [
        endpoint.target_ref
        for one in slices
        for endpoint in one.endpoints or ()
        if endpoint.target_ref and endpoint.conditions.ready is not False and not endpoint.conditions.terminating
    ]
    return TrafficTargets(frozenset(one.uid for one in found), frozenset(one.name for one in found))


def may_be_selected(pod: Pod) -> bool:
    """Whether a Service may select the pod: a selector names at least one label, and one without names no pods."""
    return bool(pod.metadata.labels)


class ServiceEndpoint(NamedTuple):
    """One address and port of a pod."""

    address: str
    port: int
    pod: str = ""
    """``namespace/name``; empty if the slice does not give it."""
    uid: str = ""
    """The pod's UID; empty if the slice does not give it."""


class _Conditions(NamedTuple):
    ready: bool
    serving: bool
    terminating: bool


def select_endpoints(slices: Iterable[Mapping[str, Any]], port: str) -> Sequence[ServiceEndpoint]:
    """The endpoints for new connections to the named port, sorted; ``slices`` are the Service's EndpointSlices."""
    found = [split_endpoints(one, port) for one in slices]
    ready = {endpoint for one, _ in found for endpoint in one}
    return sorted(ready or {endpoint for _, one in found for endpoint in one})


def split_endpoints(one: Mapping[str, Any], port: str) -> tuple[Sequence[ServiceEndpoint], Sequence[ServiceEndpoint]]:
    """The ready endpoints of one slice, and those that are terminating but still serve."""
    ready, leaving = [], []
    for conditions, endpoint in _endpoints_of(one, port):
        if conditions.ready:
            ready.append(endpoint)
        elif conditions.serving and conditions.terminating:
            leaving.append(endpoint)
    return ready, leaving


def _endpoints_of(one: Mapping[str, Any], port: str) -> Iterable[tuple[_Conditions, ServiceEndpoint]]:
    number = next((said["port"] for said in one.get("ports") or () if said.get("name", "") == port), None)
    if number is None:
        return
    for endpoint in one.get("endpoints") or ():
        target = endpoint.get("targetRef") or {}
        pod = f"{target.get('namespace', '')}/{target['name']}" if target.get("kind") == "Pod" else ""
        for address in endpoint["addresses"]:
            yield (
                _endpoint_conditions(endpoint),
                ServiceEndpoint(address, number, pod, target.get("uid", "") if pod else ""),
            )


def _endpoint_conditions(endpoint: Mapping[str, Any]) -> _Conditions:
    """The conditions with their defaults: ready, serving as ready, not terminating (``discovery/v1``)."""
    said = endpoint.get("conditions") or {}
    ready = said.get("ready")
    ready = True if ready is None else ready
    serving = said.get("serving")
    return _Conditions(ready, ready if serving is None else serving, bool(said.get("terminating")))
