"""Runs the admission plugins for one write."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple

from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.values.api_errors import ApiError, forbidden_error
from lastcall_lab.apiserver.values.request import Object, UserInfo


@dataclass
class PluginReinvocation:
    """Which policies or webhooks of one plugin must see the object again, because a later one changed it."""

    asked: list[str] = field(default_factory=list)
    """The callers that want to be called again after a change."""
    due: list[str] = field(default_factory=list)
    """Those of them that a later change affects."""
    output: Object | None = None
    """The object after the last caller; None before the first one."""

    def require_all(self) -> None:
        """Marks all that have been called so far for reinvocation."""
        self.due += self.asked
        self.asked = []


@dataclass
class ReinvocationContext:
    """The state for a second round of mutating plugins (``reinvocationContext``)."""

    wanted: bool = False
    """Whether a second round is needed."""
    second_round: bool = False
    policies: PluginReinvocation = field(default_factory=PluginReinvocation)
    webhooks: PluginReinvocation = field(default_factory=PluginReinvocation)

    @property
    def was_seen(self) -> bool:
        """Whether a policy or a webhook has seen the object and may have removed a default."""
        return self.policies.output is not None or self.webhooks.output is not None


@dataclass
class AdmissionAttributes:
    """The write to admit. ``obj`` is None for a DELETE, ``old`` for a CREATE; both have kind and apiVersion.

    For a subresource that is not part of the object (``eviction``, ``binding``), ``obj`` is the request body.
    """

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    resource: ServedResource
    subresource: str
    namespace: str
    name: str
    user: UserInfo
    obj: Object | None
    old: Object | None
    dry_run: bool
    options: Object
    """CreateOptions, UpdateOptions (also of a patch) or DeleteOptions, as webhooks see them."""
    warnings: list[str] = field(default_factory=list)
    """Warnings for the client in addition to the response."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Audit annotations in addition to the request."""
    again: ReinvocationContext = field(default_factory=ReinvocationContext)

    @classmethod
    def of(
        cls, context: RequestContext, operation: str, obj: Object, old: Object | None = None
    ) -> "AdmissionAttributes":
        """A CREATE or UPDATE of the object that the route names, or of the body if the route has no name."""
        route = context.route
        return cls(
            operation=operation,
            resource=route.resource,
            subresource=route.subresource,
            namespace=route.namespace,
            name=route.name or obj["metadata"].get("name", ""),
            user=context.user,
            obj=obj,
            old=old,
            dry_run=context.dry_run,
            options=context.request_options("CreateOptions" if operation == "CREATE" else "UpdateOptions"),
            warnings=context.warnings,
            annotations=context.request.annotations,
        )


def refusal_error(attributes: AdmissionAttributes, why: str) -> ApiError:
    """The client's error when a plugin rejects the request (``admission.NewForbidden``)."""
    metadata = (attributes.obj or {}).get("metadata") or {}
    name = attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return forbidden_error(attributes.resource.plural, attributes.resource.group, name, why)


class AdmissionPlugin:
    """The base class, which admits everything. ApiError rejects the request."""

    sees: ClassVar[Collection[str]] = ()
    """The storages of the resources that it handles; empty for all."""

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """May change ``attributes.obj`` in place."""

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Checks the object as it will be stored."""


class AdmissionChain(AdmissionPlugin):
    """Plugins in order; the first rejection ends the chain."""

    def __init__(self, plugins: Sequence[AdmissionPlugin]) -> None:
        self._plugins = plugins
        self._seeing = lru_cache(maxsize=256)(self._choose_plugins)

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Runs all mutating plugins in sequence, and again if a webhook changed the object."""
        for plugin in self._seeing(attributes.resource.storage).mutating:
            await plugin.mutate(attributes)
        if attributes.again.wanted and not attributes.again.second_round:
            attributes.again.second_round = True
            await self.mutate(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Runs all validating plugins in sequence."""
        for plugin in self._seeing(attributes.resource.storage).validating:
            await plugin.validate(attributes)

    def _choose_plugins(self, storage: str) -> "_ChosenPlugins":
        """The plugins that handle this resource."""
        seeing = [one for one in self._plugins if not one.sees or storage in one.sees]
        return _ChosenPlugins(
            [one for one in seeing if type(one).mutate is not AdmissionPlugin.mutate],
            [one for one in seeing if type(one).validate is not AdmissionPlugin.validate],
        )


class _ChosenPlugins(NamedTuple):
    mutating: Sequence[AdmissionPlugin]
    validating: Sequence[AdmissionPlugin]
