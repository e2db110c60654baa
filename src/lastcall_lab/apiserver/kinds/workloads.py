"""What Deployments, ReplicaSets, DaemonSets and StatefulSets share: pods by a template, and a selector for them.

Defaults and rules are those of ``pkg/apis/apps`` and its strategies in ``pkg/registry/apps``.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import ClassVar

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.kinds.pod_defaults import set_template_defaults
from lastcall_lab.apiserver.kinds.pod_spec_rules import validate_pod_spec
from lastcall_lab.apiserver.kinds.pod_warnings import template_warnings
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors, name_rules, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

MISMATCH = "`selector` does not match template `labels`"
_SURPRISING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is"
    " recommended"
)
TOO_MANY = "cannot be greater than status.replicas"


class BaseWorkloadKind(KindBehaviour):
    """A kind whose objects say what pods there should be."""

    has_generation = True
    has_status = True
    status_keeps: ClassVar[tuple[str, ...]] = ()
    empty_status: ClassVar[Object] = {}
    """The status of a new object."""

    def default(self, obj: Object) -> None:
        """The defaults of the template; the rest is the kind's own."""
        set_template_defaults(common_rules.sub_object(common_rules.sub_object(obj, "spec"), "template"))
        common_rules.sub_object(obj, "status")

    def default_change(self, new: Object, old: Object) -> None:
        """A spec that is the very same has its defaults."""
        if new.get("spec") is old["spec"]:
            common_rules.sub_object(new, "status")
        else:
            self.default(new)

    def prepare_create(self, obj: Object) -> None:
        """Nothing has been observed yet."""
        obj["status"] = copy.deepcopy(self.empty_status)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """Those of a new object, and the selector stays as it is."""
        yield from self.validate(new)
        yield from common_rules.check_immutable(new["spec"], old["spec"], "spec", "selector")

    def warnings(self, obj: Object) -> Iterable[str]:
        """What may surprise in the name, which becomes a part of the pods' names, and in the template."""
        if wrong := name_rules.dns_label_error(obj["metadata"].get("name", "")):
            yield f"{_SURPRISING}: [{wrong}]"
        yield from template_warnings(obj["spec"]["template"], "spec.template.")

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """Only about another template."""
        changed = new["metadata"].get("generation") != old["metadata"].get("generation")
        return template_warnings(new["spec"]["template"], "spec.template.") if changed else ()

    def counts(self, new: Object, old: Object, *names: str) -> Iterator[Cause]:
        """None of these numbers of the status may be negative, and the collisions only grow."""
        status = new.get("status") or {}
        yield from common_rules.check_not_negative(status, "status", *names, "collisionCount")
        collisions = (old.get("status") or {}).get("collisionCount")
        if collisions is not None and (status.get("collisionCount") or 0) < collisions:
            yield field_errors.invalid(
                "status.collisionCount", status.get("collisionCount") or 0, "cannot be decremented"
            )


def check_owned_selector(spec: Object, kind: str) -> Iterator[Cause]:
    """There must be a selector, and it must select something."""
    selector = spec.get("selector")
    if selector is None:
        yield field_errors.value_required("spec.selector")
        return
    yield from validate_selector(selector, "spec.selector")
    if common_rules.is_empty_selector(selector):
        yield field_errors.invalid("spec.selector", selector, f"empty selector is {kind}")


def check_selector_match(spec: Object) -> Iterator[Cause]:
    """The selector must select the pods of the template."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is not None and common_rules.is_empty_selector(selector):
        return
    if not common_rules.selects_labels(selector, labels or {}):
        yield field_errors.invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_template(template: Object, path: str = "spec.template") -> Iterator[Cause]:
    """The rules for a template (``ValidatePodTemplateSpec``)."""
    metadata = template["metadata"]
    yield from common_rules.check_labels(metadata.get("labels"), f"{path}.labels")
    yield from object_meta.check_annotations(metadata.get("annotations") or {}, f"{path}.annotations")
    yield from validate_pod_spec(template["spec"], f"{path}.spec")


def check_restart_policy(spec: Object) -> Iterator[Cause]:
    """The pods of a controller that replaces them run for ever."""
    policy = spec["template"]["spec"].get("restartPolicy")
    yield from common_rules.check_one_of(policy, "spec.template.spec.restartPolicy", "Always")


def check_replica_template(spec: Object) -> Iterator[Cause]:
    """The template of a Deployment or ReplicaSet (``ValidatePodTemplateSpecForReplicaSet``)."""
    yield from check_selector_match(spec)
    yield from check_template(spec["template"])
    yield from check_restart_policy(spec)
    if spec["template"]["spec"].get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield field_errors.forbidden("spec.template.spec.activeDeadlineSeconds", why)
