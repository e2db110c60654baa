"""Admission by webhooks: MutatingAdmissionWebhook and ValidatingAdmissionWebhook."""

import asyncio
import copy
import logging
from collections.abc import Sequence
from random import Random

import msgspec

from lastcall.aio import timeout
from lastcall_lab.apiserver.admission import admission_reviews, webhook_client, webhook_matching
from lastcall_lab.apiserver.admission.admission_reviews import AdmissionResponse, WebhookCallFailed, WebhookDenial
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.admission.policies.cel_authorizer import Authorize, CelAuthorizer
from lastcall_lab.apiserver.admission.policies.expressions import PolicyScope
from lastcall_lab.apiserver.admission.webhook_client import WebhookCaller, WebhookReply, WebhookUnreachable
from lastcall_lab.apiserver.admission.webhook_matching import Webhook
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind
from lastcall_lab.apiserver.patches.json_patch import JsonPatchDoesNotApply, apply_operations
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.schema.schemas import Schemas
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import api_errors, object_meta
from lastcall_lab.apiserver.values.request import Object

log = logging.getLogger(__name__)

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_RETRIES = 10
"""The maximum number of retries of a webhook call (``client-go/rest/request.go``)."""


class WebhookDispatcher:
    """Selects webhooks and interprets their responses. ``caller`` is replaced in tests and virtual time."""

    def __init__(
        self,
        store: Store,
        scheme: ResourceScheme,
        schemas: Schemas,
        random: Random,
        caller: WebhookCaller,
        authorize: Authorize,
    ) -> None:
        self._store = store
        self._scheme = scheme
        self._schemas = schemas
        self._random = random
        self.caller = caller
        self._authorize = authorize
        self._read: dict[StorageKey, tuple[int, Sequence[Webhook]]] = {}

    def find_webhooks(self, storage: str) -> Sequence[Webhook]:
        """All current webhooks of one kind, ordered by configuration name."""
        found: list[Webhook] = []
        for stored in self._store.objects(storage):
            revision, hooks = self._read.get(stored.key, (0, ()))
            if revision != stored.revision:
                hooks = webhook_matching.webhooks_of(stored.to_object())
                self._read[stored.key] = (stored.revision, hooks)
            found += hooks
        return found

    def request_for(self, hook: Webhook, attributes: AdmissionAttributes) -> Object | None:
        """The AdmissionRequest for the webhook; None if the write does not match."""
        namespace = self._namespace(attributes)
        resource = webhook_matching.matching_resource(
            hook.criteria, attributes, namespace, self._equivalents(attributes.resource)
        )
        if resource is None:
            return None
        request = admission_reviews.admission_request(attributes, resource, object_meta.new_uid(self._random))
        met = not hook.conditions or webhook_matching.conditions_met(hook, attributes, self._scope(attributes, request))
        return request if met else None

    def _scope(self, attributes: AdmissionAttributes, request: Object) -> PolicyScope:
        """The variables of match conditions."""
        objects = {name: request[name] for name in ("object", "oldObject")}
        variables = {**objects, "request": {name: value for name, value in request.items() if name not in objects}}
        return PolicyScope(variables, {}, CelAuthorizer(self._authorize, attributes))

    async def answer(
        self, hook: Webhook, attributes: AdmissionAttributes, request: Object, *, mutating: bool
    ) -> AdmissionResponse | None:
        """The response; None if the call failed and failurePolicy is Ignore. ApiError for a denial or a failure."""
        if attributes.dry_run and hook.side_effects not in ("None", "NoneOnDryRun"):
            raise api_errors.bad_request_error(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._call(hook, request, mutating=mutating)
        except WebhookCallFailed as error:
            said = f'failed calling webhook "{hook.name}": {error}'
            if hook.fails_open:
                log.warning("%s; the request continues", said)
                return None
            raise api_errors.internal_error(said) from None
        attributes.warnings += answer.warnings
        if not answer.allowed:
            raise WebhookDenial(hook.name, answer.result)
        return answer

    async def _call(self, hook: Webhook, request: Object, *, mutating: bool) -> AdmissionResponse:
        body = msgspec.json.encode(admission_reviews.encode_review(request)) + b"\n"
        url = webhook_client.webhook_url(hook.client, seconds=hook.seconds)
        try:
            async with timeout(hook.seconds):
                reply = await self._reply(hook, body)
        except TimeoutError:
            raise WebhookCallFailed(f'failed to call webhook: Post "{url}": context deadline exceeded') from None
        except WebhookUnreachable as error:
            raise WebhookCallFailed(f'failed to call webhook: Post "{url}": {error}') from None
        if not 200 <= reply.status <= 206:
            raise admission_reviews.http_failure(reply.status, reply.content_type, reply.body)
        if not reply.body:
            answered = f"status code: {reply.status} and content type: {reply.content_type}"
            raise WebhookCallFailed(f"failed to call webhook: 0-length response with {answered}")
        return admission_reviews.parse_answer(reply.body, request["uid"], mutating=mutating)

    async def _reply(self, hook: Webhook, body: bytes) -> WebhookReply:
        """The final response; repeats the call after a Retry-After."""
        destination = webhook_client.find_destination(hook.client, self._store, seconds=hook.seconds)
        for _ in range(_RETRIES):
            reply = await self.caller.call(destination, body)
            if (seconds := reply.retry_seconds) is None:
                return reply
            await asyncio.sleep(seconds)
        return await self.caller.call(destination, body)

    def _namespace(self, attributes: AdmissionAttributes) -> Object | None:
        name = attributes.name if attributes.resource.qualified_name == "namespaces" else attributes.namespace
        stored = self._store.get(StorageKey("namespaces", "", name)) if name else None
        return stored.to_object() if stored else None

    def apply_answer(
        self, hook: Webhook, attributes: AdmissionAttributes, answer: AdmissionResponse, request: Object
    ) -> Object:
        """The object with the response's patch. ApiError (500) if the patch does not apply.

        The patch applies to the object in the version that was sent.
        """
        shown, said = request["object"], request["resource"]
        try:
            result = apply_operations(copy.deepcopy(shown), answer.patch)
        except JsonPatchDoesNotApply as error:
            raise api_errors.internal_error(str(error)) from None
        if not isinstance(result, dict):
            raise api_errors.internal_error(f'admission webhook "{hook.name}" made something else of the object')
        group, _, version = shown["apiVersion"].rpartition("/")
        result = self._schemas.check_mutated(
            result, attributes.resource, GroupVersionKind(group, version, shown["kind"])
        )
        resource = self._scheme.find(said["group"], said["version"], said["resource"])
        return admission_reviews.convert_back(result, attributes, resource) if resource else result

    def _equivalents(self, resource: ServedResource) -> Sequence[ServedResource]:
        """The same objects under other names: another version, or another group (events)."""
        return [one for one in self._scheme if one is not resource and one.storage == resource.storage]


class ValidatingWebhooks(AdmissionPlugin):
    """Calls all matching webhooks at once, waits for all responses, and returns the first rejection."""

    def __init__(self, webhooks: WebhookDispatcher) -> None:
        self._webhooks = webhooks

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Checks the object as it will be stored."""
        hooks = self._webhooks.find_webhooks(VALIDATING)
        if not hooks or webhook_matching.is_exempt(attributes):
            return
        calls = [(hook, request) for hook in hooks if (request := self._webhooks.request_for(hook, attributes))]
        refusals: list[api_errors.ApiError] = []

        async def ask(hook: Webhook, request: Object) -> None:
            try:
                await self._webhooks.answer(hook, attributes, request, mutating=False)
            except api_errors.ApiError as error:
                refusals.append(error)

        await asyncio.gather(*(ask(hook, request) for hook, request in calls))
        if refusals:
            raise refusals[0]


class MutatingWebhooks(AdmissionPlugin):
    """Calls mutating webhooks in sequence; each sees the changes of those before it.

    Webhooks with reinvocationPolicy IfNeeded run again if a later one changes the object.
    """

    def __init__(self, webhooks: WebhookDispatcher) -> None:
        self._webhooks = webhooks

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Changes ``attributes.obj`` in place."""
        hooks = self._webhooks.find_webhooks(MUTATING)
        if not hooks or webhook_matching.is_exempt(attributes):
            return
        asked = attributes.again.webhooks
        if attributes.again.second_round and asked.output != attributes.obj:
            asked.require_all()
        for hook in hooks:
            await self._one(hook, attributes)
        asked.output = copy.deepcopy(attributes.obj)

    async def _one(self, hook: Webhook, attributes: AdmissionAttributes) -> None:
        again = attributes.again
        request = self._webhooks.request_for(hook, attributes)
        if request is None or (again.second_round and hook.identity not in again.webhooks.due):
            return
        answer = await self._webhooks.answer(hook, attributes, request, mutating=True)
        if answer and answer.patch and _apply(self._webhooks, hook, attributes, answer, request):
            again.webhooks.require_all()
            again.wanted = True
        if hook.reinvoked:
            again.webhooks.asked.append(hook.identity)


def _apply(
    webhooks: WebhookDispatcher,
    hook: Webhook,
    attributes: AdmissionAttributes,
    answer: AdmissionResponse,
    request: Object,
) -> bool:
    """Whether the patch changed the object. ApiError (500) if it does not apply."""
    obj = attributes.obj
    if obj is None:
        why = (
            f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
        )
        raise api_errors.internal_error(why)
    result = webhooks.apply_answer(hook, attributes, answer, request)
    changed = result != obj
    obj.clear()
    obj.update(result)
    return changed
