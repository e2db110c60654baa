"""The API server without sockets: takes a request and returns a response; watches are streaming responses."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
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
from lastcall_lab.apiserver.authorization.audit import AuditLog
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode, Authorizer
from lastcall_lab.apiserver.authorization.request_access import RequestAccess
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.catalog.optional_resources import optional_resources
from lastcall_lab.apiserver.custom.definition_registry import DefinitionRegistry
from lastcall_lab.apiserver.encoding import media_types, protobuf_bodies
from lastcall_lab.apiserver.encoding.media_types import ResponseFormat
from lastcall_lab.apiserver.encoding.request_bodies import check_size
from lastcall_lab.apiserver.patches.managed_fields import ManagedFields
from lastcall_lab.apiserver.registry import patch_requests
from lastcall_lab.apiserver.registry.body_worker import BodyWorker, run_inline
from lastcall_lab.apiserver.registry.delete_options import read_delete_options
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions
from lastcall_lab.apiserver.resources.scheme import ResourceScheme
from lastcall_lab.apiserver.responses import response_builder
from lastcall_lab.apiserver.responses.response_builder import ResponseBuilder
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.routing.routes import find_route, parse_path
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.server import initial_objects
from lastcall_lab.apiserver.server.non_resource_paths import NonResourcePaths
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredChange
from lastcall_lab.apiserver.subresources.handlers import subresource_handlers
from lastcall_lab.apiserver.subresources.pod_streams import PodStreams
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, Request, Response

log = logging.getLogger(__name__)

Verb = Callable[[RequestContext], Awaitable[Response]]

_PARTS = ("", "status", "finalize", "ephemeralcontainers", "resize")
"""Subresources that change a part of the object itself."""


_AT_ONCE = 64
"""The number of objects of a deletecollection before other requests get a turn."""


class ApiServer:
    """Serves built-in and custom kinds. ``plugins`` are the admission plugins, in order.

    ``clock`` and ``random`` decide everything that is not in a request: with a virtual clock and a seed, the same
    requests have the same answers. With ``authorization`` by RBAC the roles of every cluster are there from the beginning,
    and ``roles``: more of them, and their bindings. ``offload`` runs the work on large bodies. ``optional`` are the API
    versions (``GROUP/VERSION``) that are served besides.
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
        offload: BodyWorker = run_inline,
        optional: Sequence[str] = (),
    ) -> None:
        self.clock = clock
        self.audit = audit or AuditLog(clock)
        self.random = random
        self.scheme = ResourceScheme([*built_in_resources(), *optional_resources(optional, clock.wall)])
        self.store = store or Store()
        self.definitions = DefinitionRegistry(self.store, self.scheme, clock)
        self.definitions.load()
        self.store.describe_fields(self._fields)
        self.authorizer = Authorizer(self.store, authorization)
        self.store.on_change = self._handle_change
        initial_objects.create_initial_objects(self.store, wall=clock.wall(), random=random, optional=optional)
        if authorization is AuthorizationMode.RBAC:
            expected = [*bootstrap.bootstrap_objects(), *roles]
            reconciliation.reconcile_bootstrap(self.store, expected, wall=clock.wall(), random=random)
        self.schemas = Schemas(optional)
        self.managed = ManagedFields(self.schemas, self.scheme)
        self.identities = Authenticator(self.store, clock, random)
        self.access = RequestAccess(self.identities, self.authorizer)
        self._caller = HttpsCaller()
        self.webhooks = WebhookDispatcher(
            self.store, self.scheme, self.schemas, random, self._caller, self.authorizer.authorize
        )
        self.admission = AdmissionChain(self._plugins())
        self.registry = Registry(
            self.store,
            clock,
            random,
            schemas=self.schemas,
            managed=self.managed,
            admission=self.admission,
            offload=offload,
        )
        self.others = NonResourcePaths(self.scheme, self.store)
        self.streams = PodStreams(self.registry, self.scheme, access=self.access, audit=self.audit)
        self._responses = ResponseBuilder(clock, self.schemas)
        self._subresources = subresource_handlers(
            self.registry, self._responses, self.streams, authenticator=self.identities, authorizer=self.authorizer
        )
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

    async def handle(self, request: Request) -> Response:
        """The response. Raises nothing but CancelledError, and ModuleNotFoundError if the lab is not installed."""
        began = self.audit.begin()
        try:
            request = self.access.identify(request)  # two steps: the audit of a refused request names the user
            self.access.authorize(request)
            response = await self._handle(protobuf_bodies.convert_to_json(request))
            if self.store.journal:  # never expose a read or write that a crash could revert
                await self.store.journal.wait_durable(self.store.revision)
        except api_errors.ApiError as error:
            response = response_builder.error_response(request, error)
        except Unavailable as error:
            response = response_builder.error_response(request, api_errors.ApiError(500, "", str(error)))
        except RecursionError:
            response = response_builder.error_response(request, api_errors.bad_request_error("exceeded max depth"))
        except ModuleNotFoundError:
            raise  # a part of lastcall is not installed: no response to a client could say how to install it
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            response = response_builder.error_response(
                request, api_errors.internal_error(str(error) or type(error).__name__)
            )
        self.audit.end(began, request, response.status)
        return response

    def close(self) -> None:
        """Closes the connections to webhooks."""
        self._caller.close()

    def _plugins(self) -> Sequence[AdmissionPlugin]:
        built_in = default_plugins.built_in_plugins(self.store, self.clock, self.random)
        asked = self.store, self.scheme, self.authorizer.authorize
        mutating = AdmissionPolicies(mutating_policies.POLICIES, mutating_policies.BINDINGS, *asked)
        validating = AdmissionPolicies(validating_policies.POLICIES, validating_policies.BINDINGS, *asked)
        extensions = [
            MutatingPolicies(mutating, self.managed.shape_of_object, self.schemas.to_typed),
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
        return self._responses.object_response(context, self.registry.reader.get(context), form)

    async def _list(self, context: RequestContext) -> Response:
        form = self._form(context, collection=True)
        return self._responses.list_response(context, self.registry.reader.list(context), form)

    async def _watch(self, context: RequestContext) -> Response:
        form = self._form(context, collection=True, stream=True)
        return self._responses.watch_response(context, self.registry.watcher.open(context), form)

    async def _create(self, context: RequestContext) -> Response:
        if handler := self._subresources.get((context.route.resource.qualified_name, "")):
            return await handler(context)
        form = self._form(context)
        obj = await self.registry.writer.create(context, await self.registry.read_body(context))
        return self._responses.object_response(context, obj, form, code=201)

    async def _update(self, context: RequestContext) -> Response:
        form = self._form(context)
        wanted = await self.registry.read_body(context)
        patch_requests.check_object_place(context, wanted)

        if self._creates(context):
            self.access.authorize_creation(context)
            return self._responses.object_response(
                context, await self.registry.writer.create(context, wanted), form, code=201
            )
        sent = msgspec.json.encode(wanted)  # each attempt starts from what the client sent

        async def change(_: Object) -> Object:
            again: Object = msgspec.json.decode(sent)
            return again

        return self._responses.object_response(context, await self.registry.writer.update(context, change), form)

    def _creates(self, context: RequestContext) -> bool:
        """Whether a PUT creates the object, which some kinds allow."""
        route = context.route
        key = StorageKey(route.resource.storage, route.namespace, route.name)
        return route.resource.behaviour.creates_on_update and not route.subresource and self.store.get(key) is None

    async def _patch(self, context: RequestContext) -> Response:
        form = self._form(context)
        obj, created = await patch_requests.patch_object(context, self.registry, self.access.authorize_creation)
        return self._responses.object_response(context, obj, form, code=201 if created else 200)

    async def _delete(self, context: RequestContext) -> Response:
        form = self._form(context)
        options = await self._deletion(context)
        removed = await self.registry.remover.delete(context, options)
        return self._responses.deletion_response(context, removed, options, form)

    async def _delete_all(self, context: RequestContext) -> Response:
        form = self._form(context)
        options = await self._deletion(context)
        page = self.registry.reader.list(context)
        for index, stored in enumerate(page.items, 1):
            if index % _AT_ONCE == 0:
                await asyncio.sleep(0)
            one = context.route._replace(verb="delete", namespace=stored.key.namespace, name=stored.key.name)
            try:
                await self.registry.remover.delete(
                    RequestContext(context.request, one, context.warnings), options, collective=True
                )
            except api_errors.ApiError as error:
                if error.reason != "NotFound":
                    raise
        return self._responses.list_response(context, page, form)

    async def _deletion(self, context: RequestContext) -> DeleteOptions:
        """The options of a deletion; adds the warnings for the client."""
        options = await self.registry.offload(context.request, lambda: read_delete_options(context))
        context.warnings += context.route.resource.behaviour.deletion_warnings(options)
        return options

    # -- helpers of the verbs ------------------------------------------------------------------------------------------

    def _form(self, context: RequestContext, *, collection: bool = False, stream: bool = False) -> ResponseFormat:
        custom = context.route.resource.custom
        return media_types.negotiate_format(context.request, collection=collection, stream=stream, custom=custom)

    def _fields(self, storage: str, obj: Object) -> Mapping[str, str]:
        resource = self.scheme.stored_in(storage)
        metadata = obj["metadata"]
        fields = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
        if resource:
            fields |= resource.behaviour.fields(obj)
        return {name: value for name, value in fields.items() if value}  # most are empty, and each takes memory
