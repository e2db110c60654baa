"""The RBAC authorizer: bindings of roles to users, groups and service accounts (``plugin/pkg/auth/authorizer/rbac``)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lastcall_lab.apiserver.authorization.attributes import AccessAttributes, AccessDecision
from lastcall_lab.apiserver.authorization.policy_rules import PolicyRule, rules_of
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredChange
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, UserInfo

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS = f"clusterroles.{GROUP}", f"clusterrolebindings.{GROUP}"
ROLES, ROLE_BINDINGS = f"roles.{GROUP}", f"rolebindings.{GROUP}"
STORAGES = frozenset({CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS})

_REMEMBERED = 10_000
"""The number of cached rule sets by user and namespace; they are valid until a role or binding changes."""


class GrantedRule(NamedTuple):
    """A rule that a user has, and a description of the binding that grants it."""

    rule: PolicyRule
    source: str


class UserRules(NamedTuple):
    """All rights of a user in a namespace, and the errors of bindings to missing roles."""

    granted: Sequence[GrantedRule]
    errors: Sequence[str]


class _BoundRole(NamedTuple):
    place: int
    """The position of its binding."""
    subject: int
    """The position of the subject in the binding."""
    reference: Object
    namespace: str
    source: str


class RbacAuthorizer:
    """Decides by the current roles and bindings in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bound: dict[str, dict[tuple[str, str], list[_BoundRole]]] = {}
        self._remembered: dict[tuple[str, tuple[str, ...], str], UserRules] = {}

    def handle_change(self, change: StoredChange) -> None:
        """Handles every change of the store."""
        if change.new.key.resource in STORAGES:
            self._bound.clear()
            self._remembered.clear()

    def authorize(self, asked: AccessAttributes) -> AccessDecision:
        """Whether a rule allows the access, and the reason."""
        found = self.rules_of_user(asked.user, asked.namespace)
        for rule, source in found.granted:
            if rule.allows(asked):
                return AccessDecision(True, f"RBAC: allowed by {source}")
        return AccessDecision(False, f"RBAC: {join_errors(found.errors)}" if found.errors else "")

    def rules_of_user(self, user: UserInfo, namespace: str) -> UserRules:
        """All rules of a user: cluster-wide ones, and those of the namespace if given."""
        key = (user.name, tuple(user.groups), namespace)
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            found = self._remembered[key] = self._find(user, namespace)
        return found

    def role_rules(self, reference: Object, namespace: str) -> list[PolicyRule]:
        """The rules of the role that a binding in ``namespace`` refers to. ApiError (404) if there is none."""
        name = reference.get("name", "")
        resource, where = (ROLES, namespace) if reference.get("kind") == "Role" else (CLUSTER_ROLES, "")
        stored = self._store.get(StorageKey(resource, where, name))
        if stored is None:
            raise api_errors.not_found_error(resource.partition(".")[0], GROUP, name)
        return rules_of(stored.to_object())

    def _find(self, user: UserInfo, namespace: str) -> UserRules:
        granted: list[GrantedRule] = []
        errors: list[str] = []
        for bound in self._roles_of(user, namespace):
            try:
                rules = self.role_rules(bound.reference, bound.namespace)
            except api_errors.ApiError:
                kind, name = bound.reference["kind"].lower(), bound.reference["name"]
                errors.append(f'{kind}.{GROUP} "{name}" not found')
                continue
            granted += [GrantedRule(rule, bound.source) for rule in rules]
        return UserRules(granted, errors)

    def _roles_of(self, user: UserInfo, namespace: str) -> Iterator[_BoundRole]:
        """Roles from cluster-wide bindings, then from the namespace's bindings; once per binding."""
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for where in ("", namespace) if namespace else ("",):
            bindings = self._bindings(where)
            found = sorted(bound for subject in subjects for bound in bindings.get(subject, ()))
            places = [bound.place for bound in found]
            yield from (one for before, one in zip([-1, *places], found, strict=False) if one.place != before)

    def _bindings(self, namespace: str) -> dict[tuple[str, str], list[_BoundRole]]:
        """The roles per subject, from the cluster's bindings or those of a namespace."""
        found = self._bound.get(namespace)
        if found is None:
            found = self._bound[namespace] = {}
            resource = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
            for place, stored in enumerate(self._store.objects(resource, namespace)):
                binding = stored.to_object()
                for index, subject in enumerate(binding.get("subjects") or ()):
                    if who := _who(subject, namespace):
                        source = _source(binding, subject, namespace)
                        bound = _BoundRole(place, index, binding["roleRef"], namespace, source)
                        found.setdefault(who, []).append(bound)
        return found


def join_errors(errors: Sequence[str]) -> str:
    """Joins errors into one text (``utilerrors.Aggregate``)."""
    different = list(dict.fromkeys(errors))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def _who(subject: Object, namespace: str) -> tuple[str, str] | None:
    """The subject as a user or a group; None for other subjects."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind in ("User", "Group"):
        return kind, name
    where = subject.get("namespace") or namespace
    return ("User", f"system:serviceaccount:{where}:{name}") if kind == "ServiceAccount" and where else None


def _source(binding: Object, subject: Object, namespace: str) -> str:
    """The binding's description in the reason of a decision."""
    name, reference = binding["metadata"]["name"], binding["roleRef"]
    kind, who = subject["kind"], subject.get("name", "")
    if kind == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    binder = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
    return f'{binder} of {reference.get("kind", "")} "{reference.get("name", "")}" to {kind} "{who}"'
