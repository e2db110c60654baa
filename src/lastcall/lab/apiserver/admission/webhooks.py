"""Admission by webhooks: MutatingAdmissionWebhook and ValidatingAdmissionWebhook."""

import asyncio
import copy
import logging
from collections.abc import Sequence
from random import Random

import msgspec

from lastcall.aio import timeout
from lastcall.lab.apiserver import meta, status
from lastcall.lab.apiserver.admission import calling, matching, reviews
from lastcall.lab.apiserver.admission.calling import Caller, NotReached, Reply
from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.admission.matching import Hook
from lastcall.lab.apiserver.admission.policies.access import Authorize, CelAuthorizer
from lastcall.lab.apiserver.admission.policies.expressions import PolicyScope
from lastcall.lab.apiserver.admission.reviews import Answer, CallFailed, Denied
from lastcall.lab.apiserver.patches.json_patch import DoesNotApply, patched
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.schema.bodies import Kind
from lastcall.lab.apiserver.schema.schemas import Schemas
from lastcall.lab.apiserver.scheme import Resource, Scheme
from lastcall.lab.apiserver.store import Key, Store

log = logging.getLogger(__name__)

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_RETRIES = 10
"""How often a webhook is called again (``client-go/rest/request.go``)."""


class Webhooks:
    """Who is asked, and what is answered. ``caller`` may be replaced: tests and virtual time have no sockets."""

    def __init__(
        self, store: Store, scheme: Scheme, schemas: Schemas, random: Random, caller: Caller, authorize: Authorize
    ) -> None:
        self._store = store
        self._scheme = scheme
        self._schemas = schemas
        self._random = random
        self.caller = caller
        self._authorize = authorize
        self._read: dict[Key, tuple[int, Sequence[Hook]]] = {}

    def configured(self, storage: str) -> Sequence[Hook]:
        """All webhooks of one kind as they are now, by the name of their configuration."""
        found: list[Hook] = []
        for stored in self._store.objects(storage):
            revision, hooks = self._read.get(stored.key, (0, ()))
            if revision != stored.revision:
                hooks = matching.hooks(stored.object())
                self._read[stored.key] = (stored.revision, hooks)
            found += hooks
        return found

    def asked(self, hook: Hook, attributes: Attributes) -> Object | None:
        """The AdmissionRequest for the webhook; None if the write does not concern it."""
        namespace = self._namespace(attributes)
        resource = matching.concerned(hook.criteria, attributes, namespace, self._equivalents(attributes.resource))
        if resource is None:
            return None
        request = reviews.request(attributes, resource, meta.new_uid(self._random))
        met = not hook.conditions or matching.conditions_met(hook, attributes, self._scope(attributes, request))
        return request if met else None

    def _scope(self, attributes: Attributes, request: Object) -> PolicyScope:
        """What match conditions can ask about."""
        objects = {name: request[name] for name in ("object", "oldObject")}
        variables = {**objects, "request": {name: value for name, value in request.items() if name not in objects}}
        return PolicyScope(variables, {}, CelAuthorizer(self._authorize, attributes))

    async def answer(self, hook: Hook, attributes: Attributes, request: Object, *, mutating: bool) -> Answer | None:
        """What it says; None if it cannot be had and does not matter. ApiError if it denies, or fails closed."""
        if attributes.dry_run and hook.side_effects not in ("None", "NoneOnDryRun"):
            raise status.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._call(hook, request, mutating=mutating)
        except CallFailed as error:
            said = f'failed calling webhook "{hook.name}": {error}'
            if hook.fails_open:
                log.warning("%s; the request goes on", said)
                return None
            raise status.internal(said) from None
        attributes.warnings += answer.warnings
        if not answer.allowed:
            raise Denied(hook.name, answer.result)
        return answer

    async def _call(self, hook: Hook, request: Object, *, mutating: bool) -> Answer:
        body = msgspec.json.encode(reviews.review(request)) + b"\n"
        url = calling.url(hook.client, seconds=hook.seconds)
        try:
            async with timeout(hook.seconds):
                reply = await self._reply(hook, body)
        except TimeoutError:
            raise CallFailed(f'failed to call webhook: Post "{url}": context deadline exceeded') from None
        except NotReached as error:
            raise CallFailed(f'failed to call webhook: Post "{url}": {error}') from None
        if not 200 <= reply.status <= 206:
            raise reviews.http_failure(reply.status, reply.content_type, reply.body)
        if not reply.body:
            answered = f"status code: {reply.status} and content type: {reply.content_type}"
            raise CallFailed(f"failed to call webhook: 0-length response with {answered}")
        return reviews.understood(reply.body, request["uid"], mutating=mutating)

    async def _reply(self, hook: Hook, body: bytes) -> Reply:
        """The answer that counts: a webhook that asks for it (Retry-After) is called again."""
        destination = calling.destination(hook.client, self._store, seconds=hook.seconds)
        for _ in range(_RETRIES):
            reply = await self.caller.call(destination, body)
            if (seconds := reply.retry_seconds) is None:
                return reply
            await asyncio.sleep(seconds)
        return await self.caller.call(destination, body)

    def _namespace(self, attributes: Attributes) -> Object | None:
        name = attributes.name if attributes.resource.qualified == "namespaces" else attributes.namespace
        stored = self._store.get(Key("namespaces", "", name)) if name else None
        return stored.object() if stored else None

    def patched(self, hook: Hook, attributes: Attributes, answer: Answer, request: Object) -> Object:
        """The object with the patch of the answer. ApiError (500) if the patch does not apply.

        The patch is one of the object as it was shown.
        """
        shown, said = request["object"], request["resource"]
        try:
            result = patched(copy.deepcopy(shown), answer.patch)
        except DoesNotApply as error:
            raise status.internal(str(error)) from None
        if not isinstance(result, dict):
            raise status.internal(f'admission webhook "{hook.name}" made something else of the object')
        group, _, version = shown["apiVersion"].rpartition("/")
        result = self._schemas.mutated(result, attributes.resource, Kind(group, version, shown["kind"]))
        resource = self._scheme.find(said["group"], said["version"], said["resource"])
        return reviews.back(result, attributes, resource) if resource else result

    def _equivalents(self, resource: Resource) -> Sequence[Resource]:
        """The same objects under other names: another version, or another group (events)."""
        return [one for one in self._scheme if one is not resource and one.storage == resource.storage]


