"""How PodDisruptionBudgets are read from a file: policy/v1, and policy/v1beta1 of clusters before 1.25 (pure)."""

from typing import Any, Final

from lastcall.model.budgets import Budget
from lastcall.model.list_file import FileKind


def convert_beta_budget(value: dict[str, Any]) -> dict[str, Any]:
    """A policy/v1beta1 budget as policy/v1: an empty selector covers no pod there, but all pods of the namespace in v1.

    The rule is that of pkg/apis/policy/v1beta1/conversion.go. In policy/v1 a budget without a selector covers no pod.
    """
    spec = value.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(selector, dict) or any(selector.values()):
        return value
    return value | {"spec": spec | {"selector": None}}


BUDGET_KIND: Final = FileKind("policy/v1", Budget, namespaced=True, older={"policy/v1beta1": convert_beta_budget})
