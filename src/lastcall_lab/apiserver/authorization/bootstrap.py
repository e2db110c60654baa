"""The bootstrap roles and bindings of every cluster, as objects (``rbac/bootstrappolicy``), pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from lastcall_lab.apiserver.authorization.bootstrap_roles import CLUSTER_ROLES, ROLES
from lastcall_lab.apiserver.authorization.policy_rules import PolicyRule
from lastcall_lab.apiserver.authorization.rbac_authorizer import GROUP
from lastcall_lab.apiserver.values.request import Object

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""The annotation that, if false, excludes an object from reconciliation."""

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_AGGREGATED = ("admin", "edit", "view")
_AGGREGATES: Mapping[str, str] = {
    "edit": "admin",
    "view": "edit",
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
}
"""The role into which another one is aggregated."""

_READ = ("get", "list", "watch")
_WORDS: Mapping[str, Sequence[str]] = {
    "read": _READ,
    "write": ("create", "delete", "deletecollection", "patch", "update"),
}
_RECORD = PolicyRule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",))

_GROUPS: Mapping[str, Sequence[str]] = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:monitoring": ("system:monitoring",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
    "system:service-account-issuer-discovery": ("system:serviceaccounts",),
}
_USERS: Mapping[str, Sequence[str]] = {
    "system:kube-controller-manager": ("system:kube-controller-manager",),
    "system:kube-scheduler": ("system:kube-scheduler",),
    "system:node-proxier": ("system:kube-proxy",),
    "system:volume-scheduler": ("system:kube-scheduler",),
}
_CONTROLLER = "system:controller:"
_SYSTEM = "kube-system"


@lru_cache(maxsize=1)
def node_rules() -> Sequence[PolicyRule]:
    """The rights of every kubelet, whatever its pods are (``bootstrappolicy.NodeRules``)."""
    return dict(_read(CLUSTER_ROLES))["system:node"]


def bootstrap_objects() -> list[Object]:
    """Private copies of all objects, in an order in which they can be created."""
    objects: list[Object] = msgspec.json.decode(_encoded_objects())
    return objects


@lru_cache(maxsize=1)
def _encoded_objects() -> bytes:
    """To read the short form takes ten times as long."""
    return msgspec.json.encode([*cluster_roles(), *cluster_role_bindings(), *namespaced_roles(), *role_bindings()])


def cluster_roles() -> Iterator[Object]:
    """ClusterRoles without server-set fields. Aggregated ones have no rules yet."""
    for name, rules in sorted([*_read(CLUSTER_ROLES), *((name, []) for name in _AGGREGATED)]):
        labels = {f"{_AGGREGATE}{_AGGREGATES[name]}": "true"} if name in _AGGREGATES else {}
        role = _object("ClusterRole", name, labels=labels) | {"rules": [rule.as_object() for rule in rules] or None}
        if name in _AGGREGATED:
            selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
            role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
        yield role


def cluster_role_bindings() -> Iterator[Object]:
    """ClusterRoleBindings, in the same form."""
    groups = [_binding(name, [_group(one) for one in who]) for name, who in _GROUPS.items()]
    users = [_binding(name, [_user(one) for one in who]) for name, who in _USERS.items()]
    others = [_binding("system:node", []), _binding("system:kube-dns", [_account("kube-dns")])]
    controllers = [name for name, _ in _read(CLUSTER_ROLES) if name.startswith(_CONTROLLER)]
    accounts = [_binding(name, [_account(name.removeprefix(_CONTROLLER))]) for name in controllers]
    yield from sorted([*groups, *users, *others, *accounts], key=lambda binding: str(binding["metadata"]["name"]))


def namespaced_roles() -> Iterator[Object]:
    """Roles, in the same form."""
    for place, rules in _read(ROLES):
        namespace, _, name = place.partition("/")
        yield _object("Role", name, namespace) | {"rules": [rule.as_object() for rule in rules]}


def role_bindings() -> Iterator[Object]:
    """RoleBindings, in the same form."""
    leaders = {
        "kube-controller-manager": ("kube-controller-manager", "leader-election-controller"),
        "kube-scheduler": ("kube-scheduler",),
    }
    readers = [_user(f"system:{name}") for name in leaders]
    reader = "extension-apiserver-authentication-reader"
    yield _binding(reader, readers, _SYSTEM) | {"metadata": _object("", f"system::{reader}", _SYSTEM)["metadata"]}
    for leader, accounts in leaders.items():
        subjects = [_user(f"system:{leader}"), *(_account(one) for one in accounts)]
        yield _binding(f"system::leader-locking-{leader}", subjects, _SYSTEM)
    for place, _ in _read(ROLES):
        namespace, _, name = place.partition("/")
        if name.startswith(_CONTROLLER):
            yield _binding(name, [_account(name.removeprefix(_CONTROLLER))], namespace)


# -- objects -----------------------------------------------------------------------------------------------------------


def _object(kind: str, name: str, namespace: str = "", *, labels: Mapping[str, str] | None = None) -> Object:
    metadata: Object = {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **(labels or {})},
        "annotations": {AUTO_UPDATE: "true"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata}


def _binding(role: str, subjects: Sequence[Object], namespace: str = "") -> Object:
    """A binding to the role of the same name."""
    prefix = "" if namespace else "Cluster"
    binding = _object(f"{prefix}RoleBinding", role, namespace)
    binding["roleRef"] = {"apiGroup": GROUP, "kind": f"{prefix}Role", "name": role}
    return binding | ({"subjects": list(subjects)} if subjects else {})


def _user(name: str) -> Object:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def _group(name: str) -> Object:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def _account(name: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": _SYSTEM}


# -- the short form ----------------------------------------------------------------------------------------------------


def _read(text: str) -> Iterator[tuple[str, list[PolicyRule]]]:
    """Parses the names of the roles and their rules."""
    for part in text.split("\n[")[1:]:
        name, _, lines = part.partition("]\n")
        yield name, [_rule(line) for line in lines.replace("\n  ", " ").splitlines()]


def _rule(line: str) -> PolicyRule:
    if line == "record":
        return _RECORD
    words, _, rest = line.partition(" ")
    verbs = tuple(sorted(verb for word in words.split(",") for verb in _WORDS.get(word, (word,))))
    if ": " not in rest:
        return PolicyRule(verbs, urls=tuple(rest.split()))
    groups, _, rest = rest.partition(": ")
    resources, _, named = rest.partition(" = ")
    named_groups = tuple("" if group == "core" else group for group in groups.split(","))
    return PolicyRule(verbs, named_groups, tuple(resources.split()), tuple(named.split()))
