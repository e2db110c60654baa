"""The disruption controller: how many evictions each PodDisruptionBudget allows (``pkg/controller/disruption``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lastcall.lab.apiserver.meta import timestamp
from lastcall.lab.controllers import conditions, pod_conditions, pods, scales
from lastcall.lab.controllers.actions import Action, Decision, Patch, Tell, merge_patch
from lastcall.lab.controllers.owning import Kind, labels, selector_of
from lastcall.lab.controllers.view import Object, Ref, View, controller_of, ref
from lastcall.model.portions import portion

RESOURCE = "poddisruptionbudgets.policy"
KIND = Kind("policy/v1", "PodDisruptionBudget", RESOURCE)
_ALLOWED = "DisruptionAllowed"
_TARGET = "DisruptionTarget"


@dataclass(frozen=True)
class BudgetTimes:
    """Seconds after which a pod that was evicted, or was to be, counts again if it is still there and not going."""

    deletion_timeout: float = 120.0


class Budgets:
    """Looks at a budget when it or one of its pods has changed, and at pods that were to be disrupted and were not."""

    name = "disruption"
    resources: Sequence[str] = (RESOURCE, "pods", *scales.RESOURCES)

    def __init__(self, times: BudgetTimes | None = None) -> None:
        self._timeout = (times or BudgetTimes()).deletion_timeout
        self._counted: dict[str, tuple[Any, ...]] = {}

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The budgets of a pod, if it counts as another than before. That an owner is scaled shows in its pods."""
        if resource == RESOURCE:
            return [ref(RESOURCE, obj)]
        return self._of_pod(obj, view) if resource == "pods" else ()

    def _of_pod(self, pod: Object, view: View) -> Iterator[Ref]:
        if self._counts_anew(pod, view):
            for budget in view.selecting(RESOURCE, pod["metadata"]["namespace"], labels(pod)):
                if selector_of(budget)(labels(pod)):
                    yield ref(RESOURCE, budget)
        if pods.condition(pod, _TARGET).get("status") == "True":
            yield ref("pods", pod)

    def _counts_anew(self, pod: Object, view: View) -> bool:
        """Most changes of a pod are none of what budgets count: what was counted last is kept for each."""
        now, uid = view.get(*ref("pods", pod)), pod["metadata"]["uid"]
        if now is None or now["metadata"]["uid"] != uid:
            self._counted.pop(uid, None)
            return True
        if now is not pod:
            return labels(now) != labels(pod)
        going, owner = bool(pod["metadata"].get("deletionTimestamp")), controller_of(pod)
        counted = (pods.ready(pod), going, labels(pod), owner and owner["uid"])
        before, self._counted[uid] = self._counted.get(uid), counted
        return counted != before

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """The budget's status, written only over the version that is known: evictions write it too."""
        found = view.get(*key)
        if found is None:
            return Decision()
        if key.resource == "pods":
            return self._spared(found, now)
        covered = _covered(found, view)
        told: list[Action] = [] if covered else [KIND.tell(found, "NoPods", "No matching pods found")]
        try:
            need = needed(found, covered, view)
        except (scales.Unknown, ValueError) as problem:
            message = f"Failed to calculate the number of expected pods: {problem}"
            told.append(KIND.tell(found, "CalculateExpectedPodCountFailed", message, "Warning"))
            return Decision((*_written(key, found, _failed(found, str(problem), now)), *told))
        if need.unmanaged:
            told.append(_unmanaged(found))
        disrupted = _disrupted(found, covered)
        due = {name: pods.seconds(since) + self._timeout for name, since in disrupted.items()}
        told += [_not_deleted(found, pod) for pod in covered if due.get(pod["metadata"]["name"], now + 1) <= now]
        waited_for = {name: since for name, since in disrupted.items() if due[name] > now}
        status = _status(found, need, healthy(covered, waited_for), waited_for, now)
        again = min((due[name] - now for name in waited_for), default=None)
        return Decision((*_written(key, found, status), *told), again)

    def _spared(self, pod: Object, now: float) -> Decision:
        """A pod that was to be disrupted, and is not going after a while, is not any more (KEP-3329)."""
        said = pods.condition(pod, _TARGET)
        over = pod["metadata"].get("deletionTimestamp") or pods.phase(pod) in pods.FINISHED
        if over or said.get("status") != "True" or said.get("reason") == "TerminationByKubelet":
            return Decision()
        left = pods.seconds(said["lastTransitionTime"]) + self._timeout - now
        if left > 0:
            return Decision(again_in=left)
        return Decision(pod_conditions.patch(pod, pod_conditions.condition(pod, _TARGET, "False", "", "", now)))


