"""Finds providers by their names: entry points of the group ``lastcall.guard_providers``, loaded when they are used.

An entry point refers to what makes the ``ports.guard.GuardProviderFactory``: it is called without arguments, once in a
process.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lastcall.errors import InvalidInput, LastcallError
from lastcall.model.decoding import quote_value
from lastcall.model.guard_policy import GuardPolicy
from lastcall.ports.guard import GuardProvider, GuardProviderFactory, NamespaceAccess

GROUP = "lastcall.guard_providers"


class ProviderRegistry:
    """``ports.guard_cluster.GuardProviders``. ``access`` gives what providers may reach in a namespace.

    Reads the installed distributions when it is created.
    """

    def __init__(
        self, access: Callable[[str], NamespaceAccess], *, installed: Iterable[EntryPoint] | None = None
    ) -> None:
        found = entry_points(group=GROUP) if installed is None else installed
        self._installed = {one.name: one for one in found}
        self._factories: dict[str, GuardProviderFactory] = {}
        self._access = access

    @property
    def names(self) -> list[str]:
        """The names that a GuardPolicy may use."""
        return sorted(self._installed)

    def check_provider(self, provider: dict[str, dict[str, Any]]) -> list[str]:
        """Each violation in ``spec.provider`` with field, value and rule.

        LastcallError if the provider is there and cannot be loaded.
        """
        if len(provider) != 1:
            return [f"spec.provider: {quote_value(sorted(provider))}: must be one provider with its settings"]
        [(name, settings)] = provider.items()
        if name not in self._installed:
            return [f"spec.provider: {quote_value(name)}: {self._describe_unknown(name)}"]
        return self._load_factory(name).check_settings(settings)

    def make_policy_provider(self, policy: GuardPolicy) -> GuardProvider:
        """The provider with the policy's settings. InvalidInput names each violation."""
        source = f"GuardPolicy {policy.metadata.namespace}/{policy.name}"
        if violations := self.check_provider(policy.spec.provider):
            raise InvalidInput(source, violations)
        [(name, settings)] = policy.spec.provider.items()
        return self._load_factory(name).make_provider(settings, self._access(policy.metadata.namespace))

    def _load_factory(self, name: str) -> GuardProviderFactory:
        if name not in self._factories:
            try:
                self._factories[name] = self._installed[name].load()()
            except Exception as error:  # the code is that of another distribution
                raise LastcallError(f'the provider "{name}" cannot be loaded: {error!r}') from error
        return self._factories[name]

    def _describe_unknown(self, name: str) -> str:
        close = get_close_matches(name, self._installed, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        return f"no provider has this name; {meant}Known are {', '.join(self.names) or 'none'}"
