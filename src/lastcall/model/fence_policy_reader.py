"""Reads FencePolicy objects (pure)."""

from collections.abc import Mapping
from typing import Any

from lastcall.errors import InvalidInput
from lastcall.model import fence_policy_rules
from lastcall.model.decoding import convert_readable
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Fencer


def parse_policy(found: Any) -> FencePolicy:
    """The policy in an API object of dicts, lists and scalars; unknown fields are ignored.

    InvalidInput lists every violation at once, each with field, value and rule.
    """
    policy, wrong = convert_readable(found, FencePolicy)
    if policy is not None:
        wrong += fence_policy_rules.policy_violations(
            policy.spec, policy.spec.fencers if not wrong else _readable_fencers(found)
        )
    if wrong or policy is None:
        raise InvalidInput(f"fencepolicy {_object_name(found)}", wrong)
    return policy


def _readable_fencers(found: Any) -> list[Fencer | None]:
    """The fencers in their order; None for one that cannot be read."""
    spec = found.get("spec")
    every = spec.get("fencers") if isinstance(spec, Mapping) else None
    listed = every if isinstance(every, list) else []
    return [one if not wrong else None for one, wrong in (convert_readable(raw, Fencer) for raw in listed)]


def _object_name(found: Any) -> str:
    metadata = found.get("metadata") if isinstance(found, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else "without a name"
