"""What Deployments, ReplicaSets, DaemonSets and StatefulSets share: pods by a template, and a selector for them.

Defaults and rules are those of ``pkg/apis/apps`` and its strategies in ``pkg/registry/apps``.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import ClassVar

from lastcall.lab.apiserver import fields, meta, names
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.label_selectors import validate_selector
from lastcall.lab.apiserver.kinds.pod_defaults import pod_template_defaults
from lastcall.lab.apiserver.kinds.pod_validation import validate_pod_spec
from lastcall.lab.apiserver.kinds.pod_warnings import template_warnings
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

MISMATCH = "`selector` does not match template `labels`"
_SURPRISING = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is"
    " recommended"
)
TOO_MANY = "cannot be greater than status.replicas"


class Workload(Behaviour):
    """A kind whose objects say what pods there should be."""

    has_generation = True
    has_status = True
    status_keeps: ClassVar[tuple[str, ...]] = ()
    empty_status: ClassVar[Object] = {}
    """The status of a new object."""

    def default(self, obj: Object) -> None:
        """The defaults of the template; the rest is the kind's own."""
        pod_template_defaults(rules.part(rules.part(obj, "spec"), "template"))
        rules.part(obj, "status")

    def default_change(self, new: Object, old: Object) -> None:
        """A spec that is the very same has its defaults."""
        if new.get("spec") is old["spec"]:
            rules.part(new, "status")
        else:
            self.default(new)

    def prepare_create(self, obj: Object) -> None:
        """Nothing has been observed yet."""
        obj["status"] = copy.deepcopy(self.empty_status)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """Those of a new object, and the selector stays as it is."""
        yield from self.validate(new)
        yield from rules.immutable(new["spec"], old["spec"], "spec", "selector")

    def warnings(self, obj: Object) -> Iterable[str]:
        """What may surprise in the name, which becomes a part of the pods' names, and in the template."""
        if wrong := names.label(obj["metadata"].get("name", "")):
            yield f"{_SURPRISING}: [{wrong}]"
        yield from template_warnings(obj["spec"]["template"], "spec.template.")

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """Only about another template."""
        changed = new["metadata"].get("generation") != old["metadata"].get("generation")
        return template_warnings(new["spec"]["template"], "spec.template.") if changed else ()

    def counts(self, new: Object, old: Object, *names: str) -> Iterator[Cause]:
        """None of these numbers of the status may be negative, and the collisions only grow."""
        status = new.get("status") or {}
        yield from rules.not_negative(status, "status", *names, "collisionCount")
        collisions = (old.get("status") or {}).get("collisionCount")
        if collisions is not None and (status.get("collisionCount") or 0) < collisions:
            yield fields.invalid("status.collisionCount", status.get("collisionCount") or 0, "cannot be decremented")


def check_owned_selector(spec: Object, kind: str) -> Iterator[Cause]:
    """There must be a selector, and it must select something."""
    selector = spec.get("selector")
    if selector is None:
        yield fields.required("spec.selector")
        return
    yield from validate_selector(selector, "spec.selector")
    if rules.empty(selector):
        yield fields.invalid("spec.selector", selector, f"empty selector is {kind}")


def check_match(spec: Object) -> Iterator[Cause]:
    """The selector must select the pods of the template."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is not None and rules.empty(selector):
        return
    if not rules.matches(selector, labels or {}):
        yield fields.invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_template(template: Object, path: str = "spec.template") -> Iterator[Cause]:
    """The rules for a template (``ValidatePodTemplateSpec``)."""
    metadata = template["metadata"]
    yield from rules.check_labels(metadata.get("labels"), f"{path}.labels")
    yield from meta.check_annotations(metadata.get("annotations") or {}, f"{path}.annotations")
    yield from validate_pod_spec(template["spec"], f"{path}.spec")


def check_always(spec: Object) -> Iterator[Cause]:
    """The pods of a controller that replaces them run for ever."""
    policy = spec["template"]["spec"].get("restartPolicy")
    yield from rules.one_of(policy, "spec.template.spec.restartPolicy", "Always")


def check_replica_template(spec: Object) -> Iterator[Cause]:
    """The template of a Deployment or ReplicaSet (``ValidatePodTemplateSpecForReplicaSet``)."""
    yield from check_match(spec)
    yield from check_template(spec["template"])
    yield from check_always(spec)
    if spec["template"]["spec"].get("activeDeadlineSeconds") is not None:
        why = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield fields.forbidden("spec.template.spec.activeDeadlineSeconds", why)
