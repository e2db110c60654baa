"""Devices that pods of a drain use by dynamic resource allocation, and taints of devices (pure)."""

from collections.abc import Iterator

from lastcall.drain.planning.drain_case import DrainCase, DrainNote, name_pods, name_some


def list_device_notes(case: DrainCase) -> Iterator[DrainNote]:
    """Pods that need a device elsewhere, and the rules by which devices are to be left or not to be used."""
    pods = [pod for pod in case.evicted if pod.spec.resource_claims and not pod.is_finished]
    if not pods:
        return
    yield DrainNote(
        text=f"they use devices of the node by ResourceClaims: {name_pods(pods)}",
        mend="see that other nodes have such devices free: kubectl get resourceslices",
    )
    if rules := sorted(
        f"{rule.metadata.name} ({rule.spec.taint.key}:{rule.spec.taint.effect})" for rule in case.facts.device_taints
    ):
        yield DrainNote(
            text=f"devices are tainted by DeviceTaintRule {name_some(rules)}",
            mend="remove the rules whose devices may be used again; to free a device alone, no drain is needed",
        )
