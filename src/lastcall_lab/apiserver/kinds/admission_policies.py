"""Validating- and MutatingAdmissionPolicies (``pkg/apis/admissionregistration``)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lastcall.model import name_rules
from lastcall_lab.apiserver.cel.admission_variables import DeclaredVariables
from lastcall_lab.apiserver.cel.signatures import DYN, Type
from lastcall_lab.apiserver.kinds import common_rules, match_resources
from lastcall_lab.apiserver.kinds.condition_rules import validate_conditions
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MOST_ANNOTATIONS = 20
_LONGEST_EXPRESSION = 5 * 1024
_BOTH = "validations or auditAnnotations must contain at least one item"
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_PATCHES: Mapping[str, tuple[str, str]] = {
    "ApplyConfiguration": ("applyConfiguration", "Object"),
    "JSONPatch": ("jsonPatch", "list(JSONPatch)"),
}
"""The field of each patch type, and the type of its expression."""


class _AdmissionPolicyKind(KindBehaviour):
    """The common behaviour of both kinds."""

    known_finalizers = False
    has_generation = True
    needs_revision = True
    mutating = False

    def default(self, obj: Object) -> None:
        """Sets failurePolicy Fail, matchPolicy Equivalent, and selectors that match everything."""
        spec = common_rules.sub_object(obj, "spec")
        common_rules.fill_missing(spec, failurePolicy="Fail")
        match_resources.default_resources(spec.get("matchConstraints"))

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``validateValidatingAdmissionPolicy`` and ``validateMutatingAdmissionPolicy``."""
        return self._check(obj, conditions_too=True)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The same validation without unchanged match conditions."""
        same = (new["spec"].get("matchConditions") or []) == (old["spec"].get("matchConditions") or [])
        return self._check(new, conditions_too=not same)

    def _check(self, obj: Object, *, conditions_too: bool) -> Iterator[Cause]:
        spec, params = obj["spec"], obj["spec"].get("paramKind") is not None
        yield from common_rules.check_one_of(spec["failurePolicy"], "spec.failurePolicy", "Fail", "Ignore")
        if params:
            yield from _check_param_kind(spec["paramKind"], "spec.paramKind")
        constraints = spec.get("matchConstraints")
        if constraints is None:
            yield field_errors.value_required("spec.matchConstraints")
        else:
            yield from match_resources.check_resources(constraints, "spec.matchConstraints", mutating=self.mutating)
            if not constraints.get("resourceRules"):
                yield field_errors.value_required("spec.matchConstraints.resourceRules")
        if conditions_too:
            conditions = spec.get("matchConditions") or ()
            yield from match_resources.check_conditions(
                conditions, "spec.matchConditions", DeclaredVariables(params=params)
            )
        composed: dict[str, Type] = {}
        for index, variable in enumerate(spec.get("variables") or ()):
            yield from _check_variable(variable, f"spec.variables[{index}]", composed, params=params)
        yield from self._check_work(obj, composed if spec.get("variables") or self.mutating else None, params=params)

    def _check_work(self, obj: Object, composed: Mapping[str, Type] | None, *, params: bool) -> Iterator[Cause]:
        raise NotImplementedError


class ValidatingPolicyKind(_AdmissionPolicyKind):
    """Policies that reject requests."""

    has_status = True

    def prepare_create(self, obj: Object) -> None:
        """Sets an empty status."""
        obj["status"] = {}

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``validateValidatingAdmissionPolicyStatus``."""
        status = new.get("status") or {}
        warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
        for index, warning in enumerate(warnings):
            for name in ("warning", "fieldRef"):
                if not (warning.get(name) or "").strip():
                    yield field_errors.value_required(f"status.typeChecking.expressionWarnings[{index}].{name}")
        yield from validate_conditions(status.get("conditions") or (), "status.conditions")

    def _check_work(self, obj: Object, composed: Mapping[str, Type] | None, *, params: bool) -> Iterator[Cause]:
        spec = obj["spec"]
        validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not validations and not annotations:
            yield field_errors.value_required("spec.validations", _BOTH)
            yield field_errors.value_required("spec.auditAnnotations", _BOTH)
            return
        declared = DeclaredVariables(params=params, composed=composed)
        messages = DeclaredVariables(params=params, composed=composed, authorizer=False)
        for index, validation in enumerate(validations):
            yield from _check_validation(validation, f"spec.validations[{index}]", declared, messages)
        if len(annotations) > _MOST_ANNOTATIONS:
            why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
            yield field_errors.invalid("spec.auditAnnotations", [_by_go_name(one) for one in annotations], why)
        for index, annotation in enumerate(annotations):
            path = f"spec.auditAnnotations[{index}]"
            yield from _check_annotation(annotation, path, obj["metadata"].get("name", ""), declared)
            if annotation.get("key") in [one.get("key") for one in annotations[:index]]:
                yield field_errors.duplicate(f"{path}.key", annotation.get("key"))


class MutatingPolicyKind(_AdmissionPolicyKind):
    """Policies that change objects."""

    mutating = True

    def _check_work(self, obj: Object, composed: Mapping[str, Type] | None, *, params: bool) -> Iterator[Cause]:
        spec = obj["spec"]
        if not spec.get("mutations"):
            yield field_errors.value_required("spec.mutations", "mutations must contain at least one item")
        declared = DeclaredVariables(params=params, composed=composed, patches=True)
        for index, mutation in enumerate(spec.get("mutations") or ()):
            yield from _check_mutation(mutation, f"spec.mutations[{index}]", declared)
        if not spec.get("reinvocationPolicy"):
            yield field_errors.value_required("spec.reinvocationPolicy")
        else:
            yield from common_rules.check_one_of(
                spec["reinvocationPolicy"], "spec.reinvocationPolicy", "IfNeeded", "Never"
            )


