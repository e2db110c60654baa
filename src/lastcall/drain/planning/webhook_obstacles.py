"""Webhooks that would refuse evictions, or the last deletion of a kubelet, because nothing answers for them (pure).

A ValidatingWebhookConfiguration with the failurePolicy Fail refuses what it is asked about while its Service has no ready
endpoint. ``pods/eviction`` is asked about an eviction; ``pods`` with DELETE about the deletion of the object by the kubelet
when its containers have ended, without which the pod stays in Terminating.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lastcall.drain.planning.drain_case import DrainCase, DrainHolder, DrainObstacle
from lastcall.model.drain_facts import DrainPod, PodName, pod_name
from lastcall.model.drain_objects import ReviewWebhook, ServiceSlice, WebhookRule
from lastcall.model.guard_facts import GuardedNamespace
from lastcall.model.label_selector import Matcher, select_everything, select_nothing, selector_matcher

KIND = "ValidatingWebhookConfiguration"
_EVICTIONS = ("pods/eviction", "pods/*", "*/eviction", "*/*")
_PODS = ("pods", "*", "*/*")


def find_webhook_obstacles(case: DrainCase) -> Iterator[DrainObstacle]:
    """One obstacle for each such webhook, with the pods that it is asked about; none if endpoints are not known."""
    if case.facts.slices is None:
        return
    answering = list_answering_services(case.facts.slices)
    for configuration in case.facts.webhooks:
        for webhook in configuration.webhooks or ():
            if _is_silent(webhook, answering) and (pods := _asked_pods(webhook, case)):
                yield _obstacle(configuration.metadata.name, webhook, pods)


def list_answering_services(slices: Collection[ServiceSlice]) -> Collection[PodName]:
    """The Services with a ready endpoint; a missing condition ``ready`` counts as true."""
    return {one.service for one in slices if any(each.conditions.ready is not False for each in one.endpoints or ())}


def _is_silent(webhook: ReviewWebhook, answering: Collection[PodName]) -> bool:
    """Whether it refuses because nothing answers. Of a webhook with a URL nothing is known."""
    service = webhook.client_config.service
    if webhook.failure_policy != "Fail" or service is None:
        return False
    return (service.namespace, service.name) not in answering


def _asked_pods(webhook: ReviewWebhook, case: DrainCase) -> tuple[PodName, ...]:
    evictions = not case.settings.disable_eviction and any(
        _asks_about(rule, "CREATE", _EVICTIONS) for rule in webhook.rules or ()
    )
    deletions = any(_asks_about(rule, "DELETE", _PODS) for rule in webhook.rules or ())
    if not evictions and not deletions:
        return ()
    spaces, objects = _matcher(webhook.namespace_selector), _matcher(webhook.object_selector)
    evictions = evictions and objects({})  # an Eviction has no labels
    return tuple(
        pod_name(pod)
        for pod in case.evicted
        if spaces(_namespace_labels(pod, case.facts.namespaces))
        and (evictions or (deletions and objects(pod.metadata.labels or {})))
    )


def _asks_about(rule: WebhookRule, operation: str, resources: Collection[str]) -> bool:
    return (
        not {operation, "*"}.isdisjoint(rule.operations or ())
        and not {"", "*"}.isdisjoint(rule.api_groups or ())
        and not {"v1", "*"}.isdisjoint(rule.api_versions or ())
        and not set(resources).isdisjoint(rule.resources or ())
        and rule.scope != "Cluster"
    )


def _matcher(selector: dict[str, Any] | None) -> Matcher:
    """A selector that is not given selects everything (``admissionregistration/v1``)."""
    if selector is None:
        return select_everything
    try:
        return selector_matcher(selector)
    except ValueError:
        return select_nothing


def _namespace_labels(pod: DrainPod, namespaces: Mapping[str, GuardedNamespace]) -> Mapping[str, str]:
    """The labels of the pod's Namespace; the one that every Namespace has if the object is not known."""
    name = pod.metadata.namespace
    known = namespaces.get(name)
    return {"kubernetes.io/metadata.name": name, **((known.metadata.labels or {}) if known else {})}


def _obstacle(configuration: str, webhook: ReviewWebhook, pods: tuple[PodName, ...]) -> DrainObstacle:
    service = webhook.client_config.service
    assert service is not None
    maybe = ", unless its matchConditions pass the request by" if webhook.match_conditions else ""
    return DrainObstacle(
        by=DrainHolder(kind=KIND, namespace="", name=configuration),
        pods=pods,
        why=f"webhook {webhook.name} refuses while Service {service.namespace}/{service.name} has no ready endpoint{maybe}",
        mend=f"bring the pods of Service {service.namespace}/{service.name} back, or set the webhook's failurePolicy to Ignore",
    )
