"""One write on its way to the store, and the plugins that it passes."""

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
    """Who of one plugin is to see the object once more because somebody after them has changed it."""

    asked: list[str] = field(default_factory=list)
    """Who has been asked, and wants to be asked again after a change."""
    due: list[str] = field(default_factory=list)
    """Those of them after whom something has changed."""
    output: Object | None = None
    """The object as they have left it last; None if none has seen it."""

    def require_all(self) -> None:
        """All that have been asked so far are due."""
        self.due += self.asked
        self.asked = []


@dataclass
class ReinvocationContext:
    """The second round of the mutating plugins (``reinvocationContext``)."""

    wanted: bool = False
    """Whether there is to be a second round."""
    second_round: bool = False
    policies: PluginReinvocation = field(default_factory=PluginReinvocation)
    webhooks: PluginReinvocation = field(default_factory=PluginReinvocation)

    @property
    def was_seen(self) -> bool:
        """Whether a policy or a webhook has seen the object, and may have taken a default away."""
        return self.policies.output is not None or self.webhooks.output is not None


@dataclass
class AdmissionAttributes:
    """What is about to happen. ``obj`` is None for a DELETE, ``old`` for a CREATE; both have kind and apiVersion.

    For a subresource that is no part of the object (``eviction``, ``binding``) ``obj`` is what was posted.
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
    """CreateOptions, UpdateOptions (of a patch too) or DeleteOptions, as webhooks are shown them."""
    warnings: list[str] = field(default_factory=list)
    """What the client is to be told besides the answer."""
    annotations: dict[str, str] = field(default_factory=dict)
    """What the audit is to be told besides the request."""
    again: ReinvocationContext = field(default_factory=ReinvocationContext)

    @classmethod
    def of(
        cls, context: RequestContext, operation: str, obj: Object, old: Object | None = None
    ) -> "AdmissionAttributes":
        """A CREATE or an UPDATE of what the route names, or the body if the route has no name."""
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
    """What the client is told when a plugin says no (``admission.NewForbidden``)."""
    metadata = (attributes.obj or {}).get("metadata") or {}
    name = attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return forbidden_error(attributes.resource.plural, attributes.resource.group, name, why)


class AdmissionPlugin:
    """Lets everything pass. ApiError refuses the request."""

    sees: ClassVar[Collection[str]] = ()
    """The storages of what it is asked about; everything, if it names none."""

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """May change ``attributes.obj`` in place."""

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Sees the object as it is going to be stored."""


class AdmissionChain(AdmissionPlugin):
    """Plugins in their order; the first refusal ends it."""

    def __init__(self, plugins: Sequence[AdmissionPlugin]) -> None:
        self._plugins = plugins
        self._seeing = lru_cache(maxsize=256)(self._choose_plugins)

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """All of them, one after the other; all once more if a webhook has changed something."""
        for plugin in self._seeing(attributes.resource.storage).mutating:
            await plugin.mutate(attributes)
        if attributes.again.wanted and not attributes.again.second_round:
            attributes.again.second_round = True
            await self.mutate(attributes)

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """All of them, one after the other."""
        for plugin in self._seeing(attributes.resource.storage).validating:
            await plugin.validate(attributes)

    def _choose_plugins(self, storage: str) -> "_ChosenPlugins":
        """Those that have something to do with objects that are stored there."""
        seeing = [one for one in self._plugins if not one.sees or storage in one.sees]
        return _ChosenPlugins(
            [one for one in seeing if type(one).mutate is not AdmissionPlugin.mutate],
            [one for one in seeing if type(one).validate is not AdmissionPlugin.validate],
        )


class _ChosenPlugins(NamedTuple):
    mutating: Sequence[AdmissionPlugin]
    validating: Sequence[AdmissionPlugin]
