"""Roles and their bindings (``pkg/apis/rbac``)."""

from collections.abc import Iterable, Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_GROUP = "rbac.authorization.k8s.io"


class RoleKind(KindBehaviour):
    """A set of permissions; ``namespaced`` roles have no non-resource paths."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def default(self, obj: Object) -> None:
        """``rules`` is always present, null if there are none."""
        obj["rules"] = obj.get("rules")

    def validate_name(self, name: str) -> str:
        """Any valid path segment."""
        return name_rules.path_segment_error(name)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidatePolicyRule`` for each rule."""
        for index, rule in enumerate(obj["rules"] or ()):
            yield from _check_rule(rule, f"rules[{index}]", namespaced=self._namespaced)
        if (aggregation := obj.get("aggregationRule")) is not None:
            yield from _check_aggregation(aggregation)


class RoleBindingKind(KindBehaviour):
    """Grants a role to subjects."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def default(self, obj: Object) -> None:
        """The API groups of the role and of the subjects."""
        reference = common_rules.sub_object(obj, "roleRef")
        reference["apiGroup"] = reference.get("apiGroup") or _GROUP
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup"):
                subject.pop("apiGroup", None)
                if subject.get("kind") in ("User", "Group"):
                    subject["apiGroup"] = _GROUP

    def validate_name(self, name: str) -> str:
        """Any valid path segment."""
        return name_rules.path_segment_error(name)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateRoleBinding`` and ``ValidateClusterRoleBinding``."""
        reference = obj["roleRef"]
        if reference["apiGroup"] != _GROUP:
            yield field_errors.not_supported("roleRef.apiGroup", reference["apiGroup"], [_GROUP])
        kinds = ("Role", "ClusterRole") if self._namespaced else ("ClusterRole",)
        if reference.get("kind") not in kinds:
            yield field_errors.not_supported("roleRef.kind", reference.get("kind") or "", kinds)
        if not (name := reference.get("name")):
            yield field_errors.value_required("roleRef.name")
        elif wrong := name_rules.path_segment_error(name):
            yield field_errors.invalid("roleRef.name", name, wrong)
        for index, subject in enumerate(obj.get("subjects") or ()):
            yield from _check_subject(subject, f"subjects[{index}]", namespaced=self._namespaced)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The role reference is immutable."""
        yield from self.validate(new)
        if new["roleRef"] != old["roleRef"]:
            said = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
            value = {go: new["roleRef"].get(name, "") for go, name in said.items()}
            yield field_errors.invalid("roleRef", value, "cannot change roleRef")


def _check_aggregation(aggregation: Object) -> Iterator[Cause]:
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        yield field_errors.value_required(
            path, "at least one clusterRoleSelector required if aggregationRule is non-nil"
        )
    for index, selector in enumerate(selectors):
        yield from validate_selector(selector, f"{path}[{index}]")


def _check_rule(rule: Object, path: str, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield field_errors.value_required(f"{path}.verbs", "verbs must contain at least one value")
    if rule.get("nonResourceURLs"):
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield field_errors.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield field_errors.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)
        return
    if not rule.get("apiGroups"):
        yield field_errors.value_required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield field_errors.value_required(f"{path}.resources", "resource rules must supply at least one resource")


def _check_subject(subject: Object, path: str, *, namespaced: bool) -> Iterator[Cause]:
    kind, group, name = subject.get("kind", ""), subject.get("apiGroup", ""), subject.get("name", "")
    if not name:
        yield field_errors.value_required(f"{path}.name")
    if kind == "ServiceAccount":
        if name and (wrong := name_rules.subdomain_error(name)):
            yield field_errors.invalid(f"{path}.name", name, wrong)
        if group:
            yield field_errors.not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield field_errors.value_required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        if group != _GROUP:
            yield field_errors.not_supported(f"{path}.apiGroup", group, [_GROUP])
    else:
        yield field_errors.not_supported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"])
