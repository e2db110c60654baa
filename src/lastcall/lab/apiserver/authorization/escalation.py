"""No user gives away rights by roles or bindings that the user does not have (``pkg/registry/rbac``)."""

from collections.abc import Sequence
from typing import ClassVar

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.authorization.attributes import MASTERS, AccessAttributes
from lastcall.lab.apiserver.authorization.authorizer import Authorization, Authorizer
from lastcall.lab.apiserver.authorization.policy_rules import (
    ALL,
    PolicyRule,
    compacted,
    described,
    quoted,
    rules_of,
    uncovered,
)
from lastcall.lab.apiserver.authorization.rbac import GROUP, STORAGES
from lastcall.lab.apiserver.request import Object

_FULL = [PolicyRule((ALL,), (ALL,), (ALL,)), PolicyRule((ALL,), urls=(ALL,))]
_COLLECTED = ("ownerReferences", "finalizers", "managedFields")
"""What the garbage collector changes."""


class EscalationCheck(Plugin):
    """Sees Roles, ClusterRoles and their bindings after all that changes them."""

    sees: ClassVar[frozenset[str]] = STORAGES

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def mutate(self, attributes: Attributes) -> None:
        """ApiError (403) if the user would give away more than the user has."""
        obj, user = attributes.obj, attributes.user
        if self._authorizer.mode is not Authorization.RBAC or obj is None or MASTERS in user.groups:
            return
        if attributes.old is not None and _only_collected(obj, attributes.old):
            return
        if attributes.resource.plural in ("roles", "clusterroles"):
            self._role(attributes, obj)
        else:
            self._binding(attributes, obj)

    def _role(self, attributes: Attributes, role: Object) -> None:
        plural = attributes.resource.plural
        name = attributes.name if attributes.operation == "UPDATE" else ""
        if self._may(attributes, "escalate", plural, name):
            return
        self._confirm(attributes, rules_of(role))
        aggregates = _aggregates(role) or _aggregates(attributes.old or {})
        if aggregates and uncovered(self._owned(attributes), _FULL):
            raise self._refusal(attributes, "must have cluster-admin privileges to use the aggregationRule")

    def _binding(self, attributes: Attributes, binding: Object) -> None:
        reference = binding.get("roleRef") or {}
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(reference.get("kind", ""), "")
        name = reference.get("name", "")
        if not plural or not name:
            return  # what is no reference to a role is refused by the rules for bindings
        if not self._may(attributes, "bind", plural, name):
            self._confirm(attributes, self._authorizer.rbac.role_rules(reference, attributes.namespace))

    def _may(self, attributes: Attributes, verb: str, plural: str, name: str) -> bool:
        asked = AccessAttributes(attributes.user, verb, GROUP, plural, namespace=attributes.namespace, name=name)
        return self._authorizer.authorize(asked).allowed

    def _confirm(self, attributes: Attributes, rules: Sequence[PolicyRule]) -> None:
        missing = uncovered(self._owned(attributes), rules)
        if not missing:
            return
        user = attributes.user
        lines = sorted({described(rule) for rule in compacted(missing)})
        raise self._refusal(
            attributes,
            f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions not currently'
            " held:\n" + "\n".join(lines) + self._unresolved(attributes),
        )

    def _owned(self, attributes: Attributes) -> list[PolicyRule]:
        granted = self._authorizer.rbac.rules(attributes.user, attributes.namespace).granted
        return [one.rule for one in granted]

    def _unresolved(self, attributes: Attributes) -> str:
        errors = self._authorizer.rbac.rules(attributes.user, attributes.namespace).errors
        return f"; resolution errors: [{' '.join(errors)}]" if errors else ""

    def _refusal(self, attributes: Attributes, why: str) -> status.ApiError:
        name = ((attributes.obj or {}).get("metadata") or {}).get("name", "")
        return status.forbidden(attributes.resource.plural, GROUP, name, why)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(new: Object, old: Object) -> bool:
    """Whether only what the garbage collector changes has changed, or nothing."""
    return _rest(new) == _rest(old)


def _rest(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTED}
    return {**obj, "metadata": metadata}
