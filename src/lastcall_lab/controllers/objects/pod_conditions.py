"""Writes one condition of a pod beside those of other writers (pure; ``podutil.UpdatePodCondition``)."""

from typing import Any

from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.actions import PatchObject
from lastcall_lab.controllers.framework.view import Object, ref_of
from lastcall_lab.controllers.objects import pods


def changed_condition(pod: Object, kind: str, status: str, reason: str, message: str, now: float) -> list[Object]:
    """The condition to write, as a list; empty if the pod already has it."""
    old = pods.condition_of(pod, kind)
    said: dict[str, Any] = {"type": kind, "status": status, "reason": reason, "message": message}
    if generation := pod["metadata"].get("generation"):
        said["observedGeneration"] = generation
    if said.items() <= old.items():
        return []
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return [{**said, "lastProbeTime": None, "lastTransitionTime": since or timestamp(now)}]


def disruption_condition(pod: Object, reason: str, message: str, now: float) -> list[Object]:
    """The condition DisruptionTarget, which says why the control plane removes a pod."""
    return changed_condition(pod, "DisruptionTarget", "True", reason, message, now)


def conditions_patch(pod: Object, conditions: list[Object], **more: object) -> tuple[PatchObject, ...]:
    """A patch of conditions and of ``more`` of the status; no action if there is nothing to write."""
    if not conditions and not more:
        return ()
    status = {**more, **({"conditions": conditions} if conditions else {})}
    return (PatchObject(ref_of("pods", pod), {"status": status}, "status", uid=pod["metadata"]["uid"], strategic=True),)
