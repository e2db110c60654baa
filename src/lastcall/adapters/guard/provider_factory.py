"""Checks the settings of a provider, and makes the provider from them."""

from collections.abc import Callable
from typing import Any, Generic

from lastcall.adapters.guard.settings import S, list_setting_violations, read_settings
from lastcall.ports.guard import GuardProvider, NamespaceAccess


class ProviderFactory(Generic[S]):
    """``ports.guard.GuardProviderFactory`` of providers with settings of one type.

    ``at`` is the field of a GuardPolicy that has them, for messages.
    """

    def __init__(self, type_: type[S], at: str, make: Callable[[S, NamespaceAccess], GuardProvider]) -> None:
        self._type = type_
        self._at = at
        self._make = make

    def check_settings(self, settings: dict[str, Any]) -> list[str]:
        """``GuardProviderFactory.check_settings``."""
        return list_setting_violations(settings, self._type, self._at)

    def make_provider(self, settings: dict[str, Any], access: NamespaceAccess) -> GuardProvider:
        """``GuardProviderFactory.make_provider``."""
        return self._make(read_settings(settings, self._type, self._at), access)
