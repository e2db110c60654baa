"""What access reviews ask, and the answer of those that ask for rules (``pkg/registry/authorization``), pure."""

from collections.abc import Sequence

from lastcall.lab.apiserver import selectors, status
from lastcall.lab.apiserver.authorization.attributes import AccessAttributes
from lastcall.lab.apiserver.authorization.authorizer import Authorization, Authorizer
from lastcall.lab.apiserver.authorization.node import is_node
from lastcall.lab.apiserver.authorization.rbac import joined
from lastcall.lab.apiserver.request import Identity, Object

_EVERYTHING: Object = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def reviewed_user(spec: Object) -> Identity:
    """The user whom a SubjectAccessReview is about."""
    return Identity(
        spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", spec.get("extra") or {}
    )


def reviewed_attributes(user: Identity, spec: Object) -> AccessAttributes:
    """The access that a review asks about."""
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return AccessAttributes(user, path.get("verb") or "", path=path.get("path") or "/")
    asked = spec["resourceAttributes"]
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    said = {name: asked.get(name) or "" for name in names}
    return AccessAttributes(user, terms=_terms(asked.get("fieldSelector")), **said)


def reviewed_rules(authorizer: Authorizer, user: Identity, namespace: str) -> Object:
    """The status of a SelfSubjectRulesReview."""
    if authorizer.mode is Authorization.ALWAYS_ALLOW:
        return _EVERYTHING
    found = authorizer.rbac.rules(user, namespace)
    rules = [one.rule.as_object() for one in found.granted]
    errors = [*found.errors]
    if is_node(user):
        errors.insert(0, "node authorizer does not support user rule resolution")
    said: Object = {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": bool(errors),
    }
    return said | ({"evaluationError": joined(errors)} if errors else {})


def _terms(selector: Object | None) -> Sequence[selectors.Term]:
    """Requirements that cannot be understood are left out: what is asked is then more, and not less."""
    if not selector:
        return ()
    try:
        found = selectors.terms(selector.get("rawSelector") or "")
    except status.ApiError:
        return ()
    for one in selector.get("requirements") or ():
        values: Sequence[str] = one.get("values") or []
        if one.get("operator") in ("In", "NotIn") and len(values) == 1:
            found.append(selectors.Term(one.get("key") or "", one["operator"] == "In", values[0]))
    return found
