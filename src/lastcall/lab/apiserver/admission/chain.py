"""One write on its way to the store, and the plugins that it passes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lastcall.lab.apiserver.request import Identity, Object
from lastcall.lab.apiserver.scheme import Resource


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
    """CreateOptions, UpdateOptions, PatchOptions or DeleteOptions, as webhooks are shown them."""
    warnings: list[str] = field(default_factory=list)
    """What the client is to be told besides the answer."""


class Plugin:
    """Lets everything pass. ApiError refuses the request."""

    async def mutate(self, attributes: Attributes) -> None:
        """May change ``attributes.obj`` in place."""

    async def validate(self, attributes: Attributes) -> None:
        """Sees the object as it is going to be stored."""


class Chain(Plugin):
    """Plugins in their order; the first refusal ends it."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._plugins = plugins

    async def mutate(self, attributes: Attributes) -> None:
        """All of them, one after the other."""
        for plugin in self._plugins:
            await plugin.mutate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """All of them, one after the other."""
        for plugin in self._plugins:
            await plugin.validate(attributes)
