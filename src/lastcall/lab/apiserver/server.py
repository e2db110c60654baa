"""The API server without its sockets: a request comes in, an answer goes out; watches are answers that go on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import msgspec

from lastcall.errors import Unavailable
from lastcall.lab.apiserver import answers, initial, media, patching, protobuf, status
from lastcall.lab.apiserver.admission import plugins
from lastcall.lab.apiserver.admission.addresses import ServiceAddresses
from lastcall.lab.apiserver.admission.calling import HttpsCaller
from lastcall.lab.apiserver.admission.chain import Chain, Plugin
from lastcall.lab.apiserver.admission.policies import mutating as mutating_policies
from lastcall.lab.apiserver.admission.policies import validating as validating_policies
from lastcall.lab.apiserver.admission.policies.definitions import AdmissionPolicies
from lastcall.lab.apiserver.admission.policies.mutating import MutatingPolicies
from lastcall.lab.apiserver.admission.policies.param_access import ParamAccess
from lastcall.lab.apiserver.admission.policies.validating import ValidatingPolicies
from lastcall.lab.apiserver.admission.webhooks import MutatingWebhooks, ValidatingWebhooks, Webhooks
from lastcall.lab.apiserver.aside import Aside, at_once
from lastcall.lab.apiserver.audit import Audit
from lastcall.lab.apiserver.authorization import bootstrap, reconciliation
from lastcall.lab.apiserver.authorization.attributes import MASTERS, AccessAttributes, access_attributes, forbidden
from lastcall.lab.apiserver.authorization.authorizer import Authorization, Authorizer
from lastcall.lab.apiserver.authorization.escalation import EscalationCheck
from lastcall.lab.apiserver.authorization.impersonation import impersonated, wanted_user
from lastcall.lab.apiserver.catalog import built_in
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.custom.definitions import Definitions
from lastcall.lab.apiserver.custom.terminating import Terminating
from lastcall.lab.apiserver.delete_options import delete_options
from lastcall.lab.apiserver.event_lines import LineCache
from lastcall.lab.apiserver.identity import Identities
from lastcall.lab.apiserver.kinds.base import Options
from lastcall.lab.apiserver.kubelets import Kubelets
from lastcall.lab.apiserver.managed_fields import ManagedFields
from lastcall.lab.apiserver.media import Form
from lastcall.lab.apiserver.nonresource import NonResources
from lastcall.lab.apiserver.patches.shapes import Shape
from lastcall.lab.apiserver.reads import Reader
from lastcall.lab.apiserver.removals import Remover
from lastcall.lab.apiserver.request import Object, Request, Response
from lastcall.lab.apiserver.routes import place, route
from lastcall.lab.apiserver.schema import Schemas
from lastcall.lab.apiserver.schema.bodies import Kind, check_size
from lastcall.lab.apiserver.scheme import Resource, Scheme
from lastcall.lab.apiserver.store import Change, Key, Store
from lastcall.lab.apiserver.subresources import subresources
from lastcall.lab.apiserver.watches import Watcher
from lastcall.lab.apiserver.writes import Writer
from lastcall.ports import Clock

log = logging.getLogger(__name__)

Verb = Callable[[Context], Awaitable[Response]]

_PARTS = ("", "status", "finalize", "ephemeralcontainers", "resize")
"""Subresources that are the object itself, of which they change a part."""


_AT_ONCE = 64
"""Objects of a collection that are deleted before others are served."""


class ApiServer:
    """Serves the built-in kinds and those that are defined in it. ``plugins`` are the admission, in their order.

    ``clock`` and ``random`` decide everything that is not in a request: with a virtual clock and a seed, the same
    requests have the same answers. With ``authorization`` by RBAC the roles of every cluster are there from the beginning,
    and ``roles``: more of them, and their bindings. ``aside`` reads what is large.
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        *,
        store: Store | None = None,
        audit: Audit | None = None,
        authorization: Authorization = Authorization.ALWAYS_ALLOW,
        roles: Iterable[Object] = (),
        aside: Aside = at_once,
    ) -> None:
        self.clock = clock
        self.aside = aside
        self.audit = audit or Audit(clock)
        self.random = random
        self.kubelets: Kubelets = lambda node: None
        self.scheme = Scheme(built_in())
        self.store = store or Store()
        self.definitions = Definitions(self.store, self.scheme, clock)
        self.definitions.load()
        self.store.describe(self._fields)
        self.authorizer = Authorizer(self.store, authorization)
        self.store.on_change = self._changed
        initial.begin(self.store, wall=clock.wall(), random=random)
        if authorization is Authorization.RBAC:
            expected = [*bootstrap.everything(), *roles]
            reconciliation.reconcile(self.store, expected, wall=clock.wall(), random=random)
        self.schemas = Schemas()
        self.reader = Reader(self.store)
        self.watcher = Watcher(self.store, clock, random)
        self.lines = LineCache()
        self.managed = ManagedFields(self.schemas.of, self.scheme)
        self.identities = Identities(self.store, clock, random)
        self._caller = HttpsCaller()
        self.webhooks = Webhooks(self.store, self.scheme, self.schemas, random, self._caller, self.authorizer.authorize)
        self.admission = Chain(self._plugins())
        self.writer = Writer(self.store, clock, random, self.admission, self.managed, aside)
        self.remover = Remover(self.store, clock, self.admission)
        self.others = NonResources(self.scheme, self.store)
        self._subresources = subresources(self)
        self._shapes: dict[tuple[str, str], Shape] = {}
        self._verbs: Mapping[str, Verb] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_all,
        }

    def identified(self, request: Request) -> Request:
        """The request with who asks, or the user as whom it acts. ApiError if that is not known, or not allowed."""
        request = self.identities.authenticated(request)
        wanted = wanted_user(request.headers)
        if wanted is None:
            return request
        user = impersonated(access_attributes(request), wanted, self.authorizer.authorize)
        return replace(request, user=user)

    def authorize(self, request: Request) -> None:
        """ApiError (403) if the user of an identified request may not ask it."""
        if MASTERS not in request.user.groups:
            self._require(access_attributes(request))

    def authorize_creation(self, context: Context) -> None:
        """ApiError (403) unless the user may create the object that a PUT or an apply would make (``withAuthorization``)."""
        self._require(access_attributes(context.request)._replace(verb="create"))

    def _require(self, asked: AccessAttributes) -> None:
        decision = self.authorizer.authorize(asked)
        if not decision.allowed:
            raise forbidden(asked, decision.reason)

    def permitted(self, request: Request) -> Request:
        """The request with its user, who may ask it. ApiError (400, 401, 403) if not."""
        request = self.identified(request)
        self.authorize(request)
        return request

    async def handle(self, request: Request) -> Response:
        """The answer; never an exception but for cancellation, and ModuleNotFoundError where the lab is not installed."""
        began = self.audit.begin()
        try:
            request = self.identified(request)
            self.authorize(request)
            response = await self._handle(protobuf.as_json(request))
            if self.store.journal:  # nothing is told, read or written, that a crash could take back
                await self.store.journal.durable(self.store.revision)
        except status.ApiError as error:
            response = answers.failure(request, error)
        except Unavailable as error:
            response = answers.failure(request, status.ApiError(500, "", str(error)))
        except RecursionError:
            response = answers.failure(request, status.bad_request("exceeded max depth"))
        except ModuleNotFoundError:
            raise  # not all of lastcall is installed: no answer to a client can say how to mend that
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            response = answers.failure(request, status.internal(str(error) or type(error).__name__))
        self.audit.end(began, request, response.status)
        return response

    def close(self) -> None:
        """Gives up the connections to webhooks."""
        self._caller.close()

    def _plugins(self) -> Sequence[Plugin]:
        built_in = plugins.built_in(self.store, self.clock, self.random)
        asked = self.store, self.scheme, self.authorizer.authorize
        mutating = AdmissionPolicies(mutating_policies.POLICIES, mutating_policies.BINDINGS, *asked)
        validating = AdmissionPolicies(validating_policies.POLICIES, validating_policies.BINDINGS, *asked)
        extensions = [
            MutatingPolicies(mutating, self.shape, self.schemas.typed),
            MutatingWebhooks(self.webhooks),
            ValidatingPolicies(validating),
            ValidatingWebhooks(self.webhooks),
            ParamAccess(*asked),
        ]
        addresses = ServiceAddresses(self.store, self.random)
        return [Terminating(self.definitions), *built_in, *extensions, addresses, EscalationCheck(self.authorizer)]

    def _changed(self, change: Change) -> None:
        self.definitions.changed(change)
        self.authorizer.rbac.changed(change)

    async def _handle(self, request: Request) -> Response:
        where = place(request.path)
        if where is None or not self.scheme.has_group(where.group):
            return self.others.answer(request) or answers.page_not_found()
        context = Context(request, route(request, where, self.scheme))
        context.check_timeout()
        if deprecation := context.route.resource.behaviour.deprecation:
            context.warnings.append(deprecation)
        try:
            check_size(request)
            context.check_validation()
            if context.route.subresource not in _PARTS:
                return await self._subresource(context)
            return await self._verbs[context.route.verb](context)
        except status.ApiError as error:
            return answers.failure(request, error, context.warnings)

    async def _subresource(self, context: Context) -> Response:
        part = context.route.subresource
        handler = self._subresources.get((context.route.resource.qualified, part)) or self._subresources.get(("", part))
        if handler is None:
            raise status.no_such_resource()
        return await handler(context)

    # -- the verbs -----------------------------------------------------------------------------------------------------

    async def _get(self, context: Context) -> Response:
        form = self._form(context)
        return answers.one(context, self.reader.get(context), form, self)

    async def _list(self, context: Context) -> Response:
        form = self._form(context, collection=True)
        return answers.page(context, self.reader.list(context), form, self)

    async def _watch(self, context: Context) -> Response:
        form = self._form(context, collection=True, stream=True)
        return answers.events(context, self.watcher.open(context), form, self)

    async def _create(self, context: Context) -> Response:
        if handler := self._subresources.get((context.route.resource.qualified, "")):
            return await handler(context)
        form = self._form(context)
        obj = await self.writer.create(context, await self.read(context))
        return answers.one(context, obj, form, self, code=201)

    async def _update(self, context: Context) -> Response:
        form = self._form(context)
        wanted = await self.read(context)
        patching.check_place(context, wanted)

        if self._creates(context):
            self.authorize_creation(context)
            return answers.one(context, await self.writer.create(context, wanted), form, self, code=201)
        sent = msgspec.json.encode(wanted)  # each attempt begins with what the client has sent

        async def change(_: Object) -> Object:
            again: Object = msgspec.json.decode(sent)
            return again

        return answers.one(context, await self.writer.update(context, change), form, self)

    def _creates(self, context: Context) -> bool:
        """Whether a PUT makes the object, which some kinds allow."""
        route = context.route
        key = Key(route.resource.storage, route.namespace, route.name)
        return route.resource.behaviour.creates_on_update and not route.subresource and self.store.get(key) is None

    async def _patch(self, context: Context) -> Response:
        form = self._form(context)
        obj, created = await patching.patch(context, self)
        return answers.one(context, obj, form, self, code=201 if created else 200)

    async def _delete(self, context: Context) -> Response:
        form = self._form(context)
        options = await self._deletion(context)
        removed = await self.remover.delete(context, options)
        return answers.deleted(context, removed, options, form, self)

    async def _delete_all(self, context: Context) -> Response:
        form = self._form(context)
        options = await self._deletion(context)
        page = self.reader.list(context)
        for index, stored in enumerate(page.items, 1):
            if index % _AT_ONCE == 0:
                await asyncio.sleep(0)
            one = context.route._replace(verb="delete", namespace=stored.key.namespace, name=stored.key.name)
            try:
                await self.remover.delete(Context(context.request, one, context.warnings), options, collective=True)
            except status.ApiError as error:
                if error.reason != "NotFound":
                    raise
        return answers.page(context, page, form, self)

    async def _deletion(self, context: Context) -> Options:
        """The options of a deletion, whose client is told what it should know."""
        options = await self.aside(context.request, lambda: delete_options(context))
        context.warnings += context.route.resource.behaviour.deletion_warnings(options)
        return options

    # -- for the verbs -------------------------------------------------------------------------------------------------

    def _form(self, context: Context, *, collection: bool = False, stream: bool = False) -> Form:
        custom = context.route.resource.custom
        return media.negotiated(context.request, collection=collection, stream=stream, custom=custom)

    async def read(self, context: Context, wanted: Kind | None = None, *, also: Sequence[str] = ()) -> Object:
        """``Schemas.read``: the object in the body of a POST or PUT."""
        return await self.aside(context.request, lambda: self.schemas.read(context, wanted, also=also))

    def shape(self, obj: Object, resource: Resource) -> Shape:
        """How ownership of fields sees an object that belongs to the resource, which may have a kind of its own."""
        said = obj.get("apiVersion", ""), obj.get("kind", "")
        if resource.custom or said == (resource.api_version, resource.kind):
            return self.managed.shape(resource)
        if said not in self._shapes:
            self._shapes[said] = Shape(self.schemas.of_object(obj, resource))
        return self._shapes[said]

    def _fields(self, storage: str, obj: Object) -> Mapping[str, str]:
        resource = self.scheme.stored_in(storage)
        metadata = obj["metadata"]
        fields = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
        if resource:
            fields |= resource.behaviour.fields(obj)
        return {name: value for name, value in fields.items() if value}  # most are empty, and each takes room
