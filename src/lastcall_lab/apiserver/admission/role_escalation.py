"""Prevents privilege escalation: roles and bindings may grant only rights that the user has (``pkg/registry/rbac``)."""

from collections.abc import Sequence
from typing import ClassVar

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.authorization.attributes import MASTERS, AccessAttributes
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode, Authorizer
from lastcall_lab.apiserver.authorization.policy_rules import (
    ALL,
    PolicyRule,
    compact_rules,
    describe_rule,
    find_uncovered,
    quote_all,
    rules_of,
)
from lastcall_lab.apiserver.authorization.rbac_authorizer import GROUP, STORAGES
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

_FULL = [PolicyRule((ALL,), (ALL,), (ALL,)), PolicyRule((ALL,), urls=(ALL,))]
_COLLECTED = ("ownerReferences", "finalizers", "managedFields")
"""The fields that the garbage collector writes."""


class EscalationCheck(AdmissionPlugin):
    """Checks Roles, ClusterRoles and their bindings after all mutating plugins."""

    sees: ClassVar[frozenset[str]] = STORAGES

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """ApiError (403) if the user would grant more than the user has."""
        obj, user = attributes.obj, attributes.user
        if self._authorizer.mode is not AuthorizationMode.RBAC or obj is None or MASTERS in user.groups:
            return
        if attributes.old is not None and _only_collected(obj, attributes.old):
            return
        if attributes.resource.plural in ("roles", "clusterroles"):
            self._role(attributes, obj)
        else:
            self._binding(attributes, obj)

    def _role(self, attributes: AdmissionAttributes, role: Object) -> None:
        plural = attributes.resource.plural
        name = attributes.name if attributes.operation == "UPDATE" else ""
        if self._may(attributes, "escalate", plural, name):
            return
        self._confirm(attributes, rules_of(role))
        aggregates = _aggregates(role) or _aggregates(attributes.old or {})
        if aggregates and find_uncovered(self._rules_of_user(attributes), _FULL):
            raise self._refusal(attributes, "must have cluster-admin privileges to use the aggregationRule")

    def _binding(self, attributes: AdmissionAttributes, binding: Object) -> None:
        reference = binding.get("roleRef") or {}
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(reference.get("kind", ""), "")
        name = reference.get("name", "")
        if not plural or not name:
            return  # validation of bindings rejects invalid role references
        if not self._may(attributes, "bind", plural, name):
            self._confirm(attributes, self._authorizer.rbac.role_rules(reference, attributes.namespace))

    def _may(self, attributes: AdmissionAttributes, verb: str, plural: str, name: str) -> bool:
        asked = AccessAttributes(attributes.user, verb, GROUP, plural, namespace=attributes.namespace, name=name)
        return self._authorizer.authorize(asked).allowed

    def _confirm(self, attributes: AdmissionAttributes, rules: Sequence[PolicyRule]) -> None:
        missing = find_uncovered(self._rules_of_user(attributes), rules)
        if not missing:
            return
        user = attributes.user
        lines = sorted({describe_rule(rule) for rule in compact_rules(missing)})
        raise self._refusal(
            attributes,
            f'user "{user.name}" (groups={quote_all(user.groups)}) is attempting to grant RBAC permissions not currently'
            " held:\n" + "\n".join(lines) + self._unresolved_rules(attributes),
        )

    def _rules_of_user(self, attributes: AdmissionAttributes) -> list[PolicyRule]:
        granted = self._authorizer.rbac.rules_of_user(attributes.user, attributes.namespace).granted
        return [one.rule for one in granted]

    def _unresolved_rules(self, attributes: AdmissionAttributes) -> str:
        errors = self._authorizer.rbac.rules_of_user(attributes.user, attributes.namespace).errors
        return f"; resolution errors: [{' '.join(errors)}]" if errors else ""

    def _refusal(self, attributes: AdmissionAttributes, why: str) -> api_errors.ApiError:
        name = ((attributes.obj or {}).get("metadata") or {}).get("name", "")
        return api_errors.forbidden_error(attributes.resource.plural, GROUP, name, why)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(new: Object, old: Object) -> bool:
    """Whether nothing changed, or only the fields that the garbage collector writes."""
    return _rest(new) == _rest(old)


def _rest(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTED}
    return {**obj, "metadata": metadata}
