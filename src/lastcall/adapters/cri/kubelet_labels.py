"""Labels and annotations of the kubelet on sandboxes and containers (pkg/kubelet/kuberuntime/labels.go).

Both directions: written and read. Reading is tolerant: a malformed value is skipped and reported in ``notes``, because
its pod must be terminated all the same.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from lastcall import names
from lastcall.model.decoding import quote_value
from lastcall.model.pods import Container, ContainerPort, Int32, Lifecycle, LifecycleHandler, Pod, Seconds

T = TypeVar("T")

_KUBELETS_OWN = (names.POD_NAME, names.POD_NAMESPACE, names.POD_UID)


def sandbox_labels(pod: Pod) -> dict[str, str]:
    """The pod's own labels and the kubelet's."""
    own = {names.POD_NAME: pod.metadata.name, names.POD_NAMESPACE: pod.metadata.namespace}
    return {**(pod.metadata.labels or {}), **own, names.POD_UID: pod.metadata.uid}


def sandbox_annotations(pod: Pod) -> dict[str, str]:
    """The pod's annotations. The kubelet has added the pod's source to them when it read the manifest."""
    return {names.CONFIG_SOURCE: "file", **(pod.metadata.annotations or {})}


def container_labels(pod: Pod, container: Container) -> dict[str, str]:
    """Labels that name the pod of the container."""
    labels = sandbox_labels(pod)
    return {**{key: labels[key] for key in _KUBELETS_OWN}, names.CONTAINER_NAME: container.name}


def container_annotations(pod: Pod, container: Container) -> dict[str, str]:
    """Annotations that the kubelet needs to stop a container whose spec it has lost."""
    marks = {
        names.CONTAINER_RESTARTS: "0",
        names.CONTAINER_GRACE: pod.spec.termination_grace_period_seconds,
        names.CONTAINER_DELETION_GRACE: pod.metadata.deletion_grace_period_seconds,
        names.CONTAINER_PRE_STOP: _encode_like_go(container.lifecycle.pre_stop) if container.lifecycle else None,
        names.CONTAINER_PORTS: _encode_like_go(container.ports),
    }
    return {key: str(value) for key, value in marks.items() if value is not None}


def pod_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The pod's own labels, taken from the labels of its sandbox."""
    return {key: value for key, value in labels.items() if key not in _KUBELETS_OWN}


def read_grace(annotations: Mapping[str, str], notes: list[str]) -> int | None:
    """Reads the pod's terminationGracePeriodSeconds from a container's annotations."""
    return _read_annotation(annotations, names.CONTAINER_GRACE, Seconds, notes)


def read_deletion_grace(annotations: Mapping[str, str], notes: list[str]) -> int | None:
    """Reads the grace period of a pod that was being deleted when the container was created."""
    return _read_annotation(annotations, names.CONTAINER_DELETION_GRACE, Seconds, notes)


def read_priority(annotations: Mapping[str, str], notes: list[str]) -> int | None:
    """Reads the pod's annotation that stands for its spec.priority."""
    return _read_annotation(annotations, names.PRIORITY_ANNOTATION, Int32, notes)


def read_container(name: str, annotations: Mapping[str, str], notes: list[str]) -> Container:
    """Reads a container with its preStop hook and its ports."""
    hook = _read_annotation(annotations, names.CONTAINER_PRE_STOP, LifecycleHandler, notes)
    ports = _read_annotation(annotations, names.CONTAINER_PORTS, tuple[ContainerPort, ...], notes)
    return Container(name=name, ports=ports, lifecycle=Lifecycle(pre_stop=hook) if hook else None)


def _read_annotation(annotations: Mapping[str, str], key: str, type_: type[T], notes: list[str]) -> T | None:
    if key not in annotations:
        return None
    text = annotations[key]
    try:
        return msgspec.json.decode(text.encode(), type=type_)
    except (msgspec.DecodeError, UnicodeError) as error:
        notes.append(f"annotation {key}: {quote_value(text)}: ignored: {error}")
        return None


def _encode_like_go(value: Any) -> str | None:
    """Encodes as Go does with ``omitempty``: empty fields are left out."""
    return msgspec.json.encode(_drop_empty(msgspec.to_builtins(value))).decode() if value is not None else None


def _drop_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_empty(inner) for key, inner in value.items() if inner not in (None, "")}
    return [_drop_empty(inner) for inner in value] if isinstance(value, (list, tuple)) else value
