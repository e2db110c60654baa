"""The variables of admission expressions and their types (``k8s.io/apiserver/pkg/admission/plugin/cel``), pure."""

import re
from collections.abc import Mapping, Sequence

from lastcall_lab.apiserver.cel import evaluator, type_checker
from lastcall_lab.apiserver.cel.signatures import AUTHORIZER, DYN, RESOURCE_CHECK, Type

_LABELS, _STRINGS = "map(string, string)", "list(string)"
_REQUEST, _KIND, _RESOURCE, _USER = (
    f"kubernetes.{name}" for name in ("AdmissionRequest", "GroupVersionKind", "GroupVersionResource", "UserInfo")
)
_NAMESPACE, _METADATA, _STATUS = (f"kubernetes.Namespace{name}" for name in ("", "Metadata", "Status"))
_SPEC, _CONDITION = "kubernetes.NamespaceSpec", "kubernetes.NamespaceCondition"
_TIME = "google.protobuf.Timestamp"
_VARIABLES = "kubernetes.variables"

_MADE = re.compile(r"(?<![\w.'\"])((?:Object(?:\s*\.\s*\w+)*|JSONPatch)\s*)\{")

_FIELDS: Mapping[str, Mapping[str, Type]] = {
    AUTHORIZER: {"requestResource": RESOURCE_CHECK},
    _KIND: dict.fromkeys(("group", "version", "kind"), "string"),
    _RESOURCE: dict.fromkeys(("group", "version", "resource"), "string"),
    _USER: {
        **dict.fromkeys(("username", "uid"), "string"),
        "groups": _STRINGS,
        "extra": "map(string, list(string))",
    },
    _REQUEST: {
        **dict.fromkeys(("subResource", "requestSubResource", "name", "namespace", "operation"), "string"),
        "kind": _KIND,
        "resource": _RESOURCE,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "userInfo": _USER,
        "dryRun": "bool",
        "options": DYN,
    },
    _NAMESPACE: {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS},
    _METADATA: {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), "string"),
        **dict.fromkeys(("labels", "annotations"), _LABELS),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), "int"),
        "finalizers": _STRINGS,
    },
    _SPEC: {"finalizers": _STRINGS},
    _STATUS: {"conditions": f"list({_CONDITION})", "phase": "string"},
    _CONDITION: {**dict.fromkeys(("status", "type", "message", "reason"), "string"), "lastTransitionTime": _TIME},
}


class DeclaredVariables:
    """The variables that an expression can use: the common ones of admission and the requested ones.

    ``composed`` are the types of the policy's own variables; None if expressions cannot use any. With ``patches``,
    expressions can construct objects and JSON patches.
    """

    def __init__(
        self,
        *,
        params: bool = False,
        authorizer: bool = True,
        patches: bool = False,
        composed: Mapping[str, Type] | None = None,
    ) -> None:
        self._patches = patches
        self._types: dict[str, Type] = {
            "object": DYN,
            "oldObject": DYN,
            "request": _REQUEST,
            "namespaceObject": _NAMESPACE,
        }
        if params:
            self._types["params"] = DYN
        if authorizer:
            self._types["authorizer"] = AUTHORIZER
        if composed is not None:
            self._types["variables"] = _VARIABLES
        self._known = [*self._types, *(("jsonpatch",) if patches else ())]
        self._fields = {**_FIELDS, _VARIABLES: dict(composed or {})}

    def check(self, expression: str, wanted: Sequence[str] = ()) -> tuple[str, Type]:
        """Why the expression is invalid (empty if it is valid), and its type. ``wanted`` are the allowed types."""
        if wrong := evaluator.compile_error(expression, declared=self._known) or self._unmade(expression):
            return wrong, None
        try:
            found = type_checker.expression_type(expression, self._types, self._fields)
        except type_checker.WrongType as error:
            return evaluator.error_report_at(expression, error.start, str(error)), None
        if found is None or not wanted or found in wanted:
            return "", found
        if len(wanted) == 1:
            return f"must evaluate to {wanted[0]} but got {found}", found
        return f"must evaluate to one of [{' '.join(wanted)}] but got {found}", found

    def _unmade(self, expression: str) -> str:
        """Why the expression cannot construct its objects."""
        found = None if self._patches else _MADE.search(expression)
        if found is None:
            return ""
        type_ = re.sub(r"\s", "", found[1])
        return evaluator.error_report_at(
            expression, found.end(1), f"undeclared reference to '{type_}' (in container '')"
        )
