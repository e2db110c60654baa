"""``pods/eviction``: a deletion subject to PodDisruptionBudgets (``pkg/registry/core/pod/storage/eviction.go``).

After admission everything happens between two awaits: no other eviction can use the same allowance, and no pod becomes
ready between the check and its end. Kubernetes' API server needs preconditions and retries for that.
"""

from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import msgspec

from lastcall.model import budgets
from lastcall.model.budgets import Budget, EvictionObstacle, EvictionRefused
from lastcall.model.pods import Pod
from lastcall_lab.apiserver.encoding import media_types
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind
from lastcall_lab.apiserver.registry import unstored_objects
from lastcall_lab.apiserver.registry.delete_options import parse_delete_options
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.resources import deletion_rules
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions
from lastcall_lab.apiserver.responses.response_builder import ResponseBuilder
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import RevisionConflict, StorageKey, StoredObject
from lastcall_lab.apiserver.values import api_errors, field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Object, Response

_BUDGETS = "poddisruptionbudgets.policy"
_EVICTION = GroupVersionKind("policy", "v1", "Eviction")
_ALSO = ("policy/v1beta1",)
_IGNORES_READ_ERRORS = "ignoreStoreReadErrorWithClusterBreakingPotential"
_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class PodEvictions:
    """Serves the subresource."""

    def __init__(self, registry: Registry, responses: ResponseBuilder) -> None:
        self._registry = registry
        self._responses = responses

    async def create(self, context: RequestContext) -> Response:
        """Evicts the route's pod. ApiError if it may not be evicted, or not now."""
        form = media_types.negotiate_format(context.request)
        eviction = await self._read(context)
        attributes = await unstored_objects.admit_unstored(self._registry, context, eviction)
        options = _options(context, eviction)
        if options.dry_run and eviction.get("deleteOptions"):
            eviction["deleteOptions"]["dryRun"] = list(options.dry_run)
        await self._registry.admission.validate(attributes)
        await self._evict(context, options)
        return self._responses.object_response(context, _SUCCESS, form, code=201)

    async def _read(self, context: RequestContext) -> Object:
        eviction = await self._registry.read_body(context, _EVICTION, also=_ALSO)
        metadata = eviction.setdefault("metadata", {})
        if metadata.setdefault("namespace", context.route.namespace) != context.route.namespace:
            raise api_errors.other_namespace_error()
        if metadata.get("name") != context.route.name:
            raise api_errors.bad_request_error("name in URL does not match name in Eviction object")
        return eviction

    async def _evict(self, context: RequestContext, options: DeleteOptions) -> None:
        route = context.route
        stored = self._registry.store.get(StorageKey(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise api_errors.not_found_error(route.resource.plural, route.resource.group, route.name)
        pod = msgspec.convert(stored.to_object(), Pod)
        verdict = budgets.decide_eviction(pod, self._budgets(route.namespace))
        if isinstance(verdict, EvictionRefused):
            raise _budget_refusal(verdict)
        if verdict.spends and not options.dry_run:
            self._spend(verdict.spends, route.name)
        exempted_by, enforces = verdict.exempted_by, options.revision is not None
        if exempted_by:
            options = replace(options, revision=str(stored.revision))
        try:
            await self._delete(context, stored, options)
        except ApiError as error:
            if error.code == HTTPStatus.CONFLICT and exempted_by and not enforces:
                raise _budget_refusal(budgets.stale_refusal(exempted_by)) from None
            raise

    async def _delete(self, context: RequestContext, stored: StoredObject, options: DeleteOptions) -> None:
        """Marks the pod and deletes it. An empty precondition prevents only the deletion, not the mark."""
        if not options.dry_run:
            enforced = replace(options, uid=options.uid or None, revision=options.revision or None)
            deletion_rules.check_preconditions(_whole(context, stored), enforced, context.route.resource)
            options = self._mark(stored, options)
        target = RequestContext(
            context.request, context.route._replace(verb="delete", subresource=""), context.warnings
        )
        await self._registry.remover.delete(target, options, admitted=True)

    def _budgets(self, namespace: str) -> Iterator[Budget]:
        for stored in self._registry.store.objects(_BUDGETS, namespace):
            yield msgspec.json.decode(stored.data, type=Budget)

    def _spend(self, budget: Budget, pod: str) -> None:
        """Decrements the allowed disruptions, only in the version of the budget that was checked."""
        store, now = self._registry.store, object_meta.timestamp(self._registry.clock.wall())
        key = StorageKey(_BUDGETS, budget.metadata.namespace, budget.metadata.name)
        stored = store.get(key)
        if stored is None:
            raise RevisionConflict
        obj, after = stored.to_object(), budgets.spend_disruption(budget, pod, now).status
        written = obj["status"]
        written["disruptionsAllowed"] = after.disruptions_allowed
        written["disruptedPods"] = after.disrupted_pods
        if not after.disruptions_allowed:
            said = {"observedGeneration": after.observed_generation, "reason": "InsufficientPods", "message": ""}
            _set_condition(written, {"type": "DisruptionAllowed", "status": "False", **said}, now)
        store.put(key, obj, expected=int(budget.metadata.resource_version))

    def _mark(self, stored: StoredObject, options: DeleteOptions) -> DeleteOptions:
        """Sets the DisruptionTarget condition; a version precondition then applies to the new version."""
        pod = stored.to_object()
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        _set_condition(pod.setdefault("status", {}), condition, object_meta.timestamp(self._registry.clock.wall()))
        if pod != stored.to_object():
            stored = self._registry.store.put(stored.key, pod, expected=stored.revision)
        return options if options.revision is None else replace(options, revision=str(stored.revision))


def _options(context: RequestContext, eviction: Object) -> DeleteOptions:
    """The deletion's options; a dry run can be requested in the query, in them, or in both."""
    asked = tuple(context.request.query.get("dryRun", ())) if context.dry_run else ()
    body = eviction.get("deleteOptions") or {}
    if body.get(_IGNORES_READ_ERRORS):
        why = "can not be set for pod eviction, try after removing the option"
        causes = [field_errors.invalid(f"deleteOptions.{_IGNORES_READ_ERRORS}", True, why)]
        raise api_errors.invalid_error("Eviction", "policy", context.route.name, causes)
    said = parse_delete_options(body)
    if not said.dry_run:
        return replace(said, dry_run=asked)
    if asked and asked != said.dry_run:
        both = f"[{' '.join(asked)}] and [{' '.join(said.dry_run)}]"
        raise ApiError(500, "", f"Non-matching dry-run options in request and content: {both}")
    return said


def _budget_refusal(refused: EvictionRefused) -> ApiError:
    if refused.why is EvictionObstacle.SEVERAL:
        return ApiError(500, "", budgets.SEVERAL)
    if refused.why in (EvictionObstacle.NEGATIVE, EvictionObstacle.UNCONFIRMED):
        return api_errors.forbidden_error(
            "poddisruptionbudget", "policy", refused.budgets[0].metadata.name, refused.cause
        )
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": refused.cause}]}
    if refused.why is EvictionObstacle.STALE:
        details["retryAfterSeconds"] = budgets.STALE_SECONDS
    return api_errors.too_many_requests_error(budgets.VIOLATED, details)


def _set_condition(where: Object, condition: Object, now: str) -> None:
    """Adds or replaces the condition of a type; ``lastTransitionTime`` is the last change of its status."""
    conditions = where.setdefault("conditions", [])
    before = next((one for one in conditions if one["type"] == condition["type"]), None)
    if before is None:
        conditions.append({**condition, "lastTransitionTime": now})
        return
    if before["status"] != condition["status"]:
        before["lastTransitionTime"] = now
    before.update(condition)


def _whole(context: RequestContext, stored: StoredObject) -> Object:
    return {"kind": context.route.resource.kind, **stored.to_object()}
