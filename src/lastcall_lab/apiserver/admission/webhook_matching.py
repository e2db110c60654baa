"""Which webhooks match a write (pure): rules, selectors, match conditions.

As in ``k8s.io/apiserver/pkg/admission/plugin/webhook`` (predicates/rules, namespace, object; matchconditions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall.model.label_selector import Matcher, selector_matcher
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.admission.policies.expressions import PolicyScope
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

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
    """The writes that a webhook, a policy or a binding matches."""

    rules: Sequence[Mapping[str, Any]]
    namespaces: Matcher
    objects: Matcher
    narrowed: bool
    """Whether ``objects`` is not empty: an empty selector also matches missing objects."""
    scoped: bool
    """The same for ``namespaces``."""
    equivalent: bool
    excluded: Sequence[Mapping[str, Any]] = ()
    """Exclusion rules, which take precedence."""
    without_rules: bool = False
    """Whether a missing list of rules matches everything."""

    @classmethod
    def of(cls, said: Mapping[str, Any], rules: str = "rules", *, without_rules: bool = False) -> "MatchCriteria":
        """From a webhook or from ``matchConstraints``; ``rules`` is the name of the field with the rules."""
        namespaces, objects = said.get("namespaceSelector") or {}, said.get("objectSelector") or {}
        return cls(
            rules=said.get(rules) or (),
            namespaces=selector_matcher(namespaces),
            objects=selector_matcher(objects),
            narrowed=any(objects.values()),
            scoped=any(namespaces.values()),
            equivalent=said.get("matchPolicy", "Equivalent") == "Equivalent",
            excluded=said.get("excludeResourceRules") or (),
            without_rules=without_rules,
        )


@dataclass(frozen=True)
class Webhook:
    """One webhook of a configuration, with defaults."""

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
        """Its unique identity."""
        return f"{self.configuration}/{self.name}"


def webhooks_of(configuration: Object) -> Sequence[Webhook]:
    """The webhooks of one Validating- or MutatingWebhookConfiguration, in order."""
    return [_webhook_from(configuration["metadata"]["name"], one) for one in configuration.get("webhooks") or ()]


def _webhook_from(configuration: str, said: Mapping[str, Any]) -> Webhook:
    return Webhook(
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


def is_exempt(attributes: AdmissionAttributes) -> bool:
    """Whether no webhook is called: webhook configurations must stay repairable."""
    return attributes.resource.group == GROUP and attributes.resource.plural in _EXEMPT


def matching_resource(
    criteria: MatchCriteria,
    attributes: AdmissionAttributes,
    namespace: Object | None,
    equivalents: Sequence[ServedResource],
) -> ServedResource | None:
    """The resource version to send; None if the write does not match.

    ``namespace`` is the stored namespace of the write; ``equivalents`` are other names of the resource. ApiError (404)
    if a selector needs the labels of a missing namespace.
    """
    missing = None
    try:
        if not _matches_namespace(criteria, attributes, namespace):
            return None
    except api_errors.ApiError as error:
        missing = error
    selected = criteria.objects
    if criteria.narrowed and not any(selected(_labels(one)) for one in (attributes.obj, attributes.old) if one):
        return None
    candidates = [attributes.resource, *(equivalents if criteria.equivalent else ())]
    if _first_match(criteria.excluded, attributes, candidates):
        return None
    everything = criteria.without_rules and not criteria.rules
    found = attributes.resource if everything else _first_match(criteria.rules, attributes, candidates)
    if found is not None and missing is not None:
        raise missing
    return found


def _first_match(
    rules: Sequence[Mapping[str, Any]], attributes: AdmissionAttributes, candidates: Sequence[ServedResource]
) -> ServedResource | None:
    return next((one for one in candidates if any(_matches_rule(rule, attributes, one) for rule in rules)), None)


def _matches_namespace(criteria: MatchCriteria, attributes: AdmissionAttributes, namespace: Object | None) -> bool:
    is_namespace = attributes.resource.qualified_name == "namespaces"
    if not criteria.scoped or not (attributes.namespace or is_namespace):
        return True  # a selector never excludes cluster-scoped objects
    if is_namespace and not attributes.subresource and attributes.operation in ("CREATE", "UPDATE"):
        return criteria.namespaces(_labels(attributes.obj or {}))
    if namespace is None:
        raise api_errors.not_found_error("namespaces", "", attributes.namespace or attributes.name)
    return criteria.namespaces(_labels(namespace))


def _matches_rule(rule: Mapping[str, Any], attributes: AdmissionAttributes, resource: ServedResource) -> bool:
    return (
        _matches_scope(rule.get("scope") or "*", attributes)
        and _lists_word(rule.get("operations"), attributes.operation)
        and _lists_word(rule.get("apiGroups"), resource.group)
        and _lists_word(rule.get("apiVersions"), resource.version)
        and any(_matches_resource(one, resource.plural, attributes.subresource) for one in rule.get("resources") or ())
        and (not rule.get("resourceNames") or attributes.name in rule["resourceNames"])
    )


def _matches_scope(scope: str, attributes: AdmissionAttributes) -> bool:
    inside = bool(attributes.namespace) and attributes.resource.qualified_name != "namespaces"
    return scope == "*" or (scope == "Namespaced") == inside


def _lists_word(items: Sequence[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _matches_resource(said: str, plural: str, subresource: str) -> bool:
    """``pods`` and ``*`` match no subresource; ``pods/*`` and ``*/*`` match the resource and all subresources."""
    name, _, below = said.partition("/")
    return name in ("*", plural) and below in ("*", subresource)


def _labels(obj: Object) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def conditions_met(hook: Webhook, attributes: AdmissionAttributes, scope: PolicyScope) -> bool:
    """Whether all match conditions are true.

    A false one decides, even if others fail. ApiError (403) if one fails and the webhook fails closed.
    """
    unmet, wrong = scope.find_unmet(hook.conditions)
    if wrong and not hook.fails_open:
        resource = attributes.resource
        raise api_errors.forbidden_error(resource.plural, resource.group, attributes.name, wrong)
    return not (unmet or wrong)
