"""Joins the pods of a node from the CRI's lists and from the fuller specs of manifests. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from lastcall import names
from lastcall.adapters.cri import kubelet_labels
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.model.pods import Container, ObjectMetadata, Pod, PodSpec, PodStatus
from lastcall.ports.node import RunningPod

Specs = Mapping[tuple[str, str], Pod]
"""Pods by namespace and name, as their manifests define them."""


def join_pods(
    sandboxes: Iterable[cri.PodSandbox], containers: Iterable[cri.Container], *, specs: Specs, node_name: str
) -> tuple[list[RunningPod], list[str]]:
    """Returns the pods with running containers, one for each sandbox, by namespace and name, and notes.

    ``containers`` are the running ones. A container whose sandbox is not among ``sandboxes`` still yields a pod: its
    own labels name it. ``notes`` report the annotations that were skipped as malformed, and the static pods that have
    no priority because no manifest matches them.
    """
    known = {sandbox.id: sandbox for sandbox in sandboxes}
    inside: dict[str, list[cri.Container]] = {}
    for container in containers:
        inside.setdefault(container.pod_sandbox_id, []).append(container)
    notes: list[str] = []
    live = []
    for sandbox_id, members in inside.items():
        members.sort(key=lambda container: (container.created_at, container.metadata.name))
        pod = _build_pod(known.get(sandbox_id), members, notes)
        spec = _find_manifest_spec(pod, specs, node_name)
        if specs and spec is None and pod.spec.priority is None and _config_source(pod) == "file":
            notes.append(f"pod {pod.key}: none of the manifests is this static pod's: it counts as one of priority 0")
        ids = {container.metadata.name: container.id for container in members}
        live.append(RunningPod(pod=complete_from_manifest(pod, spec), containers=ids, sandbox=sandbox_id))
    return sorted(live, key=lambda one: (one.pod.metadata.namespace, one.pod.metadata.name)), notes


def complete_from_manifest(pod: Pod, spec: PodSpec | None) -> Pod:
    """Completes ``pod`` from its manifest, if there is one: priority, order of sidecars, a missing grace period.

    The runtime's values (names, uid, labels, hooks of the running containers) stay: the manifest may have been edited
    since.
    """
    if spec is None:
        return pod
    running = {container.name: container for container in pod.spec.containers}
    sidecars = tuple(_merge_sidecar(container, running) for container in spec.init_containers or ())
    beside = {container.name for container in sidecars}
    grace = pod.spec.termination_grace_period_seconds
    return replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(container for name, container in running.items() if name not in beside),
            init_containers=sidecars or None,
            priority=pod.spec.priority if spec.priority is None and not spec.priority_class_name else spec.priority,
            termination_grace_period_seconds=spec.termination_grace_period_seconds if grace is None else grace,
        ),
    )


def _find_manifest_spec(pod: Pod, specs: Specs, node_name: str) -> PodSpec | None:
    """Finds the manifest of a static pod, whose name is the manifest's plus the node's name in lower case.

    The kubelet's name for the node may differ from ours (--hostname-override, a domain). So a pod whose name does not
    end in our node name gets the manifest with the longest name that its own name starts with.
    """
    if _config_source(pod) == "api":
        return None
    namespace, name = pod.metadata.namespace, pod.metadata.name
    appended = f"-{node_name.lower()}"
    candidates = [name, name.removesuffix(appended) if node_name else name]
    if _config_source(pod) == "file" and not name.endswith(appended):
        begun = [known for of, known in specs if of == namespace and name.startswith(f"{known}-")]
        candidates += sorted(begun, key=len, reverse=True)
    return next((specs[namespace, candidate].spec for candidate in candidates if (namespace, candidate) in specs), None)


def _config_source(pod: Pod) -> str:
    """The kubelet's source of the pod: api, file or http; "" if unknown."""
    return (pod.metadata.annotations or {}).get(names.CONFIG_SOURCE, "")


def _merge_sidecar(container: Container, running: Mapping[str, Container]) -> Container:
    now = running.get(container.name)
    return replace(now, restart_policy=container.restart_policy) if now else container


def _build_pod(sandbox: cri.PodSandbox | None, members: Sequence[cri.Container], notes: list[str]) -> Pod:
    problems: list[str] = []
    annotations = dict(sandbox.annotations) if sandbox else {}
    metadata = _pod_metadata(sandbox, members[0])
    seconds = [kubelet_labels.read_grace(member.annotations, problems) for member in members]
    deletion = [kubelet_labels.read_deletion_grace(member.annotations, problems) for member in members]
    spec = PodSpec(
        containers=tuple(
            kubelet_labels.read_container(member.metadata.name, member.annotations, problems) for member in members
        ),
        priority=kubelet_labels.read_priority(annotations, problems),
        termination_grace_period_seconds=_first_known(seconds),
    )
    notes += (f"pod {metadata.namespace}/{metadata.name}: {note}" for note in problems)
    metadata = replace(metadata, annotations=annotations, deletion_grace_period_seconds=_first_known(deletion))
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Running"))


def _pod_metadata(sandbox: cri.PodSandbox | None, member: cri.Container) -> ObjectMetadata:
    if sandbox is None:
        label = member.labels
        return ObjectMetadata(
            name=label.get(names.POD_NAME, member.metadata.name),
            namespace=label.get(names.POD_NAMESPACE, ""),
            uid=label.get(names.POD_UID, member.pod_sandbox_id),
        )
    own = sandbox.metadata
    return ObjectMetadata(
        name=own.name, namespace=own.namespace, uid=own.uid, labels=kubelet_labels.pod_labels(sandbox.labels)
    )


def _first_known(values: Iterable[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)
