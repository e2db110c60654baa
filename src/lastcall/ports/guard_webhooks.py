"""Port for the guard's webhooks as the controller sees them; ``adapters.webhook.guard_webhooks`` implements it."""

from collections.abc import Mapping
from typing import Any, Protocol

Configuration = Mapping[str, Any]
"""The guard's ValidatingWebhookConfiguration as JSON."""


class GuardWebhooks(Protocol):
    """Errors are those of the API client."""

    async def read_configuration(self) -> Configuration | None:
        """The configuration as it is now; None if there is none."""
        ...

    async def has_ready_endpoint(self) -> bool:
        """Whether the guard's Service has a ready endpoint now."""
        ...

    async def withdraw(self, configuration: Configuration) -> None:
        """Withdraws the webhooks. Conflict if the configuration has changed since it was read."""
        ...

    async def restore(self, configuration: Configuration) -> None:
        """Puts the webhooks back and removes their copy. Conflict if the configuration has changed since it was read."""
        ...

    async def write_event(self, configuration: Configuration, reason: str, message: str, *, is_warning: bool) -> None:
        """Writes an Event about the configuration; an error is logged."""
        ...
