"""Brings the roles and bindings of a new cluster into a store, and up to date (``auth/rbac/reconciliation``).

What somebody has added stays; what is missing comes back, unless the annotation says that the object is to be left alone.
"""

from collections.abc import Iterable
from random import Random
from typing import Any

from lastcall.lab.apiserver import meta
from lastcall.lab.apiserver.authorization import bootstrap
from lastcall.lab.apiserver.authorization.policy_rules import PolicyRule, rules_of, uncovered
from lastcall.lab.apiserver.authorization.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.store import Key, Store


def reconcile(store: Store, objects: Iterable[Object], *, wall: float, random: Random) -> None:
    """Makes and mends them; an object that is as it should be is not written."""
    for expected in objects:
        metadata = expected["metadata"]
        resource, reconciled = _KINDS[expected["kind"]]
        key = Key(resource, metadata.get("namespace", ""), metadata["name"])
        created = {"uid": meta.new_uid(random), "creationTimestamp": meta.timestamp(wall)}
        stored = store.get(key)
        if stored is None:
            store.put(key, {**expected, "metadata": metadata | created}, expected=None)
            continue
        existing = stored.object()
        if (existing["metadata"].get("annotations") or {}).get(bootstrap.AUTO_UPDATE) == "false":
            continue
        if existing.get("roleRef") != expected.get("roleRef"):  # a binding to another role is made anew
            store.delete(key, existing, expected=stored.revision)
            store.put(key, {**expected, "metadata": metadata | created}, expected=None)
            continue
        new = reconciled(existing, expected)
        if new != existing:
            store.put(key, new, expected=stored.revision)


def reconciled_role(existing: Object, expected: Object) -> Object:
    """With the labels, annotations, rules and selectors that are missing (``computeReconciledRole``)."""
    role = {**existing, "metadata": _merged(existing["metadata"], expected["metadata"])}
    missing = uncovered(rules_of(existing), [PolicyRule.of(one) for one in expected["rules"] or ()])
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


def reconciled_binding(existing: Object, expected: Object) -> Object:
    """With the labels, annotations and subjects that are missing (``computeReconciledRoleBinding``)."""
    binding = {**existing, "metadata": _merged(existing["metadata"], expected["metadata"])}
    there = existing.get("subjects") or []
    if more := [one for one in expected.get("subjects") or () if one not in there]:
        binding["subjects"] = [*there, *more]
    return binding


def _merged(existing: Object, expected: Object) -> Object:
    """What somebody else has set is left as it is (``merge``)."""
    result: dict[str, Any] = dict(existing)
    for name in ("labels", "annotations"):
        if values := {**(expected.get(name) or {}), **(existing.get(name) or {})}:
            result[name] = values
    return result


_KINDS = {
    "ClusterRole": (CLUSTER_ROLES, reconciled_role),
    "ClusterRoleBinding": (CLUSTER_ROLE_BINDINGS, reconciled_binding),
    "Role": (ROLES, reconciled_role),
    "RoleBinding": (ROLE_BINDINGS, reconciled_binding),
}
"""Where the objects of each kind are, and how one is brought up to date."""
