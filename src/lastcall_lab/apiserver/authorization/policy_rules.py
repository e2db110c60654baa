"""RBAC rules: what a rule allows, whether rules cover others, and their text in messages (pure).

``pkg/apis/rbac/v1/evaluation_helpers.go``, ``component-helpers/auth/rbac/validation`` and
``pkg/registry/rbac/validation/policy_compact.go``.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lastcall_lab.apiserver.authorization.attributes import AccessAttributes
from lastcall_lab.apiserver.values.request import Object

ALL = "*"


class PolicyRule(NamedTuple):
    """One rule of a Role, about resources in API groups or about non-resource paths (``urls``)."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, obj: Object) -> "PolicyRule":
        """From a rule of a Role or ClusterRole."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(obj.get(name) or ()) for name in fields))

    def as_object(self) -> Object:
        """The rule as in a Role or ClusterRole."""
        fields = ("apiGroups", "resources", "resourceNames", "nonResourceURLs")
        values = (self.groups, self.resources, self.names, self.urls)
        said = {name: list(value) for name, value in zip(fields, values, strict=True) if value}
        return {"verbs": list(self.verbs), **said}

    def allows(self, asked: AccessAttributes) -> bool:
        """Whether the rule alone allows this access."""
        if ALL not in self.verbs and asked.verb not in self.verbs:
            return False
        if asked.path:
            return any(url_covers(url, asked.path) for url in self.urls)
        if ALL not in self.groups and asked.group not in self.groups:
            return False
        if self.names and asked.name not in self.names:
            return False
        return self._has_resource(asked)

    def _has_resource(self, asked: AccessAttributes) -> bool:
        if ALL in self.resources or asked.qualified_subresource in self.resources:
            return True
        return bool(asked.subresource) and f"*/{asked.subresource}" in self.resources


def rules_of(role: Object) -> list[PolicyRule]:
    """The rules of a Role or ClusterRole; possibly none."""
    return [PolicyRule.of(one) for one in role.get("rules") or ()]


def url_covers(pattern: str, path: str) -> bool:
    """Whether a path of a rule, which may end with ``*``, covers another one."""
    return pattern in (ALL, path) or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


def find_uncovered(owned: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The smallest parts of ``wanted`` that no single rule of ``owned`` covers (``validation.Covers``)."""
    parts = (part for rule in wanted for part in break_down(rule))
    return [part for part in parts if not any(_covers(owner, part) for owner in owned)]


def break_down(rule: PolicyRule) -> Iterator[PolicyRule]:
    """Equivalent rules with one verb, one resource or path, and at most one name each."""
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                for name in rule.names or ("",):
                    yield PolicyRule((verb,), (group,), (resource,), (name,) if rule.names else ())
    for url in rule.urls:
        for verb in rule.verbs:
            yield PolicyRule((verb,), urls=(url,))


def compact_rules(parts: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Merges rules that differ only in their verb."""
    found: dict[PolicyRule, tuple[str, ...]] = {}
    others: list[PolicyRule] = []
    for part in parts:
        if part.urls:
            others.append(part)
        else:
            alike = part._replace(verbs=())
            found[alike] = found.get(alike, ()) + part.verbs
    return [*others, *(alike._replace(verbs=verbs) for alike, verbs in found.items())]


def describe_rule(rule: PolicyRule) -> str:
    """One rule in messages: ``{APIGroups:[""], Resources:["pods"], Verbs:["get"]}``."""
    titles = ("APIGroups", "Resources", "NonResourceURLs", "ResourceNames", "Verbs")
    values = (rule.groups, rule.resources, rule.urls, rule.names, rule.verbs)
    return (
        "{"
        + ", ".join(f"{title}:{quote_all(value)}" for title, value in zip(titles, values, strict=True) if value)
        + "}"
    )


def quote_all(values: Sequence[str]) -> str:
    """A list of strings as Go's ``%q`` prints it."""
    return "[" + " ".join(json.dumps(one, ensure_ascii=False) for one in values) + "]"


def _covers(owner: PolicyRule, part: PolicyRule) -> bool:
    return (
        (ALL in owner.verbs or {*part.verbs} <= {*owner.verbs})
        and (ALL in owner.groups or {*part.groups} <= {*owner.groups})
        and all(_covers_resource(owner, one) for one in part.resources)
        and (not owner.names or (bool(part.names) and {*part.names} <= {*owner.names}))
        and all(any(_url_covers_url(url, one) for url in owner.urls) for one in part.urls)
    )


def _covers_resource(owner: PolicyRule, resource: str) -> bool:
    if ALL in owner.resources or resource in owner.resources:
        return True
    subresource = resource.partition("/")[2]
    return bool(subresource) and f"*/{subresource}" in owner.resources


def _url_covers_url(owner: str, url: str) -> bool:
    return owner == url or (owner.endswith(ALL) and url.startswith(owner.rstrip(ALL)))
