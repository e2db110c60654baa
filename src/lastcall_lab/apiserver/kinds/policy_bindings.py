"""Validating- and MutatingAdmissionPolicyBindings (``pkg/apis/admissionregistration``)."""

from collections.abc import Iterable, Iterator, Sequence

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules, match_resources
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_ACTIONS = ("Audit", "Deny", "Warn")
_TWICE = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and"
    " headers serves no purpose)"
)
_EXCLUSIVE = "name and selector are mutually exclusive"


class PolicyBindingKind(KindBehaviour):
    """Puts a policy into force; ``mutating`` selects the kind of policy."""

    known_finalizers = False
    has_generation = True
    needs_revision = True

    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: Object) -> None:
        """Sets matchPolicy Equivalent, and selectors that match everything."""
        match_resources.default_resources(common_rules.sub_object(obj, "spec").get("matchResources"))

    def validate(self, obj: Object) -> Iterator[Cause]:
        """``validateValidatingAdmissionPolicyBinding`` and ``validateMutatingAdmissionPolicyBinding``."""
        spec = obj["spec"]
        policy = spec.get("policyName") or ""
        if not policy:
            yield field_errors.value_required("spec.policyName")
        elif wrong := name_rules.subdomain_error(policy):
            yield field_errors.invalid("spec.policyName", policy, wrong)
        if spec.get("paramRef") is not None:
            yield from _check_reference(spec["paramRef"], "spec.paramRef")
        if spec.get("matchResources") is not None:
            found = spec["matchResources"]
            yield from match_resources.check_resources(found, "spec.matchResources", mutating=self._mutating)
        if not self._mutating:
            yield from _check_actions(spec.get("validationActions") or [], "spec.validationActions")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The same."""
        return self.validate(new)


def _check_actions(actions: Sequence[str], path: str) -> Iterator[Cause]:
    for index, action in enumerate(actions):
        yield from common_rules.check_one_of(action, f"{path}[{index}]", *_ACTIONS)
        if action in actions[:index]:
            yield field_errors.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        yield field_errors.invalid(path, list(actions), _TWICE)
    if not actions:
        yield field_errors.value_required(path, "at least one validation action is required")


def _check_reference(reference: Object, path: str) -> Iterator[Cause]:
    """``validateParamRef``."""
    name, selector = reference.get("name") or "", reference.get("selector")
    if name:
        if wrong := name_rules.path_segment_error(name):
            yield field_errors.invalid(f"{path}.name", name, wrong)
        if selector is not None:
            yield field_errors.forbidden(f"{path}.name", _EXCLUSIVE)
    if selector is not None:
        yield from validate_selector(selector, f"{path}.selector")
        if name:
            yield field_errors.forbidden(f"{path}.selector", _EXCLUSIVE)
    if not name and selector is None:
        yield field_errors.value_required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction") or ""
    if not action:
        yield field_errors.value_required(f"{path}.parameterNotFoundAction")
    elif action not in ("Allow", "Deny"):
        yield field_errors.not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))
