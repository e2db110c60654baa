"""Which webhooks a write concerns (pure): rules, selectors, match conditions.

As ``k8s.io/apiserver/pkg/admission/plugin/webhook`` decides it (predicates/rules, namespace, object; matchconditions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.admission.chain import Attributes
from lastcall.lab.apiserver.admission.policies.expressions import PolicyScope
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.scheme import Resource
from lastcall.model.label_selector import Matcher, labels_of

GROUP = "admissionregistration.k8s.io"
_EXEMPT = (
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
)


@dataclass(frozen=True)
class MatchCriteria:
    """Which writes a webhook, a policy or a binding concerns."""

    rules: Sequence[Mapping[str, Any]]
    namespaces: Matcher
    objects: Matcher
    narrowed: bool
    """Whether ``objects`` selects at all: an empty selector also takes what has no labels and no object."""
    scoped: bool
    """The same for ``namespaces``."""
    equivalent: bool
    excluded: Sequence[Mapping[str, Any]] = ()
    """Rules for what is not concerned, whatever else matches."""
    without_rules: bool = False
    """Whether everything matches if there are no rules."""

    @classmethod
    def of(cls, said: Mapping[str, Any], rules: str = "rules", *, without_rules: bool = False) -> "MatchCriteria":
        """From a webhook or from ``matchConstraints``; ``rules`` is the field that has the rules."""
        namespaces, objects = said.get("namespaceSelector") or {}, said.get("objectSelector") or {}
        return cls(
            rules=said.get(rules) or (),
            namespaces=labels_of(namespaces),
            objects=labels_of(objects),
            narrowed=any(objects.values()),
            scoped=any(namespaces.values()),
            equivalent=said.get("matchPolicy", "Equivalent") == "Equivalent",
            excluded=said.get("excludeResourceRules") or (),
            without_rules=without_rules,
        )


@dataclass(frozen=True)
class Hook:
    """One webhook of one configuration, its defaults filled in."""

    configuration: str
    name: str
    client: Mapping[str, Any]
    criteria: MatchCriteria
    conditions: Sequence[str]
    fails_open: bool
    seconds: int
    side_effects: str
    reinvoked: bool

    @property
    def identity(self) -> str:
        """What tells it from all others."""
        return f"{self.configuration}/{self.name}"


def hooks(configuration: Object) -> Sequence[Hook]:
    """Those of one Validating- or MutatingWebhookConfiguration, in their order."""
    return [_hook(configuration["metadata"]["name"], one) for one in configuration.get("webhooks") or ()]


def _hook(configuration: str, said: Mapping[str, Any]) -> Hook:
    return Hook(
        configuration=configuration,
        name=said["name"],
        client=said["clientConfig"],
        criteria=MatchCriteria.of(said),
        conditions=[one["expression"] for one in said.get("matchConditions") or ()],
        fails_open=said.get("failurePolicy", "Fail") == "Ignore",
        seconds=said.get("timeoutSeconds") or 10,
        side_effects=said.get("sideEffects", ""),
        reinvoked=said.get("reinvocationPolicy", "Never") == "IfNeeded",
    )


def exempt(attributes: Attributes) -> bool:
    """Whether no webhook is asked: nobody may lock himself out of mending the configuration of webhooks."""
    return attributes.resource.group == GROUP and attributes.resource.plural in _EXEMPT


def concerned(
    criteria: MatchCriteria, attributes: Attributes, namespace: Object | None, equivalents: Sequence[Resource]
) -> Resource | None:
    """The resource as which the write is shown; None if it is not concerned.

    ``namespace`` is the one the write happens in, if that is stored; ``equivalents`` are other names of the resource.
    ApiError (404) if a selector asks for the labels of a namespace that is not there.
    """
    missing = None
    try:
        if not _in_namespace(criteria, attributes, namespace):
            return None
    except status.ApiError as error:
        missing = error
    selected = criteria.objects
    if criteria.narrowed and not any(selected(_labels(one)) for one in (attributes.obj, attributes.old) if one):
        return None
    candidates = [attributes.resource, *(equivalents if criteria.equivalent else ())]
    if _matching(criteria.excluded, attributes, candidates):
        return None
    everything = criteria.without_rules and not criteria.rules
    found = attributes.resource if everything else _matching(criteria.rules, attributes, candidates)
    if found is not None and missing is not None:
        raise missing
    return found


def _matching(
    rules: Sequence[Mapping[str, Any]], attributes: Attributes, candidates: Sequence[Resource]
) -> Resource | None:
    return next((one for one in candidates if any(_rule(rule, attributes, one) for rule in rules)), None)


def _in_namespace(criteria: MatchCriteria, attributes: Attributes, namespace: Object | None) -> bool:
    is_namespace = attributes.resource.qualified == "namespaces"
    if not criteria.scoped or not (attributes.namespace or is_namespace):
        return True  # what lies in no namespace is never exempted by a selector
    if is_namespace and not attributes.subresource and attributes.operation in ("CREATE", "UPDATE"):
        return criteria.namespaces(_labels(attributes.obj or {}))
    if namespace is None:
        raise status.not_found("namespaces", "", attributes.namespace or attributes.name)
    return criteria.namespaces(_labels(namespace))


def _rule(rule: Mapping[str, Any], attributes: Attributes, resource: Resource) -> bool:
    return (
        _scope(rule.get("scope") or "*", attributes)
        and _among(rule.get("operations"), attributes.operation)
        and _among(rule.get("apiGroups"), resource.group)
        and _among(rule.get("apiVersions"), resource.version)
        and any(_resource(one, resource.plural, attributes.subresource) for one in rule.get("resources") or ())
        and (not rule.get("resourceNames") or attributes.name in rule["resourceNames"])
    )


def _scope(scope: str, attributes: Attributes) -> bool:
    inside = bool(attributes.namespace) and attributes.resource.qualified != "namespaces"
    return scope == "*" or (scope == "Namespaced") == inside


def _among(items: Sequence[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _resource(said: str, plural: str, subresource: str) -> bool:
    """``pods`` and ``*`` mean no subresource; ``pods/*`` and ``*/*`` mean all of them, and none."""
    name, _, below = said.partition("/")
    return name in ("*", plural) and below in ("*", subresource)


def _labels(obj: Object) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def conditions_met(hook: Hook, attributes: Attributes, scope: PolicyScope) -> bool:
    """Whether all match conditions are true.

    One that is false decides, whatever the others do. ApiError (403) if one has no value and the webhook fails closed.
    """
    unmet, wrong = scope.unmet(hook.conditions)
    if wrong and not hook.fails_open:
        resource = attributes.resource
        raise status.forbidden(resource.plural, resource.group, attributes.name, wrong)
    return not (unmet or wrong)
