"""Aggregated ClusterRoles (``pkg/controller/clusterroleaggregation``)."""

from collections.abc import Iterable, Sequence

from lastcall.model.label_selector import selector_matcher
from lastcall_lab.apiserver.authorization.rbac_authorizer import CLUSTER_ROLES
from lastcall_lab.controllers.framework.actions import Decision, PatchObject
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of


class ClusterRoleAggregator:
    """Fills a ClusterRole with an ``aggregationRule`` from the rules of the ClusterRoles that it selects."""

    name = "clusterrole-aggregation"
    resources: Sequence[str] = (CLUSTER_ROLES,)

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """Every aggregated ClusterRole, because each change can affect all of them."""
        return [ref_of(CLUSTER_ROLES, one) for one in view.all(CLUSTER_ROLES) if one.get("aggregationRule")]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """A patch with the new rules if they differ."""
        role = view.get(*key)
        selectors = ((role or {}).get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        if role is None or not selectors:
            return Decision()
        rules = _aggregate_rules(key.name, selectors, view)
        return Decision() if rules == (role.get("rules") or []) else Decision((PatchObject(key, {"rules": rules}),))


def _aggregate_rules(name: str, selectors: Sequence[Object], view: View) -> list[Object]:
    """The rules of the selected ClusterRoles without duplicates, ordered by selector and then by name."""
    rules: list[Object] = []
    for selector in selectors:
        chosen = selector_matcher(selector)
        for role in sorted(view.all(CLUSTER_ROLES), key=lambda one: str(one["metadata"]["name"])):
            metadata = role["metadata"]
            if metadata["name"] != name and chosen(metadata.get("labels") or {}):
                rules += [rule for rule in role.get("rules") or () if rule not in rules]
    return rules