# -- parts -------------------------------------------------------------------------------------------------------------


def _check_param_kind(said: Object, path: str) -> Iterator[Cause]:
    """``validateParamKind``."""
    version, kind = said.get("apiVersion") or "", said.get("kind") or ""
    if not version:
        yield field_errors.value_required(f"{path}.apiVersion")
    elif version.count("/") > 1:
        yield field_errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    else:
        group, _, number = version.rpartition("/")
        if group and (wrong := name_rules.subdomain_error(group)):
            yield field_errors.invalid(f"{path}.apiVersion", group, wrong)
        if not number:
            yield field_errors.invalid(f"{path}.apiVersion", version, "version must be specified")
        elif wrong := name_rules.service_name_error(number):
            yield field_errors.invalid(f"{path}.apiVersion", number, wrong)
    if not kind:
        yield field_errors.value_required(f"{path}.kind")
    elif wrong := name_rules.service_name_error(kind.lower()):
        yield field_errors.invalid(f"{path}.kind", kind, f"may have mixed case, but should otherwise match: {wrong}")


def _check_variable(variable: Object, path: str, composed: dict[str, Type], *, params: bool) -> Iterator[Cause]:
    """``validateVariable``. Later expressions can use a valid one."""
    name, expression = variable.get("name") or "", variable.get("expression") or ""
    if not name.strip():
        yield field_errors.value_required(f"{path}.name", "name is not specified")
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        yield field_errors.invalid(f"{path}.name", name, "must be a valid CEL identifier")
    if not expression.strip():
        yield field_errors.value_required(f"{path}.expression", "expression is not specified")
        return
    wrong, found = DeclaredVariables(params=params, composed=composed).check(expression)
    if wrong:
        yield field_errors.invalid(f"{path}.expression", expression, wrong)
    composed[name] = _kept_type(found)


def _kept_type(found: Type) -> Type:
    """The type as other expressions see it; object types become unknown (``convertCelTypeToDeclType``)."""
    plain = ("bool", "bytes", "double", "int", "null_type", "string", "uint", "list(", "map(", "google.protobuf.")
    return found if found is None or found.startswith(plain) else DYN


def _check_validation(
    validation: Object, path: str, declared: DeclaredVariables, messages: DeclaredVariables
) -> Iterator[Cause]:
    """``validateValidation``."""
    expression, said = validation.get("expression") or "", validation.get("messageExpression") or ""
    if not expression.strip():
        yield field_errors.value_required(f"{path}.expression", "expression is not specified")
    elif wrong := declared.check(expression, ("bool",))[0]:
        yield field_errors.invalid(f"{path}.expression", expression, wrong)
    if said and not said.strip():
        yield field_errors.invalid(f"{path}.messageExpression", said, "must be non-empty if specified")
    elif said and (wrong := messages.check(said, ("string",))[0]):
        yield field_errors.invalid(f"{path}.messageExpression", said, wrong)
    message = validation.get("message") or ""
    if message and not message.strip():
        yield field_errors.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif re.search(r"[\n\r]", message.strip()):
        yield field_errors.invalid(f"{path}.message", message, "must not contain line breaks")
    yield from common_rules.check_one_of(validation.get("reason"), f"{path}.reason", *_REASONS)


def _check_annotation(annotation: Object, path: str, policy: str, declared: DeclaredVariables) -> Iterator[Cause]:
    """``validateAuditAnnotation``."""
    key, expression = annotation.get("key") or "", (annotation.get("valueExpression") or "").strip()
    if not policy:
        yield field_errors.invalid(f"{path}.key", key, "requires metadata.name be non-empty")
    elif wrong := name_rules.qualified_name_error(f"{policy}/{key}"):
        yield field_errors.invalid(f"{path}.key", f"{policy}/{key}", wrong)
    if not expression:
        yield field_errors.value_required(f"{path}.valueExpression", "valueExpression is not specified")
    elif len(expression) > _LONGEST_EXPRESSION:
        yield field_errors.value_required(
            f"{path}.valueExpression", f"must not exceed {_LONGEST_EXPRESSION} bytes in length"
        )
    elif wrong := declared.check(expression, ("string", "null_type"))[0]:
        yield field_errors.invalid(f"{path}.valueExpression", annotation["valueExpression"], wrong)


def _check_mutation(mutation: Object, path: str, declared: DeclaredVariables) -> Iterator[Cause]:
    """``validateMutation``."""
    kind = mutation.get("patchType") or ""
    if not kind:
        yield field_errors.value_required(f"{path}.patchType")
        return
    if kind not in _PATCHES:
        yield field_errors.not_supported(f"{path}.patchType", kind, _names(_PATCHES))
        return
    name, wanted = _PATCHES[kind]
    patch = mutation.get(name)
    if patch is None:
        yield field_errors.value_required(f"{path}.{name}", f"must be specified when patchType is {kind}")
    else:
        expression = (patch.get("expression") or "").strip()
        if not expression:
            yield field_errors.value_required(f"{path}.{name}.expression")
        elif wrong := declared.check(expression, (wanted,))[0]:
            yield field_errors.invalid(f"{path}.{name}.expression", expression, wrong)
    for other, (field, _) in _PATCHES.items():
        if other != kind and mutation.get(field) is not None:
            yield field_errors.invalid(
                f"{path}.{field}", f"{{{field}}}", f"must not be specified when patchType is {kind}"
            )


def _by_go_name(annotation: Object) -> Object:
    """The Go name of the field, as in messages."""
    return {name[0].upper() + name[1:]: value for name, value in annotation.items()}


def _names(table: Mapping[str, object]) -> Sequence[str]:
    return sorted(table)