class ValidatingWebhooks(Plugin):
    """All that are concerned are asked at once; the first refusal counts, when all have answered."""

    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    async def validate(self, attributes: Attributes) -> None:
        """Sees the object as it is going to be stored."""
        hooks = self._webhooks.configured(VALIDATING)
        if not hooks or matching.exempt(attributes):
            return
        calls = [(hook, request) for hook in hooks if (request := self._webhooks.asked(hook, attributes))]
        refusals: list[status.ApiError] = []

        async def ask(hook: Hook, request: Object) -> None:
            try:
                await self._webhooks.answer(hook, attributes, request, mutating=False)
            except status.ApiError as error:
                refusals.append(error)

        await asyncio.gather(*(ask(hook, request) for hook, request in calls))
        if refusals:
            raise refusals[0]


class MutatingWebhooks(Plugin):
    """One after the other, each sees what the ones before have made of the object.

    Those with reinvocationPolicy IfNeeded are asked once more if somebody after them has changed it.
    """

    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    async def mutate(self, attributes: Attributes) -> None:
        """Changes ``attributes.obj`` in place."""
        hooks = self._webhooks.configured(MUTATING)
        if not hooks or matching.exempt(attributes):
            return
        asked = attributes.again.webhooks
        if attributes.again.second_round and asked.output != attributes.obj:
            asked.require()
        for hook in hooks:
            await self._one(hook, attributes)
        asked.output = copy.deepcopy(attributes.obj)

    async def _one(self, hook: Hook, attributes: Attributes) -> None:
        again = attributes.again
        request = self._webhooks.asked(hook, attributes)
        if request is None or (again.second_round and hook.identity not in again.webhooks.due):
            return
        answer = await self._webhooks.answer(hook, attributes, request, mutating=True)
        if answer and answer.patch and _apply(self._webhooks, hook, attributes, answer, request):
            again.webhooks.require()
            again.wanted = True
        if hook.reinvoked:
            again.webhooks.asked.append(hook.identity)


def _apply(webhooks: Webhooks, hook: Hook, attributes: Attributes, answer: Answer, request: Object) -> bool:
    """Whether the patch has changed the object. ApiError (500) if it does not apply."""
    obj = attributes.obj
    if obj is None:
        why = (
            f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
        )
        raise status.internal(why)
    result = webhooks.patched(hook, attributes, answer, request)
    changed = result != obj
    obj.clear()
    obj.update(result)
    return changed
