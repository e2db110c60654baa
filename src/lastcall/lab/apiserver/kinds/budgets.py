"""PodDisruptionBudgets and PriorityClasses (``pkg/apis/policy``, ``pkg/apis/scheduling``)."""

from collections.abc import Iterable

from lastcall.lab.apiserver import fields, status
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour, Options, Outcome
from lastcall.lab.apiserver.kinds.conditions import validate_conditions
from lastcall.lab.apiserver.kinds.label_selectors import validate_selector
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class PodDisruptionBudget(Behaviour):
    """How many pods must stay up. The disruption controller writes how many may go."""

    known_finalizers = False
    has_generation = True
    has_status = True
    needs_revision = True
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """The numbers of the status are always there."""
        rules.part(obj, "spec")
        rules.fill(rules.part(obj, "status"), **dict.fromkeys(_COUNTS, 0))

    def prepare_create(self, obj: Object) -> None:
        """Nothing has been counted yet, and nothing may go."""
        obj["status"] = dict.fromkeys(_COUNTS, 0)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePodDisruptionBudgetSpec``."""
        spec = obj["spec"]
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if least is not None and most is not None:
            said = {"MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most}
            said["UnhealthyPodEvictionPolicy"] = policy
            yield fields.invalid("spec", said, "minAvailable and maxUnavailable cannot be both set")
        for name, value in (("minAvailable", least), ("maxUnavailable", most)):
            yield from rules.number_or_percent(value, f"spec.{name}")
            yield from rules.at_most_all(value, f"spec.{name}")
        yield from validate_selector(spec.get("selector"), "spec.selector")
        yield from rules.one_of(policy, "spec.unhealthyPodEvictionPolicy", "AlwaysAllow", "IfHealthyBudget")

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidatePodDisruptionBudgetStatusUpdate``."""
        status = new.get("status") or {}
        yield from validate_conditions(status.get("conditions") or (), "status.conditions")
        yield from rules.not_negative(status, "status", *_COUNTS)


class PriorityClass(Behaviour):
    """A name for a priority."""

    has_generation = True

    def default(self, obj: Object) -> None:
        """Pods of the class push others away."""
        rules.fill(obj, value=0, preemptionPolicy="PreemptLowerPriority")

    def outcome(self, obj: Object, options: Options, wall: float) -> Outcome | None:
        """The classes of the system stay."""
        if (name := obj["metadata"]["name"]) in SYSTEM_CLASSES:
            why = "this is a system priority class and cannot be deleted"
            raise status.forbidden("priorityclasses", "scheduling.k8s.io", name, why)
        return None

    def wanted(self, obj: Object) -> object:
        """Its generation is always the first."""
        return None

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePriorityClass``: the names and values of the system are its own."""
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if name.startswith("system-"):
            if SYSTEM_CLASSES.get(name) != value:
                why = "priority class names with 'system-' prefix are reserved for system use only."
                if name in SYSTEM_CLASSES:
                    why += f" error: value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
                else:
                    why += f" error: {name} is not a known system priority class"
                yield fields.forbidden("metadata.name", why)
        elif value > HIGHEST_USER_PRIORITY:
            why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            yield fields.forbidden("value", why)
        policy = obj.get("preemptionPolicy")
        yield from rules.one_of(policy, "preemptionPolicy", "PreemptLowerPriority", "Never")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """Neither the value nor the policy may change."""
        if new["value"] != old["value"]:
            yield fields.forbidden("value", "may not be changed in an update.")
        yield from rules.immutable(new, old, "", "preemptionPolicy")
