"""Volumes of a drain's pods that no other node can have (pure)."""

from collections.abc import Iterator

from lastcall.drain.planning.drain_case import DrainCase, DrainNote, name_some
from lastcall.drain.planning.node_fit import selects_node
from lastcall.model.drain_facts import DrainNode, DrainPod
from lastcall.model.drain_objects import DrainFacts, DrainVolume
from lastcall.model.node_pods import pod_claims


def list_volume_notes(case: DrainCase) -> Iterator[DrainNote]:
    """Volumes of the node itself, and those whose node affinity no other node has."""
    others = [node for node in case.facts.nodes if node.name not in case.node_names]
    found = [
        f"{pod.key} (PersistentVolume {volume.metadata.name})"
        for pod in case.evicted
        if not pod.is_finished
        for volume in pod_volumes(pod, case.facts)
        if _stays(volume, others)
    ]
    if found:
        yield DrainNote(
            text=f"their volumes cannot follow them, so that their replacements stay Pending: {name_some(found)}",
            mend="move their data first, or bring the node back before they are needed",
        )


def pod_volumes(pod: DrainPod, facts: DrainFacts) -> Iterator[DrainVolume]:
    """The PersistentVolumes behind the pod's claims, as far as they are known."""
    for key in pod_claims(pod):
        namespace, _, name = key.partition("/")
        claim = facts.claims.get((namespace, name))
        volume = facts.volumes.get(claim.spec.volume_name) if claim else None
        if volume:
            yield volume


def _stays(volume: DrainVolume, others: list[DrainNode]) -> bool:
    spec = volume.spec
    if spec.local is not None or spec.host_path is not None:
        return True
    required = spec.node_affinity.required if spec.node_affinity else None
    return bool(required and others) and not any(selects_node(required, node) for node in others if required)
