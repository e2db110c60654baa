"""The disruption controller: how many evictions each PodDisruptionBudget allows (``pkg/controller/disruption``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lastcall.model.int_or_percent import resolve_portion
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.actions import Action, Decision, PatchObject, RecordEvent, merge_patch
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, controller_of, ref_of
from lastcall_lab.controllers.objects import conditions, pod_conditions, pods
from lastcall_lab.controllers.objects.ownership import OwnerKind, object_labels, selector_of
from lastcall_lab.controllers.workloads import expected_scale

RESOURCE = "poddisruptionbudgets.policy"
KIND = OwnerKind("policy/v1", "PodDisruptionBudget", RESOURCE)
_ALLOWED = "DisruptionAllowed"
_TARGET = "DisruptionTarget"


@dataclass(frozen=True)
class DisruptionTimes:
    """Seconds after which an evicted or disrupted pod counts again if it still exists and is not being deleted."""

    deletion_timeout: float = 120.0


class DisruptionController:
    """Reconciles a budget when it or a pod of it changes, and pods with a stale DisruptionTarget."""

    name = "disruption"
    resources: Sequence[str] = (RESOURCE, "pods", *expected_scale.RESOURCES)

    def __init__(self, times: DisruptionTimes | None = None) -> None:
        self._timeout = (times or DisruptionTimes()).deletion_timeout
        self._counted: dict[str, tuple[Any, ...]] = {}

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The budgets of a pod, if it counts differently than before. Scaling of an owner shows in its pods."""
        if resource == RESOURCE:
            return [ref_of(RESOURCE, obj)]
        return self._budgets_of_pod(obj, view) if resource == "pods" else ()

    def _budgets_of_pod(self, pod: Object, view: View) -> Iterator[ObjectRef]:
        if self._counts_differently(pod, view):
            for budget in view.selecting_labels(RESOURCE, pod["metadata"]["namespace"], object_labels(pod)):
                if selector_of(budget)(object_labels(pod)):
                    yield ref_of(RESOURCE, budget)
        if pods.condition_of(pod, _TARGET).get("status") == "True":
            yield ref_of("pods", pod)

    def _counts_differently(self, pod: Object, view: View) -> bool:
        """Most pod changes do not matter to budgets; compares with what was last counted for the pod."""
        now, uid = view.get(*ref_of("pods", pod)), pod["metadata"]["uid"]
        if now is None or now["metadata"]["uid"] != uid:
            self._counted.pop(uid, None)
            return True
        if now is not pod:
            return object_labels(now) != object_labels(pod)
        going, owner = bool(pod["metadata"].get("deletionTimestamp")), controller_of(pod)
        counted = (pods.is_ready(pod), going, object_labels(pod), owner and owner["uid"])
        before, self._counted[uid] = self._counted.get(uid), counted
        return counted != before

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """The budget's status, conditional on the known version, because evictions write it too."""
        found = view.get(*key)
        if found is None:
            return Decision()
        if key.resource == "pods":
            return self._clear_stale_disruption(found, now)
        covered = _covered_pods(found, view)
        told: list[Action] = [] if covered else [KIND.owner_event(found, "NoPods", "No matching pods found")]
        try:
            need = healthy_pods_need(found, covered, view)
        except (expected_scale.ScaleUnknown, ValueError) as problem:
            message = f"Failed to calculate the number of expected pods: {problem}"
            told.append(KIND.owner_event(found, "CalculateExpectedPodCountFailed", message, "Warning"))
            return Decision((*_status_patches(key, found, _fail_safe_status(found, str(problem), now)), *told))
        if need.unmanaged:
            told.append(_unmanaged_pods_event(found))
        disrupted = _pending_evictions(found, covered)
        due = {name: pods.unix_seconds(since) + self._timeout for name, since in disrupted.items()}
        told += [
            _pod_not_deleted_event(found, pod) for pod in covered if due.get(pod["metadata"]["name"], now + 1) <= now
        ]
        waited_for = {name: since for name, since in disrupted.items() if due[name] > now}
        status = _budget_status(found, need, count_healthy(covered, waited_for), waited_for, now)
        again = min((due[name] - now for name in waited_for), default=None)
        return Decision((*_status_patches(key, found, status), *told), again)

    def _clear_stale_disruption(self, pod: Object, now: float) -> Decision:
        """Clears DisruptionTarget of a pod that is still not being deleted after a while (KEP-3329)."""
        said = pods.condition_of(pod, _TARGET)
        over = pod["metadata"].get("deletionTimestamp") or pods.pod_phase(pod) in pods.FINISHED
        if over or said.get("status") != "True" or said.get("reason") == "TerminationByKubelet":
            return Decision()
        left = pods.unix_seconds(said["lastTransitionTime"]) + self._timeout - now
        if left > 0:
            return Decision(again_in=left)
        return Decision(
            pod_conditions.conditions_patch(pod, pod_conditions.changed_condition(pod, _TARGET, "False", "", "", now))
        )


