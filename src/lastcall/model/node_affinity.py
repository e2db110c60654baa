"""Which nodes a pod may be on by its node selector and required node affinity (pure; ``component-helpers/nodeaffinity``)."""

from collections.abc import Iterable, Mapping
from typing import Any

from lastcall.model.label_selector import Requirement

Spec = Mapping[str, Any]
"""A pod's spec, as JSON has it."""


def may_be_on(spec: Spec, labels: Mapping[str, str], name: str) -> bool:
    """Whether a node with these labels and this name is one of those that the pod asks for."""
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    required = required_terms(spec)
    return required is None or any(_matches(term, labels, name) for term in required)


def required_terms(spec: Spec) -> Iterable[Mapping[str, Any]] | None:
    """The terms of which one must match; None if the pod asks for nothing. None of them: no node matches."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else required.get("nodeSelectorTerms") or ()


def _matches(term: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    """Everything that it says; a term that says nothing matches no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_requirement(one).matches(labels) for one in expressions) and all(
        _requirement(one).matches({"metadata.name": name}) for one in fields
    )


def _requirement(said: Mapping[str, Any]) -> Requirement:
    return Requirement(said["key"], said["operator"], tuple(said.get("values") or ()))
