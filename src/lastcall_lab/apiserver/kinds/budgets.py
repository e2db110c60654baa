"""PodDisruptionBudgets and PriorityClasses (``pkg/apis/policy``, ``pkg/apis/scheduling``)."""

from collections.abc import Iterable

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.condition_rules import validate_conditions
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions, DeletionOutcome, KindBehaviour
from lastcall_lab.apiserver.values import api_errors, field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class PodDisruptionBudgetKind(KindBehaviour):
    """The minimum of healthy pods. The disruption controller writes the allowed disruptions."""

    known_finalizers = False
    has_generation = True
    has_status = True
    needs_revision = True
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """Always sets the numbers of the status."""
        common_rules.sub_object(obj, "spec")
        common_rules.fill_missing(common_rules.sub_object(obj, "status"), **dict.fromkeys(_COUNTS, 0))

    def prepare_create(self, obj: Object) -> None:
        """Starts with no allowed disruption, because no pod has been counted yet."""
        obj["status"] = dict.fromkeys(_COUNTS, 0)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePodDisruptionBudgetSpec``."""
        spec = obj["spec"]
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if least is not None and most is not None:
            said = {"MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most}
            said["UnhealthyPodEvictionPolicy"] = policy
            yield field_errors.invalid("spec", said, "minAvailable and maxUnavailable cannot be both set")
        for name, value in (("minAvailable", least), ("maxUnavailable", most)):
            yield from common_rules.check_number_or_percent(value, f"spec.{name}")
            yield from common_rules.check_at_most_all(value, f"spec.{name}")
        yield from validate_selector(spec.get("selector"), "spec.selector")
        yield from common_rules.check_one_of(
            policy, "spec.unhealthyPodEvictionPolicy", "AlwaysAllow", "IfHealthyBudget"
        )

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidatePodDisruptionBudgetStatusUpdate``."""
        status = new.get("status") or {}
        yield from validate_conditions(status.get("conditions") or (), "status.conditions")
        yield from common_rules.check_not_negative(status, "status", *_COUNTS)


class PriorityClassKind(KindBehaviour):
    """A name for a priority."""

    has_generation = True

    def default(self, obj: Object) -> None:
        """Sets preemptionPolicy PreemptLowerPriority."""
        common_rules.fill_missing(obj, value=0, preemptionPolicy="PreemptLowerPriority")

    def outcome(self, obj: Object, options: DeleteOptions, wall: float) -> DeletionOutcome | None:
        """The system classes cannot be deleted."""
        if (name := obj["metadata"]["name"]) in SYSTEM_CLASSES:
            why = "this is a system priority class and cannot be deleted"
            raise api_errors.forbidden_error("priorityclasses", "scheduling.k8s.io", name, why)
        return None

    def generation_source(self, obj: Object) -> object:
        """The generation never changes."""
        return None

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePriorityClass``: the names and values of the system classes are reserved."""
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if name.startswith("system-"):
            if SYSTEM_CLASSES.get(name) != value:
                why = "priority class names with 'system-' prefix are reserved for system use only."
                if name in SYSTEM_CLASSES:
                    why += f" error: value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
                else:
                    why += f" error: {name} is not a known system priority class"
                yield field_errors.forbidden("metadata.name", why)
        elif value > HIGHEST_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            yield field_errors.forbidden("value", why)
        policy = obj.get("preemptionPolicy")
        yield from common_rules.check_one_of(policy, "preemptionPolicy", "PreemptLowerPriority", "Never")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The value and the preemption policy are immutable."""
        if new["value"] != old["value"]:
            yield field_errors.forbidden("value", "may not be changed in an update.")
        yield from common_rules.check_immutable(new, old, "", "preemptionPolicy")
