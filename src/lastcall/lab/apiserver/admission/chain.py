"""One write on its way to the store, and the plugins that it passes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple

from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Identity, Object
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.status import ApiError, forbidden


@dataclass
class Reinvocation:
    """Who of one plugin is to see the object once more because somebody after them has changed it."""

    asked: list[str] = field(default_factory=list)
    """Who has been asked, and wants to be asked again after a change."""
    due: list[str] = field(default_factory=list)
    """Those of them after whom something has changed."""
    output: Object | None = None
    """The object as they have left it last; None if none has seen it."""

    def require(self) -> None:
        """All that have been asked so far are due."""
        self.due += self.asked
        self.asked = []


@dataclass
class Again:
    """The second round of the mutating plugins (``reinvocationContext``)."""

    wanted: bool = False
    """Whether there is to be a second round."""
    second_round: bool = False
    policies: Reinvocation = field(default_factory=Reinvocation)
    webhooks: Reinvocation = field(default_factory=Reinvocation)

    @property
    def seen(self) -> bool:
        """Whether a policy or a webhook has seen the object, and may have taken a default away."""
        return self.policies.output is not None or self.webhooks.output is not None


@dataclass
class Attributes:
    """What is about to happen. ``obj`` is None for a DELETE, ``old`` for a CREATE; both have kind and apiVersion.

    For a subresource that is no part of the object (``eviction``, ``binding``) ``obj`` is what was posted.
    """

    operation: str
    """CREATE, UPDATE, DELETE or CONNECT."""
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: Identity
    obj: Object | None
    old: Object | None
    dry_run: bool
    options: Object
    """CreateOptions, UpdateOptions (of a patch too) or DeleteOptions, as webhooks are shown them."""
    warnings: list[str] = field(default_factory=list)
    """What the client is to be told besides the answer."""
    annotations: dict[str, str] = field(default_factory=dict)
    """What the audit is to be told besides the request."""
    again: Again = field(default_factory=Again)

    @classmethod
    def of(cls, context: Context, operation: str, obj: Object, old: Object | None = None) -> "Attributes":
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
            options=context.options("CreateOptions" if operation == "CREATE" else "UpdateOptions"),
            warnings=context.warnings,
            annotations=context.request.annotations,
        )


def refusal(attributes: Attributes, why: str) -> ApiError:
    """What the client is told when a plugin says no (``admission.NewForbidden``)."""
    metadata = (attributes.obj or {}).get("metadata") or {}
    name = attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return forbidden(attributes.resource.plural, attributes.resource.group, name, why)


class Plugin:
    """Lets everything pass. ApiError refuses the request."""

    sees: ClassVar[Collection[str]] = ()
    """The storages of what it is asked about; everything, if it names none."""

    async def mutate(self, attributes: Attributes) -> None:
        """May change ``attributes.obj`` in place."""

    async def validate(self, attributes: Attributes) -> None:
        """Sees the object as it is going to be stored."""


class Chain(Plugin):
    """Plugins in their order; the first refusal ends it."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._plugins = plugins
        self._seeing = lru_cache(maxsize=256)(self._choose)

    async def mutate(self, attributes: Attributes) -> None:
        """All of them, one after the other; all once more if a webhook has changed something."""
        for plugin in self._seeing(attributes.resource.storage).mutating:
            await plugin.mutate(attributes)
        if attributes.again.wanted and not attributes.again.second_round:
            attributes.again.second_round = True
            await self.mutate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """All of them, one after the other."""
        for plugin in self._seeing(attributes.resource.storage).validating:
            await plugin.validate(attributes)

    def _choose(self, storage: str) -> "_Seeing":
        """Those that have something to do with objects that are stored there."""
        seeing = [one for one in self._plugins if not one.sees or storage in one.sees]
        return _Seeing(
            [one for one in seeing if type(one).mutate is not Plugin.mutate],
            [one for one in seeing if type(one).validate is not Plugin.validate],
        )


class _Seeing(NamedTuple):
    mutating: Sequence[Plugin]
    validating: Sequence[Plugin]
