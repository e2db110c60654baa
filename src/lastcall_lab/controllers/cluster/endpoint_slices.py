"""EndpointSlices: the pods behind a Service and their state (``k8s.io/kubernetes/pkg/controller/endpointslice``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall_lab.controllers.framework.actions import Action, CreateObject, Decision, DeleteObject, PatchObject
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import pods

RESOURCE = "endpointslices.discovery.k8s.io"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"
MOST = 100
"""Endpoints in one slice (``--max-endpoints-per-slice``)."""


class EndpointSliceController:
    """Reconciles a Service when it, one of its slices, or a pod that it selects has changed."""

    name = "endpointslice"
    resources: Sequence[str] = ("services", "pods", RESOURCE)

    def __init__(self) -> None:
        self._made: dict[ObjectRef, _EndpointCache] = {}

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The affected Services."""
        if resource == "services":
            return [ref_of("services", obj)]
        namespace, labels = obj["metadata"].get("namespace", ""), obj["metadata"].get("labels") or {}
        if resource == RESOURCE:
            mine = labels.get(MANAGED_BY) == MANAGER
            return [ObjectRef("services", namespace, labels[SERVICE_NAME])] if mine and SERVICE_NAME in labels else []
        return [
            ref_of("services", one)
            for one in view.selecting_labels("services", namespace, labels)
            if _selects_pod(one, labels)
        ]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Slices to create, update or delete. Caches the endpoint of each pod, since few pods change at a time."""
        service = view.get(*key)
        slices = view.with_labels(RESOURCE, key.namespace, {SERVICE_NAME: key.name, MANAGED_BY: MANAGER})
        if service is None or not (service["spec"].get("selector") or {}):
            self._made.pop(key, None)
            return Decision(tuple(DeleteObject(ref_of(RESOURCE, one)) for one in slices if service is None))
        selected = view.with_labels("pods", key.namespace, service["spec"]["selector"])
        before = self._made.get(key)
        known = before.of_pods if before and before.service is service else {}
        made = self._made[key] = _EndpointCache(
            service, {pod["metadata"]["uid"]: _pod_endpoint(service, pod, known) for pod in selected}
        )
        return Decision(tuple(_slice_changes(service, _desired_slices(made.of_pods.values()), slices)))


class _PodEndpoint(NamedTuple):
    """One pod of a Service: its ports (also as text, for comparison) and its endpoint; None if it has none."""

    pod: Object
    ports: Sequence[Object] = ()
    text: str = ""
    endpoint: Object | None = None


class _EndpointCache(NamedTuple):
    """``of_pods`` by uid, in order, for this version of a Service."""

    service: Object
    of_pods: Mapping[str, _PodEndpoint]


def _pod_endpoint(service: Object, pod: Object, known: Mapping[str, _PodEndpoint]) -> _PodEndpoint:
    before = known.get(pod["metadata"]["uid"])
    if before and before.pod is pod:
        return before
    if pods.pod_phase(pod) in pods.FINISHED or not (pod.get("status") or {}).get("podIP"):
        return _PodEndpoint(pod)
    ports = list(_endpoint_ports(service, pod))
    return _PodEndpoint(pod, ports, repr(ports), _new_endpoint(service, pod))


def _selects_pod(service: Object, labels: Mapping[str, str]) -> bool:
    selector = service["spec"].get("selector") or {}
    return bool(selector) and selector.items() <= labels.items()


def _desired_slices(made: Iterable[_PodEndpoint]) -> list[tuple[Object, list[Object]]]:
    """The ports and endpoints of each slice. Pods with the same port numbers share a slice."""
    groups: dict[str, tuple[Sequence[Object], list[Object]]] = {}
    for one in made:
        if one.endpoint is not None:
            groups.setdefault(one.text, (one.ports, []))[1].append(one.endpoint)
    if not groups:
        return [({"ports": []}, [])]
    return [
        ({"ports": ports}, found[start : start + MOST])
        for ports, found in groups.values()
        for start in range(0, len(found), MOST)
    ]


def _endpoint_ports(service: Object, pod: Object) -> Iterator[Object]:
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort", port["port"])
        number = target if isinstance(target, int) else _named_port(pod, target, port.get("protocol", "TCP"))
        if number:
            yield {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}


def _named_port(pod: Object, name: str, protocol: str) -> int | None:
    containers = [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]
    ports = [port for container in containers for port in container.get("ports") or ()]
    found = [one for one in ports if one.get("name") == name and one.get("protocol", "TCP") == protocol]
    return int(found[0]["containerPort"]) if found else None


def _new_endpoint(service: Object, pod: Object) -> Object:
    """KEP-1672: a terminating pod is never ready; it is serving while its readiness is True."""
    metadata, terminating, serving = pod["metadata"], bool(pod["metadata"].get("deletionTimestamp")), pods.is_ready(pod)
    all_ready = service["spec"].get("publishNotReadyAddresses", False)
    endpoint: dict[str, Any] = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": all_ready or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": {
            "kind": "Pod",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if node := pod["spec"].get("nodeName"):
        endpoint["nodeName"] = node
    if pod["spec"].get("subdomain") == service["metadata"]["name"] and pod["spec"].get("hostname"):
        endpoint["hostname"] = pod["spec"]["hostname"]
    return endpoint


def _slice_changes(
    service: Object, wanted: Sequence[tuple[Object, list[Object]]], slices: Sequence[Object]
) -> Iterator[Action]:
    """Reuses existing slices in order, so that few of them change when a pod comes or goes."""
    for index, (ports, endpoints) in enumerate(wanted):
        content = {"endpoints": endpoints, **ports}
        if index >= len(slices):
            yield CreateObject(RESOURCE, service["metadata"]["namespace"], _new_slice(service, content))
        elif any((slices[index].get(name) or []) != said for name, said in content.items()):
            yield PatchObject(ref_of(RESOURCE, slices[index]), content, uid=slices[index]["metadata"]["uid"])
    for one in slices[len(wanted) :]:
        yield DeleteObject(ref_of(RESOURCE, one), uid=one["metadata"]["uid"])


def _new_slice(service: Object, content: Object) -> Object:
    metadata = service["metadata"]
    labels = {**(metadata.get("labels") or {}), SERVICE_NAME: metadata["name"], MANAGED_BY: MANAGER}
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "labels": labels,
            "ownerReferences": [pods.owner_reference(service, "v1", "Service")],
        },
        "addressType": "IPv4",
        **content,
    }
