"""The CEL variable ``authorizer``, for access checks in expressions (``k8s.io/apiserver/pkg/cel/library/authz.go``).

The functions return maps with keys that begin with ``@``, which no object has.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lastcall.model import name_rules
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.authorization.attributes import AccessAttributes, AccessDecision
from lastcall_lab.apiserver.routing import request_selectors
from lastcall_lab.apiserver.routing.request_selectors import FieldTerm
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, UserInfo

Authorize = Callable[[AccessAttributes], AccessDecision]


class CelAuthorizer:
    """The variable ``authorizer`` for one request, and the functions that it needs."""

    def __init__(self, authorize: Authorize, attributes: AdmissionAttributes) -> None:
        self._authorize = authorize
        self._users = [attributes.user]
        resource = {
            "@group": attributes.resource.group,
            "@resource": attributes.resource.plural,
            "@subresource": attributes.subresource,
            "@namespace": attributes.namespace,
            "@name": attributes.name,
            "@user": 0,
        }
        self.variable: Object = {"@user": 0, "requestResource": resource}

    @property
    def cel_functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions by their names in expressions."""
        with_text = ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
        return {
            "path": _path,
            "group": lambda authorizer, group: {"@group": group, "@user": authorizer["@user"]},
            "serviceAccount": self._service_account,
            "resource": _resource,
            **{name: _setter(f"@{name}") for name in with_text},
            "check": self._check,
            "allowed": lambda decision: decision["@allowed"],
            "reason": lambda decision: decision["@reason"],
            "errored": lambda decision: bool(decision["@error"]),
            "error": lambda decision: decision["@error"],
        }

    def _service_account(self, _: Object, namespace: str, name: str) -> Object:
        if name_rules.subdomain_error(name):
            raise ValueError("Invalid service account name")
        if name_rules.dns_label_error(namespace):
            raise ValueError("Invalid service account namespace")
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        self._users.append(UserInfo(f"system:serviceaccount:{namespace}:{name}", groups))
        return {"@user": len(self._users) - 1}

    def _check(self, asked: Object, verb: str) -> Object:
        access = AccessAttributes(
            self._users[asked["@user"]],
            verb,
            asked.get("@group", ""),
            asked.get("@resource", ""),
            asked.get("@subresource", ""),
            asked.get("@namespace", ""),
            asked.get("@name", ""),
            asked.get("@path", ""),
            _terms(asked.get("@fieldSelector", "")),
        )
        decision = self._authorize(access)
        return {"@allowed": decision.allowed, "@reason": decision.reason, "@error": ""}


def _terms(selector: str) -> Sequence[FieldTerm]:
    """The requirements of a field selector; none if it cannot be parsed."""
    try:
        return request_selectors.parse_field_terms(selector)
    except api_errors.ApiError:
        return ()


def _path(authorizer: Object, path: str) -> Object:
    if not path.strip():
        raise ValueError("path must not be empty")
    return {"@path": path, "@user": authorizer["@user"]}


def _resource(group: Object, resource: str) -> Object:
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return {**group, "@resource": resource}


def _setter(key: str) -> Callable[[Object, str], Object]:
    return lambda check, text: {**check, key: text}
