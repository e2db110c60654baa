"""Impersonation: the headers that request another user, and the permission for it (pure).

``k8s.io/apiserver/pkg/endpoints/filters/impersonation``: checks the verbs of constrained impersonation first, such as
``impersonate:user-info`` together with ``impersonate-on:user-info:list``, and then the verb ``impersonate`` alone.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from lastcall.model import name_rules
from lastcall_lab.apiserver.authorization.attributes import (
    MASTERS,
    AccessAttributes,
    AccessDecision,
    forbidden_error,
)
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import UserInfo

Authorize = Callable[[AccessAttributes], AccessDecision]

_EXTRA = "impersonate-extra-"
_NODE = "authentication.kubernetes.io/node-name"
_AUTHENTICATION = "authentication.k8s.io"
_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
_ANONYMOUS = "system:anonymous"


def requested_user(headers: Mapping[str, str]) -> UserInfo | None:
    """The user in the headers; None if there is none.

    ApiError (400) if they set groups, a UID or extra fields without a user.
    """
    if not any(header.startswith("impersonate-") for header in headers):
        return None
    name, uid = headers.get("impersonate-user", ""), headers.get("impersonate-uid", "")
    groups = [one.strip() for one in headers.get("impersonate-group", "").split(",") if one.strip()]
    extra = {
        unquote(header.removeprefix(_EXTRA)).lower(): value.split(", ")
        for header, value in headers.items()
        if header.startswith(_EXTRA)
    }
    wanted = UserInfo(name, tuple(groups), uid, extra)
    if not name and (groups or uid or extra):
        raise api_errors.bad_request_error(f"requested {_in_go(wanted)} without impersonating a user name")
    return wanted if name else None


def impersonate(asked: AccessAttributes, wanted: UserInfo, authorize: Authorize) -> UserInfo:
    """The effective user of the request. ApiError (403) if the requesting user may not impersonate that user."""
    failure: api_errors.ApiError | None = None
    for mode in _modes(asked.user, wanted):
        try:
            return _by_mode(mode, asked, wanted, authorize)
        except api_errors.ApiError as error:
            failure = failure or error
    assert failure
    raise failure


def _modes(requester: UserInfo, wanted: UserInfo) -> Iterator[str]:
    """The modes of constrained impersonation for this user, and last the legacy mode (empty)."""
    node, account = _node_name(wanted.name), _account(wanted.name)
    if not wanted.uid and not wanted.groups and not wanted.extra:
        if node and _account(requester.name) and list(requester.extra.get(_NODE, ())) == [node]:
            yield "associated-node"
        if node:
            yield "arbitrary-node"
        if account:
            yield "serviceaccount"
    if not node and not account:
        yield "user-info"
    yield ""


def _by_mode(mode: str, asked: AccessAttributes, wanted: UserInfo, authorize: Authorize) -> UserInfo:
    verb = f"impersonate:{mode}" if mode else "impersonate"
    if mode:
        _require(asked._replace(verb=f"impersonate-on:{mode}:{asked.verb}"), authorize)
    for one in _parts(mode, AccessAttributes(asked.user, verb), wanted):
        _require(one, authorize)
    return UserInfo(wanted.name, _groups(mode, wanted), wanted.uid, wanted.extra)


def _parts(mode: str, asked: AccessAttributes, wanted: UserInfo) -> Iterator[AccessAttributes]:
    """The accesses to check: the name, the UID, each group, and each value of the extra fields."""
    group = _AUTHENTICATION if mode else ""
    node, account = _node_name(wanted.name), _account(wanted.name)
    if account:
        yield asked._replace(group=group, resource="serviceaccounts", namespace=account[0], name=account[1])
    elif mode and node:
        yield asked._replace(group=group, resource="nodes", name="*" if mode == "associated-node" else node)
    else:
        yield asked._replace(group=group, resource="users", name=wanted.name)
    if wanted.uid:
        yield asked._replace(group=_AUTHENTICATION, resource="uids", name=wanted.uid)
    groups = asked._replace(group=group, resource="groups")
    if mode and MASTERS in wanted.groups:
        raise forbidden_error(groups._replace(name=MASTERS), f"impersonating the {MASTERS} group is not allowed")
    for one in wanted.groups:
        yield groups._replace(name=one)
    for key, values in wanted.extra.items():
        for value in values:
            yield asked._replace(group=_AUTHENTICATION, resource="userextras", subresource=key, name=value)


def _require(asked: AccessAttributes, authorize: Authorize) -> None:
    decision = authorize(asked)
    if not decision.allowed:
        raise forbidden_error(asked, decision.reason)


def _groups(mode: str, wanted: UserInfo) -> Sequence[str]:
    """The groups from the headers, and those that follow from the user's name."""
    groups, account = [*wanted.groups], _account(wanted.name)
    if account and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
    elif mode and _node_name(wanted.name):
        groups = ["system:nodes"]
    if _UNAUTHENTICATED in groups:
        return tuple(groups)
    added = _UNAUTHENTICATED if wanted.name == _ANONYMOUS else _AUTHENTICATED
    return tuple(groups if added in groups else [*groups, added])


def _node_name(user: str) -> str:
    """The node of a kubelet user; empty for all others."""
    name = user.removeprefix("system:node:") if user.startswith("system:node:") else ""
    return "" if name_rules.subdomain_error(name) else name


def _account(user: str) -> tuple[str, str] | None:
    """Namespace and name of a service account user."""
    prefix, _, rest = user.partition("system:serviceaccount:")
    namespace, _, name = rest.partition(":")
    if prefix or name_rules.dns_label_error(namespace) or name_rules.subdomain_error(name):
        return None
    return namespace, name


def _in_go(user: UserInfo) -> str:
    """The text of Go's ``%#v``."""
    text = json.dumps
    groups = "{" + ", ".join(map(text, user.groups)) + "}" if user.groups else "(nil)"
    values = (f"{text(key)}:[]string{{{', '.join(map(text, user.extra[key]))}}}" for key in sorted(user.extra))
    extra = "{" + ", ".join(values) + "}" if user.extra else "(nil)"
    return (
        f"&user.DefaultInfo{{Name:{text(user.name)}, UID:{text(user.uid)}, Groups:[]string{groups},"
        f" Extra:map[string][]string{extra}}}"
    )
