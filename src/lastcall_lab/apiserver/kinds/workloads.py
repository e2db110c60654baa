"""Common behaviour of Deployments, ReplicaSets, DaemonSets and StatefulSets: template and selector.

Defaults and rules are those of ``pkg/apis/apps`` and its strategies in ``pkg/registry/apps``.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import ClassVar

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.kinds.pod_defaults import set_template_defaults
from lastcall_lab.apiserver.kinds.pod_spec_rules import validate_pod_spec
from lastcall_lab.apiserver.kinds.pod_warnings import template_warnings
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

MISMATCH = "`selector` does not match template `labels`"
_SURPRISING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is"
    " recommended"
)
TOO_MANY = "cannot be greater than status.replicas"


class BaseWorkloadKind(KindBehaviour):
    """A kind with a pod template."""

    has_generation = True
    has_status = True
    status_keeps: ClassVar[tuple[str, ...]] = ()
    empty_status: ClassVar[Object] = {}
    """The status of a new object."""

    def default(self, obj: Object) -> None:
        """Defaults of the template; subclasses add their own."""
        set_template_defaults(common_rules.sub_object(common_rules.sub_object(obj, "spec"), "template"))
        common_rules.sub_object(obj, "status")

    def default_change(self, new: Object, old: Object) -> None:
        """An unchanged spec already has its defaults."""
        if new.get("spec") is old["spec"]:
            common_rules.sub_object(new, "status")
        else:
            self.default(new)

    def prepare_create(self, obj: Object) -> None:
        """Clears the status."""
        obj["status"] = copy.deepcopy(self.empty_status)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """Validates like a new object; the selector is immutable."""
        yield from self.validate(new)
        yield from common_rules.check_immutable(new["spec"], old["spec"], "spec", "selector")

    def warnings(self, obj: Object) -> Iterable[str]:
        """Warns about the name, which becomes part of pod names, and about the template."""
        if wrong := name_rules.dns_label_error(obj["metadata"].get("name", "")):
            yield f"{_SURPRISING}: [{wrong}]"
        yield from template_warnings(obj["spec"]["template"], "spec.template.")

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """Warns only about a changed template."""
        changed = new["metadata"].get("generation") != old["metadata"].get("generation")
        return template_warnings(new["spec"]["template"], "spec.template.") if changed else ()

    def counts(self, new: Object, old: Object, *names: str) -> Iterator[Cause]:
        """These status numbers must not be negative, and the collision count must not decrease."""
        status = new.get("status") or {}
        yield from common_rules.check_not_negative(status, "status", *names, "collisionCount")
        collisions = (old.get("status") or {}).get("collisionCount")
        if collisions is not None and (status.get("collisionCount") or 0) < collisions:
            yield field_errors.invalid(
                "status.collisionCount", status.get("collisionCount") or 0, "cannot be decremented"
            )


def check_owned_selector(spec: Object, kind: str) -> Iterator[Cause]:
    """The selector is required and must not be empty."""
    selector = spec.get("selector")
    if selector is None:
        yield field_errors.value_required("spec.selector")
        return
    yield from validate_selector(selector, "spec.selector")
    if common_rules.is_empty_selector(selector):
        yield field_errors.invalid("spec.selector", selector, f"empty selector is {kind}")


def check_selector_match(spec: Object) -> Iterator[Cause]:
    """The selector must match the template's labels."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is not None and common_rules.is_empty_selector(selector):
        return
    if not common_rules.selects_labels(selector, labels or {}):
        yield field_errors.invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_template(template: Object, path: str = "spec.template") -> Iterator[Cause]:
    """Validates a template (``ValidatePodTemplateSpec``)."""
    metadata = template["metadata"]
    yield from common_rules.check_labels(metadata.get("labels"), f"{path}.labels")
    yield from object_meta.check_annotations(metadata.get("annotations") or {}, f"{path}.annotations")
    yield from validate_pod_spec(template["spec"], f"{path}.spec")


def check_restart_policy(spec: Object) -> Iterator[Cause]:
    """The restart policy must be Always."""
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
