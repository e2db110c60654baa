"""DaemonSets (``pkg/apis/apps``, ``pkg/registry/apps/daemonset``)."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.kinds.workloads import (
    BaseWorkloadKind,
    check_restart_policy,
    check_selector_match,
    check_template,
)
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_GENERATION = "deprecated.daemonset.template.generation"
_COUNTS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


class DaemonSetKind(BaseWorkloadKind):
    """One pod per node. An annotation holds the template generation."""

    hidden_annotations = (_GENERATION,)
    empty_status: ClassVar[Object] = dict.fromkeys(_COUNTS, 0)

    def default(self, obj: Object) -> None:
        """Rolling update with maxUnavailable 1."""
        super().default(obj)
        spec = common_rules.fill_missing(obj["spec"], revisionHistoryLimit=10)
        strategy = common_rules.sub_object(spec, "updateStrategy")
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            common_rules.fill_missing(common_rules.sub_object(strategy, "rollingUpdate"), maxUnavailable=1, maxSurge=0)

    def prepare_create(self, obj: Object) -> None:
        """Template generation 1."""
        super().prepare_create(obj)
        annotations = common_rules.sub_object(obj["metadata"], "annotations")
        annotations.setdefault(_GENERATION, "1")

    def prepare_update(self, new: Object, old: Object) -> None:
        """Increments the template generation if the template changes."""
        super().prepare_update(new, old)
        before = (old["metadata"].get("annotations") or {}).get(_GENERATION, "1")
        changed = new["spec"]["template"] != old["spec"]["template"]
        common_rules.sub_object(new["metadata"], "annotations")[_GENERATION] = str(int(before) + changed)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateDaemonSetSpec``."""
        spec = obj["spec"]
        selector = spec.get("selector")
        yield from validate_selector(selector, "spec.selector")
        yield from check_selector_match(spec)
        if selector is not None and common_rules.is_empty_selector(selector):
            yield field_errors.invalid("spec.selector", selector, "empty selector is invalid for daemonset")
        yield from check_template(spec["template"])
        yield from check_restart_policy(spec)
        deadline = spec["template"]["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            why = "activeDeadlineSeconds in DaemonSet is not Supported"
            yield field_errors.forbidden("spec.template.spec.activeDeadlineSeconds", why)
        yield from common_rules.check_not_negative(spec, "spec", "minReadySeconds")
        yield from _strategy(spec["updateStrategy"])
        yield from common_rules.check_not_negative(spec, "spec", "revisionHistoryLimit")

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateDaemonSetStatus``."""
        more = ("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable")
        yield from self.counts(new, old, *_COUNTS, *more)


def _strategy(strategy: Object) -> Iterator[Cause]:
    path = "spec.updateStrategy"
    if strategy["type"] == "OnDelete":
        return
    if strategy["type"] != "RollingUpdate":
        said = {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}
        yield field_errors.not_supported(path, said, ["RollingUpdate", "OnDelete"])
        return
    rolling, path = strategy["rollingUpdate"], f"{path}.rollingUpdate"
    for name in ("maxUnavailable", "maxSurge"):
        yield from common_rules.check_number_or_percent(rolling[name], f"{path}.{name}")
    for name in ("maxUnavailable", "maxSurge"):
        yield from common_rules.check_at_most_all(rolling[name], f"{path}.{name}")
    unavailable, surge = (not common_rules.is_zero(rolling[name]) for name in ("maxUnavailable", "maxSurge"))
    if unavailable and surge:
        yield field_errors.invalid(
            f"{path}.maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero"
        )
    elif not unavailable and not surge:
        yield field_errors.value_required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
