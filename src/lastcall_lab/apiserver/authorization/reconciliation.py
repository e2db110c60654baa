"""Creates and updates the bootstrap roles and bindings in a store (``auth/rbac/reconciliation``).

Additions stay and missing parts return, unless the annotation opts an object out.
"""

from collections.abc import Iterable
from random import Random
from typing import Any

from lastcall_lab.apiserver.authorization import bootstrap
from lastcall_lab.apiserver.authorization.policy_rules import PolicyRule, find_uncovered, rules_of
from lastcall_lab.apiserver.authorization.rbac_authorizer import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
)
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object


def reconcile_bootstrap(store: Store, objects: Iterable[Object], *, wall: float, random: Random) -> None:
    """Creates and updates them; a correct object is not written."""
    for expected in objects:
        metadata = expected["metadata"]
        resource, reconciled = _KINDS[expected["kind"]]
        key = StorageKey(resource, metadata.get("namespace", ""), metadata["name"])
        created = {"uid": object_meta.new_uid(random), "creationTimestamp": object_meta.timestamp(wall)}
        stored = store.get(key)
        if stored is None:
            store.put(key, {**expected, "metadata": metadata | created}, expected=None)
            continue
        existing = stored.to_object()
        if (existing["metadata"].get("annotations") or {}).get(bootstrap.AUTO_UPDATE) == "false":
            continue
        if existing.get("roleRef") != expected.get("roleRef"):  # roleRef is immutable
            store.delete(key, existing, expected=stored.revision)
            store.put(key, {**expected, "metadata": metadata | created}, expected=None)
            continue
        new = reconciled(existing, expected)
        if new != existing:
            store.put(key, new, expected=stored.revision)


def reconcile_role(existing: Object, expected: Object) -> Object:
    """Adds missing labels, annotations, rules and selectors (``computeReconciledRole``)."""
    role = {**existing, "metadata": _merge_missing(existing["metadata"], expected["metadata"])}
    missing = find_uncovered(rules_of(existing), [PolicyRule.of(one) for one in expected["rules"] or ()])
    if missing:
        role["rules"] = [*(existing.get("rules") or ()), *(rule.as_object() for rule in missing)]
    if "aggregationRule" not in expected:
        role.pop("aggregationRule", None)
        return role
    there = (existing.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    wanted = expected["aggregationRule"]["clusterRoleSelectors"]
    if more := [one for one in wanted if one not in there]:
        role["aggregationRule"] = {"clusterRoleSelectors": [*there, *more]}
    return role


def reconcile_binding(existing: Object, expected: Object) -> Object:
    """Adds missing labels, annotations and subjects (``computeReconciledRoleBinding``)."""
    binding = {**existing, "metadata": _merge_missing(existing["metadata"], expected["metadata"])}
    there = existing.get("subjects") or []
    if more := [one for one in expected.get("subjects") or () if one not in there]:
        binding["subjects"] = [*there, *more]
    return binding


def _merge_missing(existing: Object, expected: Object) -> Object:
    """Keeps existing values (``merge``)."""
    result: dict[str, Any] = dict(existing)
    for name in ("labels", "annotations"):
        if values := {**(expected.get(name) or {}), **(existing.get(name) or {})}:
            result[name] = values
    return result


_KINDS = {
    "ClusterRole": (CLUSTER_ROLES, reconcile_role),
    "ClusterRoleBinding": (CLUSTER_ROLE_BINDINGS, reconcile_binding),
    "Role": (ROLES, reconcile_role),
    "RoleBinding": (ROLE_BINDINGS, reconcile_binding),
}
"""Per kind: where its objects are stored, and the function that updates one."""