def _covered(budget: Object, view: View) -> Sequence[Object]:
    """Its pods. The index knows labels; for anything else in the selector they are gone through."""
    selector = budget["spec"].get("selector") or {}
    equal = selector.get("matchLabels") or {}
    found = view.labelled("pods", budget["metadata"]["namespace"], equal)
    if equal and not selector.get("matchExpressions"):
        return found
    matches = selector_of(budget)
    return [pod for pod in found if matches(labels(pod))]


class Need(NamedTuple):
    """How many pods there should be, how many of them healthy, and the names of those that nobody owns."""

    expected: int
    healthy: int
    unmanaged: Sequence[str] = ()


def needed(budget: Object, covered: Sequence[Object], view: View) -> Need:
    """``getExpectedPodCount``: only a fixed minAvailable is counted by pods, all else by what their owners want.

    Percentages are rounded up. scales.Unknown if an owner cannot be asked.
    """
    most, least = budget["spec"].get("maxUnavailable"), budget["spec"].get("minAvailable")
    if most is None and (least is None or isinstance(least, int)):
        return Need(0 if least is None else len(covered), least or 0)
    scale = scales.expected(covered, view)
    if most is not None:
        return Need(scale.pods, max(0, scale.pods - portion(most, scale.pods, up=True)), scale.unmanaged)
    return Need(scale.pods, portion(least, scale.pods, up=True), scale.unmanaged)


def healthy(covered: Iterable[Object], waited_for: Mapping[str, str]) -> int:
    """Pods that are ready and neither going nor evicted a moment ago."""
    return sum(
        pods.ready(pod) and not pod["metadata"].get("deletionTimestamp") and pod["metadata"]["name"] not in waited_for
        for pod in covered
    )


def _disrupted(budget: Object, covered: Sequence[Object]) -> dict[str, str]:
    """Pods whose eviction the status remembers, and which are not seen going yet, with the time of it."""
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    if not noted:
        return {}
    staying = [pod["metadata"]["name"] for pod in covered if not pod["metadata"].get("deletionTimestamp")]
    return {name: noted[name] for name in staying if name in noted}


def _status(budget: Object, need: Need, current: int, waited_for: Mapping[str, str], now: float) -> Object:
    allowed = max(0, current - need.healthy) if need.expected > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    reason = "SufficientPods" if allowed else "InsufficientPods"
    status: Object = {
        "currentHealthy": current,
        "desiredHealthy": need.healthy,
        "expectedPods": need.expected,
        "disruptionsAllowed": allowed,
        "observedGeneration": generation,
        "conditions": _conditions(budget, "True" if allowed else "False", reason, "", generation, now),
    }
    return {**status, "disruptedPods": dict(waited_for)} if waited_for else status


def _failed(budget: Object, problem: str, now: float) -> Object:
    """Nothing is allowed as long as nobody knows (``failSafe``)."""
    old = budget.get("status") or {}
    said = _conditions(budget, "False", "SyncFailed", problem, old.get("observedGeneration", 0), now)
    return {**old, "disruptionsAllowed": 0, "conditions": said}


def _conditions(
    budget: Object, status: str, reason: str, message: str, generation: int, now: float
) -> list[Mapping[str, Any]]:
    """``meta.SetStatusCondition``."""
    present = (budget.get("status") or {}).get("conditions") or ()
    old = conditions.find(present, _ALLOWED)
    since = old["lastTransitionTime"] if old.get("status") == status else timestamp(now)
    new = {"type": _ALLOWED, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation:
        new["observedGeneration"] = generation
    return [*conditions.without(present, _ALLOWED), new]


def _written(key: Ref, budget: Object, status: Object) -> tuple[Patch, ...]:
    old, metadata = budget.get("status") or {}, budget["metadata"]
    if status == old:
        return ()
    body = {"status": merge_patch(old, status)}
    return (Patch(key, body, "status", uid=metadata["uid"], revision=metadata["resourceVersion"]),)


# -- what is told ------------------------------------------------------------------------------------------------------


def _not_deleted(budget: Object, pod: Object) -> Tell:
    metadata, place = pod["metadata"], budget["metadata"]
    message = f"Pod was expected by PDB {place['namespace']}/{place['name']} to be deleted but it wasn't"
    return Tell(ref("pods", pod), metadata["uid"], "Pod", "v1", "NotDeleted", message, "Warning")


def _unmanaged(budget: Object) -> Tell:
    message = (
        f"Pods selected by this PodDisruptionBudget (selector: {_selector(budget)}) were found to be unmanaged. As a"
        " result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To"
        ' account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
    return KIND.tell(budget, "UnmanagedPods", message, "Warning")


def _selector(budget: Object) -> str:
    """As Go prints it."""
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
