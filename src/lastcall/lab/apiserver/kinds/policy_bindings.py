"""Validating- and MutatingAdmissionPolicyBindings (``pkg/apis/admissionregistration``)."""

from collections.abc import Iterable, Iterator, Sequence

from lastcall.lab.apiserver import fields, names
from lastcall.lab.apiserver.kinds import match_resources, rules
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.label_selectors import validate_selector
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

_ACTIONS = ("Audit", "Deny", "Warn")
_TWICE = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and"
    " headers serves no purpose)"
)
_EXCLUSIVE = "name and selector are mutually exclusive"


class PolicyBinding(Behaviour):
    """Puts a policy into force; ``mutating`` says of which kind."""

    known_finalizers = False
    has_generation = True
    needs_revision = True

    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: Object) -> None:
        """It matches equivalent resources, and everything by its selectors."""
        match_resources.default_resources(rules.part(obj, "spec").get("matchResources"))

    def validate(self, obj: Object) -> Iterator[Cause]:
        """``validateValidatingAdmissionPolicyBinding`` and ``validateMutatingAdmissionPolicyBinding``."""
        spec = obj["spec"]
        policy = spec.get("policyName") or ""
        if not policy:
            yield fields.required("spec.policyName")
        elif wrong := names.subdomain(policy):
            yield fields.invalid("spec.policyName", policy, wrong)
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
        yield from rules.one_of(action, f"{path}[{index}]", *_ACTIONS)
        if action in actions[:index]:
            yield fields.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        yield fields.invalid(path, list(actions), _TWICE)
    if not actions:
        yield fields.required(path, "at least one validation action is required")


def _check_reference(reference: Object, path: str) -> Iterator[Cause]:
    """``validateParamRef``."""
    name, selector = reference.get("name") or "", reference.get("selector")
    if name:
        if wrong := names.path_segment(name):
            yield fields.invalid(f"{path}.name", name, wrong)
        if selector is not None:
            yield fields.forbidden(f"{path}.name", _EXCLUSIVE)
    if selector is not None:
        yield from validate_selector(selector, f"{path}.selector")
        if name:
            yield fields.forbidden(f"{path}.selector", _EXCLUSIVE)
    if not name and selector is None:
        yield fields.required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction") or ""
    if not action:
        yield fields.required(f"{path}.parameterNotFoundAction")
    elif action not in ("Allow", "Deny"):
        yield fields.not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))
