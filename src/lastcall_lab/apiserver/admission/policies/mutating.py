"""MutatingAdmissionPolicy (``k8s.io/apiserver/pkg/admission/plugin/policy/mutating``)."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from lastcall_lab.apiserver.admission import admission_reviews
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error
from lastcall_lab.apiserver.admission.policies import cel_objects, mutations
from lastcall_lab.apiserver.admission.policies.cel_objects import MutationFault
from lastcall_lab.apiserver.admission.policies.stored_policies import AdmissionPolicies, Invocation, PolicyFault
from lastcall_lab.apiserver.cel import evaluator
from lastcall_lab.apiserver.patches.shapes import OwnershipShape
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Object

POLICIES = "mutatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"

Typed = Callable[[Object, ServedResource], Object]
"""Converts an object to the types of its resource; ValueError if it does not match them."""


class MutatingPolicies(AdmissionPlugin):
    """Runs mutating policies in sequence; each sees the changes of those before it.

    Policies with reinvocationPolicy IfNeeded run again if a later one changes the object.
    """

    def __init__(
        self, policies: AdmissionPolicies, shape: Callable[[Object, ServedResource], OwnershipShape], typed: Typed
    ) -> None:
        self._policies = policies
        self._shape = shape
        self._typed = typed

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Changes ``attributes.obj`` in place."""
        found = [*self._policies.find_invocations(attributes)]
        if not found:
            return
        faults = [one for one in found if isinstance(one, PolicyFault)]
        asked = attributes.again.policies
        if attributes.again.second_round and asked.output != attributes.obj:
            asked.require_all()
        for one in found:
            if isinstance(one, Invocation):
                faults += self._one(one, attributes)
        asked.output = copy.deepcopy(attributes.obj)
        _refuse(attributes, [one for one in faults if not one.policy.fails_open])

    def _one(self, one: Invocation, attributes: AdmissionAttributes) -> list[PolicyFault]:
        again = attributes.again
        excluded, wrong = self._policies.policy_scope(one, attributes).find_unmet(one.policy.conditions)
        if excluded or (wrong and one.policy.fails_open):
            return []
        if wrong:
            return [PolicyFault(one.policy, one.binding, wrong)]
        if again.second_round and one.key not in again.policies.due:
            return []
        faults: list[PolicyFault] = []
        before = copy.deepcopy(attributes.obj)
        for mutation in one.policy.spec.get("mutations") or ():
            if attributes.obj is None:
                continue
            try:
                self._apply(mutation, one, attributes)
            except (evaluator.CelError, MutationFault) as error:
                faults.append(PolicyFault(one.policy, one.binding, str(error)))
        if before != attributes.obj:
            again.policies.require_all()
            again.wanted = True
        if one.policy.spec.get("reinvocationPolicy") == "IfNeeded":
            again.policies.asked.append(one.key)
        return faults

    def _apply(self, mutation: Mapping[str, Any], one: Invocation, attributes: AdmissionAttributes) -> None:
        """Applies one mutation. CelError or MutationFault if that fails; ApiError if the result is invalid."""
        obj, resource = attributes.obj, one.resource
        assert obj is not None
        shown = copy.deepcopy(admission_reviews.convert_for_webhook(obj, attributes, resource))
        scope = self._policies.policy_scope(one, attributes)
        if mutation["patchType"] == "JSONPatch":
            operations = cel_objects.patch_operations(scope.evaluate(mutation["jsonPatch"]["expression"]))
            result = mutations.apply_json_patch(shown, operations)
        else:
            made = scope.evaluate(mutation["applyConfiguration"]["expression"])
            result = mutations.apply_configuration(shown, made, self._shape(shown, resource))
        result = admission_reviews.convert_back(result, attributes, resource)
        try:
            result = self._typed(result, attributes.resource)
        except ValueError as error:
            raise api_errors.internal_error(str(error)) from None
        obj.clear()
        obj.update(result)
        if obj.get("apiVersion") == attributes.resource.api_version:
            attributes.resource.behaviour.default(obj)


def _refuse(attributes: AdmissionAttributes, faults: list[PolicyFault]) -> None:
    """ApiError if a policy with failurePolicy Fail could not run."""
    if not faults:
        return
    messages = [_fault_text(one) for one in faults]
    error: ApiError = refusal_error(attributes, "admission request denied by policy")
    error.message = messages[0]
    if not faults[0].why.startswith("failed to configure"):
        error.reason = "Invalid"
    error.details = {**(error.details or {}), "causes": [{"message": message} for message in messages]}
    raise error


def _fault_text(fault: PolicyFault) -> str:
    if fault.binding is None:
        return f'policy "{fault.policy.name}" denied request: {fault.why}'
    return f"policy '{fault.policy.name}' with binding '{fault.binding.name}' denied request: {fault.why}"
