"""Evaluates the expressions of a policy for one request."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lastcall_lab.apiserver.admission.policies import cel_objects
from lastcall_lab.apiserver.admission.policies.cel_authorizer import CelAuthorizer
from lastcall_lab.apiserver.cel import evaluator
from lastcall_lab.apiserver.values.request import Object

_NAMESPACE_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)


class PolicyScope:
    """The variables of one request, and the policy's composed variables, which are evaluated lazily."""

    def __init__(
        self, variables: Mapping[str, Any], composed: Mapping[str, str], authorizer: CelAuthorizer | None
    ) -> None:
        self._variables = dict(variables)
        self._composed = composed
        self._values: dict[str, Any] = {}
        self._functions: dict[str, Callable[..., Any]] = {
            cel_objects.COMPOSED: self._compose,
            cel_objects.MAKE: cel_objects.make_object,
            "jsonpatch.escapeKey": lambda key: key.replace("~", "~0").replace("/", "~1"),
        }
        if authorizer:
            self._variables["authorizer"] = authorizer.variable
            self._functions.update(authorizer.cel_functions)

    def evaluate(self, expression: str) -> Any:
        """The value. CelError with the words in which policies report it."""
        try:
            return self._value(expression)
        except evaluator.CelError as error:
            if str(error).startswith("compilation failed"):
                raise evaluator.CelError(f"compilation error: {error}") from None
            raise evaluator.CelError(f"expression '{expression}' resulted in error: {error}") from None

    def find_unmet(self, conditions: Iterable[str]) -> tuple[bool, str]:
        """Whether one of the conditions is false; if none is, the errors of the others."""
        wrong = []
        for expression in conditions:
            try:
                if self.evaluate(expression) is False:
                    return True, ""
            except evaluator.CelError as error:
                wrong.append(str(error))
        return False, wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]" if wrong else ""

    def _value(self, expression: str) -> Any:
        return evaluator.evaluate_admission(cel_objects.rewrite_objects(expression), self._variables, self._functions)

    def _compose(self, name: str) -> Any:
        if name not in self._values:
            expression = self._composed.get(name)
            if expression is None:
                raise ValueError(f"no such key: {name}")
            try:
                self._values[name] = self._value(expression)
            except evaluator.CelError as error:
                raise ValueError(f'composited variable "{name}" fails to evaluate: {error}') from None
        return self._values[name]


def namespace_variable(namespace: Object | None) -> Object | None:
    """The namespace as value of the variable ``namespaceObject``."""
    if namespace is None:
        return None
    metadata = {name: value for name, value in namespace["metadata"].items() if name in _NAMESPACE_METADATA}
    return {"metadata": metadata, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}
