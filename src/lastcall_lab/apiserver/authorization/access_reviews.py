"""Parses access reviews, and answers rules reviews (``pkg/registry/authorization``), pure."""

from collections.abc import Sequence

from lastcall_lab.apiserver.authorization.attributes import AccessAttributes
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode, Authorizer
from lastcall_lab.apiserver.authorization.node_authorizer import is_node
from lastcall_lab.apiserver.authorization.rbac_authorizer import join_errors
from lastcall_lab.apiserver.routing import request_selectors
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, UserInfo

_EVERYTHING: Object = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def user_under_review(spec: Object) -> UserInfo:
    """The user of a SubjectAccessReview."""
    return UserInfo(
        spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", spec.get("extra") or {}
    )


def attributes_under_review(user: UserInfo, spec: Object) -> AccessAttributes:
    """The access that a review asks about."""
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return AccessAttributes(user, path.get("verb") or "", path=path.get("path") or "/")
    asked = spec["resourceAttributes"]
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    said = {name: asked.get(name) or "" for name in names}
    return AccessAttributes(user, terms=_terms(asked.get("fieldSelector")), **said)


def rules_review_status(authorizer: Authorizer, user: UserInfo, namespace: str) -> Object:
    """The status of a SelfSubjectRulesReview."""
    if authorizer.mode is AuthorizationMode.ALWAYS_ALLOW:
        return _EVERYTHING
    found = authorizer.rbac.rules_of_user(user, namespace)
    rules = [one.rule.as_object() for one in found.granted]
    errors = [*found.errors]
    if is_node(user):
        errors.insert(0, "node authorizer does not support user rule resolution")
    said: Object = {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": bool(errors),
    }
    return said | ({"evaluationError": join_errors(errors)} if errors else {})


def _terms(selector: Object | None) -> Sequence[request_selectors.FieldTerm]:
    """Omits invalid requirements: the review then asks for more access, not less."""
    if not selector:
        return ()
    try:
        found = request_selectors.parse_field_terms(selector.get("rawSelector") or "")
    except api_errors.ApiError:
        return ()
    for one in selector.get("requirements") or ():
        values: Sequence[str] = one.get("values") or []
        if one.get("operator") in ("In", "NotIn") and len(values) == 1:
            found.append(request_selectors.FieldTerm(one.get("key") or "", one["operator"] == "In", values[0]))
    return found
