"""ValidatingAdmissionPolicy (``k8s.io/apiserver/pkg/admission/plugin/policy/validating``)."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error
from lastcall_lab.apiserver.admission.policies.expressions import PolicyScope
from lastcall_lab.apiserver.admission.policies.stored_policies import AdmissionPolicies, Invocation, PolicyFault
from lastcall_lab.apiserver.cel import evaluator
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Object

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"

_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024
_FAILURE = "validation.policy.admission.k8s.io/validation_failure"


class PolicyViolation(NamedTuple):
    """A validation that is false or fails to evaluate. ``place`` is its index in the policy."""

    message: str
    reason: str = "Invalid"
    place: int = 0


class ValidatingPolicies(AdmissionPlugin):
    """Runs all matching policies; the first violation with a denying binding rejects the request."""

    def __init__(self, policies: AdmissionPolicies) -> None:
        self._policies = policies

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Checks the object as it will be stored."""
        denials: list[ApiError] = []
        notes: dict[str, list[str]] = {}
        for one in self._policies.find_invocations(attributes):
            if isinstance(one, PolicyFault):
                if not one.policy.fails_open:
                    binding = one.binding.name if one.binding else None
                    denials.append(_denial(attributes, one.policy.name, binding, PolicyViolation(one.why)))
                continue
            denials += self._judge(one, attributes, notes)
        attributes.annotations.update({key: ", ".join(values) for key, values in notes.items()})
        if denials:
            raise denials[0]

    def _judge(
        self, one: Invocation, attributes: AdmissionAttributes, notes: dict[str, list[str]]
    ) -> Iterator[ApiError]:
        scope = self._policies.policy_scope(one, attributes)
        policy, binding = one.policy, one.binding
        excluded, wrong = scope.find_unmet(policy.conditions)
        if excluded:
            return
        if wrong:
            violations: Sequence[PolicyViolation] = [] if policy.fails_open else [PolicyViolation(wrong)]
        else:
            messages = self._policies.policy_scope(one, attributes, authorizer=False)
            violations = [*_violations(one, scope, messages)]
        for violation in violations:
            if _carried_out(violation, one, attributes):
                yield _denial(attributes, policy.name, binding.name, violation)
        if not wrong:
            for why in _annotate(one, scope, notes):
                yield _denial(attributes, policy.name, binding.name, PolicyViolation(why))


def _violations(one: Invocation, scope: PolicyScope, messages: PolicyScope) -> Iterator[PolicyViolation]:
    for index, validation in enumerate(one.policy.spec.get("validations") or ()):
        try:
            holds = scope.evaluate(validation["expression"])
        except evaluator.CelError as error:
            if not one.policy.fails_open:
                yield PolicyViolation(str(error), place=index)
            continue
        if holds is not True:
            yield PolicyViolation(_message(validation, messages), validation.get("reason") or "Invalid", index)


def _message(validation: Object, scope: PolicyScope) -> str:
    """The message: from the message expression, the message text, or the validation itself."""
    said: Any = ""
    if validation.get("messageExpression"):
        try:
            said = scope.evaluate(validation["messageExpression"])
        except evaluator.CelError:
            said = ""
    text = said.strip() if isinstance(said, str) else ""
    if "\n" in text or len(text) > _LONGEST_MESSAGE:
        text = ""
    return text or (validation.get("message") or "").strip() or f"failed expression: {validation['expression'].strip()}"


def _carried_out(violation: PolicyViolation, one: Invocation, attributes: AdmissionAttributes) -> bool:
    """Warns and audits as the binding demands; returns whether it denies."""
    actions = one.binding.spec.get("validationActions") or ()
    policy, binding = one.policy.name, one.binding.name
    if "Warn" in actions:
        attributes.warnings.append(
            f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {violation.message}"
        )
    if "Audit" in actions:
        failure = {
            "message": violation.message,
            "policy": one.binding.policy,
            "binding": binding,
            "expressionIndex": violation.place,
            "validationActions": list(actions),
        }
        attributes.annotations[_FAILURE] = json.dumps([failure], separators=(",", ":"))
    return "Deny" in actions


def _annotate(one: Invocation, scope: PolicyScope, notes: dict[str, list[str]]) -> Iterator[str]:
    """Adds the policy's audit annotations, and the errors of those that fail to evaluate."""
    for annotation in one.policy.spec.get("auditAnnotations") or ():
        expression = annotation["valueExpression"]
        try:
            value = scope.evaluate(expression)
        except evaluator.CelError as error:
            if not one.policy.fails_open:
                yield str(error)
            continue
        if value is None:
            continue
        if not isinstance(value, str):
            yield (
                f"valueExpression '{expression}' resulted in unsupported return type: {type(value).__name__}."
                " Return type must be either string or null."
            )
            continue
        noted = notes.setdefault(f"{one.policy.name}/{annotation['key']}", [])
        text = value.strip()[:_LONGEST_ANNOTATION]
        if text and text not in noted:
            noted.append(text)


def _denial(attributes: AdmissionAttributes, policy: str, binding: str | None, violation: PolicyViolation) -> ApiError:
    through = f" with binding '{binding}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy}'{through} denied request: {violation.message}"
    error = refusal_error(attributes, message)
    error.reason, error.code = violation.reason, _CODES.get(violation.reason, 422)
    error.details = {**(error.details or {}), "causes": [{"message": message}]}
    return error
