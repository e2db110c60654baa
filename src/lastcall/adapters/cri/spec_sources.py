"""Completes the pods of the runtime's lists from fuller sources: the API, its checkpoint, static manifests. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from lastcall import names
from lastcall.model.pods import Container, Pod, PodSpec
from lastcall.ports.node import PrioritySource

Specs = Mapping[tuple[str, str], Pod]
"""Pods by namespace and name, as their manifests define them."""

PodsByUid = Mapping[str, Pod]
"""Pods of the API by the uid that the runtime knows them by (``model.own_pods.runtime_uid``)."""


@dataclass(frozen=True, kw_only=True)
class SpecSources:
    """What is known about the node's pods beside the runtime's own data, in the order in which it counts.

    ``watched`` are the pods of the API as last seen, ``checkpoint`` those that an earlier run of the agent has kept.
    """

    watched: PodsByUid = field(default_factory=dict)
    checkpoint: PodsByUid = field(default_factory=dict)
    manifests: Specs = field(default_factory=dict)

    def complete_pod(self, pod: Pod, node_name: str) -> tuple[Pod, PrioritySource]:
        """The runtime's ``pod``, completed from the first source that knows it, and the source of its priority."""
        for source, pods in (
            (PrioritySource.WATCH, self.watched),
            (PrioritySource.CHECKPOINT, self.checkpoint),
        ):
            if known := pods.get(pod.metadata.uid):
                return complete_from_api(pod, known), source
        spec = find_manifest_spec(pod, self.manifests, node_name)
        if spec and (spec.priority is not None or spec.priority_class_name or pod.spec.priority is None):
            return complete_from_manifest(pod, spec), PrioritySource.MANIFEST
        source = PrioritySource.DEFAULT if pod.spec.priority is None else PrioritySource.RUNTIME
        return complete_from_manifest(pod, spec), source


def complete_from_api(pod: Pod, known: Pod) -> Pod:
    """Completes ``pod`` from the API's object of the same uid, whose containers and hooks cannot be edited.

    Names and uid stay the runtime's: a mirror pod has another uid than its static pod. Containers that do not run are
    left out, except sidecars; a running container that the spec does not list, such as an ephemeral one, stays as the
    runtime describes it. The status stays Running as long as containers run, whatever the API says.
    """
    listed = {container.name for container in (*known.spec.containers, *(known.spec.init_containers or ()))}
    running = {container.name for container in pod.spec.containers}
    main = tuple(container for container in known.spec.containers if container.name in running)
    others = tuple(container for container in pod.spec.containers if container.name not in listed)
    init = tuple(c for c in known.spec.init_containers or () if c.restart_policy == "Always" or c.name in running)
    own, api, grace = pod.metadata, known.metadata, known.spec.termination_grace_period_seconds
    deletion = api.deletion_grace_period_seconds
    return Pod(
        metadata=replace(
            api,
            name=own.name,
            namespace=own.namespace,
            uid=own.uid,
            annotations=own.annotations,
            deletion_grace_period_seconds=own.deletion_grace_period_seconds if deletion is None else deletion,
        ),
        spec=replace(
            known.spec,
            containers=main + others,
            init_containers=init or None,
            termination_grace_period_seconds=pod.spec.termination_grace_period_seconds if grace is None else grace,
        ),
        status=pod.status,
    )


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


def find_manifest_spec(pod: Pod, specs: Specs, node_name: str) -> PodSpec | None:
    """Finds the manifest of a static pod, whose name is the manifest's plus the node's name in lower case.

    The kubelet's name for the node may differ from ours (--hostname-override, a domain). So a pod whose name does not
    end in our node name gets the manifest with the longest name that its own name starts with.
    """
    if config_source(pod) == "api":
        return None
    namespace, name = pod.metadata.namespace, pod.metadata.name
    appended = f"-{node_name.lower()}"
    candidates = [name, name.removesuffix(appended) if node_name else name]
    if config_source(pod) == "file" and not name.endswith(appended):
        begun = [known for of, known in specs if of == namespace and name.startswith(f"{known}-")]
        candidates += sorted(begun, key=len, reverse=True)
    return next((specs[namespace, candidate].spec for candidate in candidates if (namespace, candidate) in specs), None)


def config_source(pod: Pod) -> str:
    """The kubelet's source of the pod: api, file or http; "" if unknown."""
    return (pod.metadata.annotations or {}).get(names.CONFIG_SOURCE, "")


def _merge_sidecar(container: Container, running: Mapping[str, Container]) -> Container:
    now = running.get(container.name)
    return replace(now, restart_policy=container.restart_policy) if now else container
