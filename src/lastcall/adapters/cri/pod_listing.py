"""Joins the pods of a node from the CRI's lists, and completes them from the sources that know more. Pure."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lastcall import names
from lastcall.adapters.cri import kubelet_labels
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.spec_sources import SpecSources, config_source
from lastcall.model.pods import ObjectMetadata, Pod, PodSpec, PodStatus
from lastcall.ports.node import PrioritySource, RunningPod


def join_pods(
    sandboxes: Iterable[cri.PodSandbox], containers: Iterable[cri.Container], *, sources: SpecSources, node_name: str
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
        completed, source = sources.complete_pod(pod, node_name)
        if sources.manifests and source is PrioritySource.DEFAULT and config_source(pod) == "file":
            notes.append(f"pod {pod.key}: none of the manifests is this static pod's: it counts as one of priority 0")
        ids = {container.metadata.name: container.id for container in members}
        live.append(RunningPod(pod=completed, containers=ids, sandbox=sandbox_id, priority_source=source))
    return sorted(live, key=lambda one: (one.pod.metadata.namespace, one.pod.metadata.name)), notes


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
