"""Whether a preparation can be undone, which a person is told before it begins (pure)."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lastcall.model.guard_policy import GuardPolicy

_REVERSIBLE: Final = ("etcd", "patroni", "rabbitmq", "redis", "redis-sentinel", "tikv")
"""Providers of lastcall whose preparation is always undone if the pod stays."""

_STATED: Final = ("exec", "http")
"""Providers whose settings say whether it is."""


def is_irreversible(policy: GuardPolicy) -> bool:
    """Whether it is known that a preparation of this policy cannot be undone."""
    provider, settings = _provider_of(policy)
    return provider in _STATED and not _is_stated_reversible(settings)


def describe_point_of_no_return(policy: GuardPolicy) -> str:
    """Whether a preparation of this policy can be undone, in words."""
    provider, _ = _provider_of(policy)
    if is_irreversible(policy):
        return f"point of no return: a preparation by provider {provider} cannot be undone once it has begun"
    if provider in _STATED:
        return f"provider {provider} undoes the preparation if the pod stays, as its settings say"
    if provider in _REVERSIBLE:
        return f"provider {provider} undoes the preparation if the pod stays"
    return f"whether a preparation by provider {provider} can be undone is not known"


def _provider_of(policy: GuardPolicy) -> tuple[str, Mapping[str, Any]]:
    return next(iter(policy.spec.provider.items()), ("", {}))


def _is_stated_reversible(settings: Mapping[str, Any]) -> bool:
    try:
        return msgspec.convert(settings.get("reversible", False), bool)
    except msgspec.ValidationError:
        return False
