"""The API server without its sockets: a request comes in, an answer goes out; watches are answers that go on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import msgspec

from lastcall.errors import Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission import default_plugins
from lastcall_lab.apiserver.admission.chain import AdmissionChain, AdmissionPlugin
from lastcall_lab.apiserver.admission.definition_lifecycle import DefinitionLifecycle
from lastcall_lab.apiserver.admission.policies import mutating as mutating_policies
from lastcall_lab.apiserver.admission.policies import validating as validating_policies
from lastcall_lab.apiserver.admission.policies.mutating import MutatingPolicies
from lastcall_lab.apiserver.admission.policies.param_access import ParamAccess
from lastcall_lab.apiserver.admission.policies.stored_policies import AdmissionPolicies
from lastcall_lab.apiserver.admission.policies.validating import ValidatingPolicies
from lastcall_lab.apiserver.admission.role_escalation import EscalationCheck
from lastcall_lab.apiserver.admission.service_addresses import ServiceAddresses
from lastcall_lab.apiserver.admission.webhook_client import HttpsCaller
from lastcall_lab.apiserver.admission.webhooks import MutatingWebhooks, ValidatingWebhooks, WebhookDispatcher
from lastcall_lab.apiserver.authentication.authenticator import Authenticator
from lastcall_lab.apiserver.authorization import bootstrap, reconciliation
from lastcall_lab.apiserver.authorization.attributes import (
    MASTERS,
    AccessAttributes,
    access_attributes,
    forbidden_error,
)
from lastcall_lab.apiserver.authorization.audit import AuditLog
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode, Authorizer
from lastcall_lab.apiserver.authorization.impersonation import impersonate, requested_user
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.custom.definition_registry import DefinitionRegistry
from lastcall_lab.apiserver.encoding import media_types, protobuf_bodies
from lastcall_lab.apiserver.encoding.media_types import ResponseFormat
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind, check_size
from lastcall_lab.apiserver.patches.managed_fields import ManagedFields
from lastcall_lab.apiserver.patches.shapes import OwnershipShape
from lastcall_lab.apiserver.registry import patch_requests
from lastcall_lab.apiserver.registry.body_worker import BodyWorker, run_inline
from lastcall_lab.apiserver.registry.delete_options import read_delete_options
from lastcall_lab.apiserver.registry.deletes import ObjectRemover
from lastcall_lab.apiserver.registry.reads import ObjectReader
from lastcall_lab.apiserver.registry.watches import Watcher
from lastcall_lab.apiserver.registry.writes import ObjectWriter
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.responses import response_builder
from lastcall_lab.apiserver.responses.watch_lines import LineCache
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.routing.routes import find_route, parse_path
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.server import initial_objects
from lastcall_lab.apiserver.server.non_resource_paths import NonResourcePaths
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredChange
from lastcall_lab.apiserver.subresources.handlers import subresource_handlers
from lastcall_lab.apiserver.subresources.kubelet_api import Kubelets
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, Request, Response

log = logging.getLogger(__name__)

Verb = Callable[[RequestContext], Awaitable[Response]]

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
        audit: AuditLog | None = None,
        authorization: AuthorizationMode = AuthorizationMode.ALWAYS_ALLOW,
        roles: Iterable[Object] = (),
        aside: BodyWorker = run_inline,
    ) -> None:
        self.clock = clock
        self.aside = aside
        self.audit = audit or AuditLog(clock)
        self.random = random
        self.kubelets: Kubelets = lambda node: None
        self.scheme = ResourceScheme(built_in_resources())
        self.store = store or Store()
        self.definitions = DefinitionRegistry(self.store, self.scheme, clock)
        self.definitions.load()
        self.store.describe_fields(self._fields)
        self.authorizer = Authorizer(self.store, authorization)
        self.store.on_change = self._handle_change
        initial_objects.create_initial_objects(self.store, wall=clock.wall(), random=random)
        if authorization is AuthorizationMode.RBAC:
            expected = [*bootstrap.bootstrap_objects(), *roles]
            reconciliation.reconcile_bootstrap(self.store, expected, wall=clock.wall(), random=random)
        self.schemas = Schemas()
        self.reader = ObjectReader(self.store)
        self.watcher = Watcher(self.store, clock, random)
        self.lines = LineCache()
        self.managed = ManagedFields(self.schemas.of, self.scheme)
        self.identities = Authenticator(self.store, clock, random)
        self._caller = HttpsCaller()
        self.webhooks = WebhookDispatcher(
            self.store, self.scheme, self.schemas, random, self._caller, self.authorizer.authorize
        )
        self.admission = AdmissionChain(self._plugins())
        self.writer = ObjectWriter(self.store, clock, random, self.admission, self.managed, aside)
        self.remover = ObjectRemover(self.store, clock, self.admission)
        self.others = NonResourcePaths(self.scheme, self.store)
        self._subresources = subresource_handlers(self)
        self._shapes: dict[tuple[str, str], OwnershipShape] = {}
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

    def identify(self, request: Request) -> Request:
        """The request with who asks, or the user as whom it acts. ApiError if that is not known, or not allowed."""
        request = self.identities.authenticate(request)
        wanted = requested_user(request.headers)
        if wanted is None:
            return request
        user = impersonate(access_attributes(request), wanted, self.authorizer.authorize)
        return replace(request, user=user)

    def authorize(self, request: Request) -> None:
        """ApiError (403) if the user of an identified request may not ask it."""
        if MASTERS not in request.user.groups:
            self._require(access_attributes(request))

    def authorize_creation(self, context: RequestContext) -> None:
        """ApiError (403) unless the user may create the object that a PUT or an apply would make (``withAuthorization``)."""
        self._require(access_attributes(context.request)._replace(verb="create"))

    def _require(self, asked: AccessAttributes) -> None:
        decision = self.authorizer.authorize(asked)
        if not decision.allowed:
            raise forbidden_error(asked, decision.reason)

    def permit(self, request: Request) -> Request:
        """The request with its user, who may ask it. ApiError (400, 401, 403) if not."""
        request = self.identify(request)
        self.authorize(request)
        return request

    async def handle(self, request: Request) -> Response:
        """The answer; never an exception but for cancellation, and ModuleNotFoundError where the lab is not installed."""
        began = self.audit.begin()
        try:
            request = self.identify(request)
            self.authorize(request)
            response = await self._handle(protobuf_bodies.convert_to_json(request))
            if self.store.journal:  # nothing is told, read or written, that a crash could take back
                await self.store.journal.wait_durable(self.store.revision)
        except api_errors.ApiError as error:
            response = response_builder.error_response(request, error)
        except Unavailable as error:
            response = response_builder.error_response(request, api_errors.ApiError(500, "", str(error)))
        except RecursionError:
            response = response_builder.error_response(request, api_errors.bad_request_error("exceeded max depth"))
        except ModuleNotFoundError:
            raise  # not all of lastcall is installed: no answer to a client can say how to mend that
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            response = response_builder.error_response(
                request, api_errors.internal_error(str(error) or type(error).__name__)
            )
        self.audit.end(began, request, response.status)
        return response

    def close(self) -> None:
        """Gives up the connections to webhooks."""
        self._caller.close()

    def _plugins(self) -> Sequence[AdmissionPlugin]:
        built_in = default_plugins.built_in_plugins(self.store, self.clock, self.random)
        asked = self.store, self.scheme, self.authorizer.authorize
        mutating = AdmissionPolicies(mutating_policies.POLICIES, mutating_policies.BINDINGS, *asked)
        validating = AdmissionPolicies(validating_policies.POLICIES, validating_policies.BINDINGS, *asked)
        extensions = [
            MutatingPolicies(mutating, self.shape_of, self.schemas.to_typed),
            MutatingWebhooks(self.webhooks),
            ValidatingPolicies(validating),
            ValidatingWebhooks(self.webhooks),
            ParamAccess(*asked),
        ]
        addresses = ServiceAddresses(self.store, self.random)
        return [
            DefinitionLifecycle(self.definitions),
            *built_in,
            *extensions,
            addresses,
            EscalationCheck(self.authorizer),
        ]

    def _handle_change(self, change: StoredChange) -> None:
        self.definitions.handle_change(change)
        self.authorizer.rbac.handle_change(change)

    async def _handle(self, request: Request) -> Response:
        where = parse_path(request.path)
        if where is None or not self.scheme.has_group(where.group):
            return self.others.answer(request) or response_builder.not_found_page()
        context = RequestContext(request, find_route(request, where, self.scheme))
        context.check_timeout()
        if deprecation := context.route.resource.behaviour.deprecation:
            context.warnings.append(deprecation)
        try:
            check_size(request)
            context.check_validation()
            if context.route.subresource not in _PARTS:
                return await self._subresource(context)
            return await self._verbs[context.route.verb](context)
        except api_errors.ApiError as error:
            return response_builder.error_response(request, error, context.warnings)

    async def _subresource(self, context: RequestContext) -> Response:
        part = context.route.subresource
        handler = self._subresources.get((context.route.resource.qualified_name, part)) or self._subresources.get(
            ("", part)
        )
        if handler is None:
            raise api_errors.no_such_resource_error()
        return await handler(context)

    # -- the verbs -----------------------------------------------------------------------------------------------------

    async def _get(self, context: RequestContext) -> Response:
        form = self._form(context)
        return response_builder.object_response(context, self.reader.get(context), form, self)

    async def _list(self, context: RequestContext) -> Response:
        form = self._form(context, collection=True)
        return response_builder.list_response(context, self.reader.list(context), form, self)

    async def _watch(self, context: RequestContext) -> Response:
        form = self._form(context, collection=True, stream=True)
        return response_builder.watch_response(context, self.watcher.open(context), form, self)

    async def _create(self, context: RequestContext) -> Response:
        if handler := self._subresources.get((context.route.resource.qualified_name, "")):
            return await handler(context)
        form = self._form(context)
        obj = await self.writer.create(context, await self.read(context))
        return response_builder.object_response(context, obj, form, self, code=201)

    async def _update(self, context: RequestContext) -> Response:
        form = self._form(context)
        wanted = await self.read(context)
        patch_requests.check_object_place(context, wanted)

        if self._creates(context):
            self.authorize_creation(context)
            return response_builder.object_response(
                context, await self.writer.create(context, wanted), form, self, code=201
            )
        sent = msgspec.json.encode(wanted)  # each attempt begins with what the client has sent

        async def change(_: Object) -> Object:
            again: Object = msgspec.json.decode(sent)
            return again

        return response_builder.object_response(context, await self.writer.update(context, change), form, self)

    def _creates(self, context: RequestContext) -> bool:
        """Whether a PUT makes the object, which some kinds allow."""
        route = context.route
        key = StorageKey(route.resource.storage, route.namespace, route.name)
        return route.resource.behaviour.creates_on_update and not route.subresource and self.store.get(key) is None

    async def _patch(self, context: RequestContext) -> Response:
        form = self._form(context)
        obj, created = await patch_requests.patch_object(context, self)
        return response_builder.object_response(context, obj, form, self, code=201 if created else 200)

    async def _delete(self, context: RequestContext) -> Response:
        form = self._form(context)
        options = await self._deletion(context)
        removed = await self.remover.delete(context, options)
        return response_builder.deletion_response(context, removed, options, form, self)

    async def _delete_all(self, context: RequestContext) -> Response:
        form = self._form(context)
        options = await self._deletion(context)
        page = self.reader.list(context)
        for index, stored in enumerate(page.items, 1):
            if index % _AT_ONCE == 0:
                await asyncio.sleep(0)
            one = context.route._replace(verb="delete", namespace=stored.key.namespace, name=stored.key.name)
            try:
                await self.remover.delete(
                    RequestContext(context.request, one, context.warnings), options, collective=True
                )
            except api_errors.ApiError as error:
                if error.reason != "NotFound":
                    raise
        return response_builder.list_response(context, page, form, self)

    async def _deletion(self, context: RequestContext) -> DeleteOptions:
        """The options of a deletion, whose client is told what it should know."""
        options = await self.aside(context.request, lambda: read_delete_options(context))
        context.warnings += context.route.resource.behaviour.deletion_warnings(options)
        return options

    # -- for the verbs -------------------------------------------------------------------------------------------------

    def _form(self, context: RequestContext, *, collection: bool = False, stream: bool = False) -> ResponseFormat:
        custom = context.route.resource.custom
        return media_types.negotiate_format(context.request, collection=collection, stream=stream, custom=custom)

    async def read(
        self, context: RequestContext, wanted: GroupVersionKind | None = None, *, also: Sequence[str] = ()
    ) -> Object:
        """``Schemas.read``: the object in the body of a POST or PUT."""
        return await self.aside(context.request, lambda: self.schemas.read(context, wanted, also=also))

    def shape_of(self, obj: Object, resource: ServedResource) -> OwnershipShape:
        """How ownership of fields sees an object that belongs to the resource, which may have a kind of its own."""
        said = obj.get("apiVersion", ""), obj.get("kind", "")
        if resource.custom or said == (resource.api_version, resource.kind):
            return self.managed.shape_of(resource)
        if said not in self._shapes:
            self._shapes[said] = OwnershipShape(self.schemas.node_of_object(obj, resource))
        return self._shapes[said]

    def _fields(self, storage: str, obj: Object) -> Mapping[str, str]:
        resource = self.scheme.stored_in(storage)
        metadata = obj["metadata"]
        fields = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
        if resource:
            fields |= resource.behaviour.fields(obj)
        return {name: value for name, value in fields.items() if value}  # most are empty, and each takes room