def _covered_pods(budget: Object, view: View) -> Sequence[Object]:
    """The budget's pods. The label index narrows the candidates; other selectors need a scan."""
    selector = budget["spec"].get("selector") or {}
    equal = selector.get("matchLabels") or {}
    found = view.with_labels("pods", budget["metadata"]["namespace"], equal)
    if equal and not selector.get("matchExpressions"):
        return found
    matches = selector_of(budget)
    return [pod for pod in found if matches(object_labels(pod))]


class HealthyPodsNeed(NamedTuple):
    """Expected pods, required healthy pods, and the names of pods without a controller."""

    expected: int
    healthy: int
    unmanaged: Sequence[str] = ()


def healthy_pods_need(budget: Object, covered: Sequence[Object], view: View) -> HealthyPodsNeed:
    """``getExpectedPodCount``: a fixed minAvailable counts the pods, all others count their owners' replicas.

    Percentages are rounded up. ScaleUnknown if an owner's scale is unknown.
    """
    most, least = budget["spec"].get("maxUnavailable"), budget["spec"].get("minAvailable")
    if most is None and (least is None or isinstance(least, int)):
        return HealthyPodsNeed(0 if least is None else len(covered), least or 0)
    scale = expected_scale.expected_scale(covered, view)
    if most is not None:
        return HealthyPodsNeed(
            scale.pods, max(0, scale.pods - resolve_portion(most, scale.pods, up=True)), scale.unmanaged
        )
    return HealthyPodsNeed(scale.pods, resolve_portion(least, scale.pods, up=True), scale.unmanaged)


def count_healthy(covered: Iterable[Object], waited_for: Mapping[str, str]) -> int:
    """Pods that are ready, not being deleted, and not recently evicted."""
    return sum(
        pods.is_ready(pod)
        and not pod["metadata"].get("deletionTimestamp")
        and pod["metadata"]["name"] not in waited_for
        for pod in covered
    )


def _pending_evictions(budget: Object, covered: Sequence[Object]) -> dict[str, str]:
    """Evicted pods in the status that are not being deleted yet, with the time of their eviction."""
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    if not noted:
        return {}
    staying = [pod["metadata"]["name"] for pod in covered if not pod["metadata"].get("deletionTimestamp")]
    return {name: noted[name] for name in staying if name in noted}


def _budget_status(
    budget: Object, need: HealthyPodsNeed, current: int, waited_for: Mapping[str, str], now: float
) -> Object:
    allowed = max(0, current - need.healthy) if need.expected > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    reason = "SufficientPods" if allowed else "InsufficientPods"
    status: Object = {
        "currentHealthy": current,
        "desiredHealthy": need.healthy,
        "expectedPods": need.expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": generation,
        "conditions": _with_condition(budget, "True" if allowed else "False", reason, "", generation, now),
    }
    return {**status, "disruptedPods": dict(waited_for)} if waited_for else status


def _fail_safe_status(budget: Object, problem: str, now: float) -> Object:
    """Allows no disruption while the expected count is unknown (``failSafe``)."""
    old = budget.get("status") or {}
    said = _with_condition(budget, "False", "SyncFailed", problem, old.get("observedGeneration", 0), now)
    return {**old, "disruptionsAllowed": 0, "conditions": said}


def _with_condition(
    budget: Object, status: str, reason: str, message: str, generation: int, now: float
) -> list[Mapping[str, Any]]:
    """``meta.SetStatusCondition``."""
    present = (budget.get("status") or {}).get("conditions") or ()
    old = conditions.find_condition(present, _ALLOWED)
    since = old["lastTransitionTime"] if old.get("status") == status else timestamp(now)
    new = {"type": _ALLOWED, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation:
        new["observedGeneration"] = generation
    return [*conditions.without_condition(present, _ALLOWED), new]


def _status_patches(key: ObjectRef, budget: Object, status: Object) -> tuple[PatchObject, ...]:
    old, metadata = budget.get("status") or {}, budget["metadata"]
    if status == old:
        return ()
    body = {"status": merge_patch(old, status)}
    return (PatchObject(key, body, "status", uid=metadata["uid"], revision=metadata["resourceVersion"]),)


# -- reports -----------------------------------------------------------------------------------------------------------


def _pod_not_deleted_event(budget: Object, pod: Object) -> RecordEvent:
    metadata, place = pod["metadata"], budget["metadata"]
    message = f"Pod was expected by PDB {place['namespace']}/{place['name']} to be deleted but it wasn't"
    return RecordEvent(ref_of("pods", pod), metadata["uid"], "Pod", "v1", "NotDeleted", message, "Warning")


def _unmanaged_pods_event(budget: Object) -> RecordEvent:
    message = (
        f"Pods selected by this PodDisruptionBudget (selector: {_selector_text(budget)}) were found to be unmanaged. As a"
        " result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To"
        ' account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
    return KIND.owner_event(budget, "UnmanagedPods", message, "Warning")


def _selector_text(budget: Object) -> str:
    """The selector as Go prints it."""
    selector = budget["spec"].get("selector") or {}
    wanted = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one['key']},Operator:{one['operator']},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{wanted}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
