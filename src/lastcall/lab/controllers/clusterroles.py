"""ClusterRoles that are made of others (``pkg/controller/clusterroleaggregation``)."""

from collections.abc import Iterable, Sequence

from lastcall.lab.apiserver.authorization.rbac import CLUSTER_ROLES
from lastcall.lab.controllers.actions import Decision, Patch
from lastcall.lab.controllers.view import Object, Ref, View, ref
from lastcall.model.label_selector import labels_of


class ClusterRoleAggregation:
    """Gives a ClusterRole with an ``aggregationRule`` the rules of all that its selectors choose."""

    name = "clusterrole-aggregation"
    resources: Sequence[str] = (CLUSTER_ROLES,)

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """Every aggregated ClusterRole: each change may concern each of them."""
        return [ref(CLUSTER_ROLES, one) for one in view.all(CLUSTER_ROLES) if one.get("aggregationRule")]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """The rules anew, if they are others."""
        role = view.get(*key)
        selectors = ((role or {}).get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        if role is None or not selectors:
            return Decision()
        rules = _aggregated(key.name, selectors, view)
        return Decision() if rules == (role.get("rules") or []) else Decision((Patch(key, {"rules": rules}),))


def _aggregated(name: str, selectors: Sequence[Object], view: View) -> list[Object]:
    """The rules of the others, each once, by selector and then by name."""
    rules: list[Object] = []
    for selector in selectors:
        chosen = labels_of(selector)
        for role in sorted(view.all(CLUSTER_ROLES), key=lambda one: str(one["metadata"]["name"])):
            metadata = role["metadata"]
            if metadata["name"] != name and chosen(metadata.get("labels") or {}):
                rules += [rule for rule in role.get("rules") or () if rule not in rules]
    return rules
