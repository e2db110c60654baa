"""``pods/eviction``: a deletion that PodDisruptionBudgets may refuse (``pkg/registry/core/pod/storage/eviction.go``).

Once admission has agreed, everything happens between two awaits: no other eviction can spend the same allowance, and no
pod becomes ready between the verdict and its end. The API server of Kubernetes needs preconditions and retries for that.
"""

from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from lastcall.lab.apiserver import answers, deletion, fields, media, meta, posting, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.delete_options import from_body
from lastcall.lab.apiserver.kinds.base import Options
from lastcall.lab.apiserver.request import Object, Response
from lastcall.lab.apiserver.schema.bodies import Kind
from lastcall.lab.apiserver.status import ApiError
from lastcall.lab.apiserver.store import Key, Outdated, Stored
from lastcall.model import budgets
from lastcall.model.budgets import Budget, Refused, Why
from lastcall.model.pods import Pod

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer

_BUDGETS = "poddisruptionbudgets.policy"
_EVICTION = Kind("policy", "v1", "Eviction")
_ALSO = ("policy/v1beta1",)
_IGNORES_READ_ERRORS = "ignoreStoreReadErrorWithClusterBreakingPotential"
_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class Evictions:
    """Serves the subresource."""

    def __init__(self, server: "ApiServer") -> None:
        self._server = server

    async def create(self, context: Context) -> Response:
        """Evicts the pod that the route names. ApiError if that cannot be, or not now."""
        form = media.negotiated(context.request)
        eviction = await self._read(context)
        attributes = await posting.mutate(self._server, context, eviction)
        options = _options(context, eviction)
        if options.dry_run and eviction.get("deleteOptions"):
            eviction["deleteOptions"]["dryRun"] = list(options.dry_run)
        await self._server.admission.validate(attributes)
        await self._evict(context, options)
        return answers.one(context, _SUCCESS, form, self._server, code=201)

    async def _read(self, context: Context) -> Object:
        eviction = await self._server.read(context, _EVICTION, also=_ALSO)
        metadata = eviction.setdefault("metadata", {})
        if metadata.setdefault("namespace", context.route.namespace) != context.route.namespace:
            raise status.other_namespace()
        if metadata.get("name") != context.route.name:
            raise status.bad_request("name in URL does not match name in Eviction object")
        return eviction

    async def _evict(self, context: Context, options: Options) -> None:
        route = context.route
        stored = self._server.store.get(Key(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise status.not_found(route.resource.plural, route.resource.group, route.name)
        pod = msgspec.convert(stored.object(), Pod)
        verdict = budgets.verdict(pod, self._budgets(route.namespace))
        if isinstance(verdict, Refused):
            raise _refused(verdict)
        if verdict.spends and not options.dry_run:
            self._spend(verdict.spends, route.name)
        exempted_by, enforces = verdict.exempted_by, options.revision is not None
        if exempted_by:
            options = replace(options, revision=str(stored.revision))
        try:
            await self._delete(context, stored, options)
        except ApiError as error:
            if error.code == HTTPStatus.CONFLICT and exempted_by and not enforces:
                raise _refused(budgets.stale_refusal(exempted_by)) from None
            raise

    async def _delete(self, context: Context, stored: Stored, options: Options) -> None:
        """Marks the pod and deletes it. An empty precondition does not prevent the mark, only the deletion."""
        if not options.dry_run:
            enforced = replace(options, uid=options.uid or None, revision=options.revision or None)
            deletion.preconditions(_whole(context, stored), enforced, context.route.resource)
            options = self._mark(stored, options)
        target = Context(context.request, context.route._replace(verb="delete", subresource=""), context.warnings)
        await self._server.remover.delete(target, options, admitted=True)

    def _budgets(self, namespace: str) -> Iterator[Budget]:
        for stored in self._server.store.objects(_BUDGETS, namespace):
            yield msgspec.json.decode(stored.data, type=Budget)

    def _spend(self, budget: Budget, pod: str) -> None:
        """Writes down that one disruption less is allowed; only for the version of the budget that was judged."""
        store, now = self._server.store, meta.timestamp(self._server.clock.wall())
        key = Key(_BUDGETS, budget.metadata.namespace, budget.metadata.name)
        stored = store.get(key)
        if stored is None:
            raise Outdated
        obj, after = stored.object(), budgets.spent(budget, pod, now).status
        written = obj["status"]
        written["disruptionsAllowed"] = after.disruptions_allowed
        written["disruptedPods"] = after.disrupted_pods
        if not after.disruptions_allowed:
            said = {"observedGeneration": after.observed_generation, "reason": "InsufficientPods", "message": ""}
            _set_condition(written, {"type": "DisruptionAllowed", "status": "False", **said}, now)
        store.put(key, obj, expected=int(budget.metadata.resource_version))

    def _mark(self, stored: Stored, options: Options) -> Options:
        """Writes on the pod why it goes; a precondition on its version holds for the version with that condition."""
        pod = stored.object()
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        _set_condition(pod.setdefault("status", {}), condition, meta.timestamp(self._server.clock.wall()))
        if pod != stored.object():
            stored = self._server.store.put(stored.key, pod, expected=stored.revision)
        return options if options.revision is None else replace(options, revision=str(stored.revision))


def _options(context: Context, eviction: Object) -> Options:
    """Those of the deletion; a dry run may be asked for in the query, in them, or in both."""
    asked = tuple(context.request.query.get("dryRun", ())) if context.dry_run else ()
    body = eviction.get("deleteOptions") or {}
    if body.get(_IGNORES_READ_ERRORS):
        why = "can not be set for pod eviction, try after removing the option"
        causes = [fields.invalid(f"deleteOptions.{_IGNORES_READ_ERRORS}", True, why)]
        raise status.invalid("Eviction", "policy", context.route.name, causes)
    said = from_body(body)
    if not said.dry_run:
        return replace(said, dry_run=asked)
    if asked and asked != said.dry_run:
        both = f"[{' '.join(asked)}] and [{' '.join(said.dry_run)}]"
        raise ApiError(500, "", f"Non-matching dry-run options in request and content: {both}")
    return said


def _refused(refused: Refused) -> ApiError:
    if refused.why is Why.SEVERAL:
        return ApiError(500, "", budgets.SEVERAL)
    if refused.why in (Why.NEGATIVE, Why.UNCONFIRMED):
        return status.forbidden("poddisruptionbudget", "policy", refused.budgets[0].metadata.name, refused.cause)
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": refused.cause}]}
    if refused.why is Why.STALE:
        details["retryAfterSeconds"] = budgets.STALE_SECONDS
    return status.too_many_requests(budgets.VIOLATED, details)


def _set_condition(where: Object, condition: Object, now: str) -> None:
    """Adds it, or changes the one of its type; ``lastTransitionTime`` is when its status last changed."""
    conditions = where.setdefault("conditions", [])
    before = next((one for one in conditions if one["type"] == condition["type"]), None)
    if before is None:
        conditions.append({**condition, "lastTransitionTime": now})
        return
    if before["status"] != condition["status"]:
        before["lastTransitionTime"] = now
    before.update(condition)


def _whole(context: Context, stored: Stored) -> Object:
    return {"kind": context.route.resource.kind, **stored.object()}
