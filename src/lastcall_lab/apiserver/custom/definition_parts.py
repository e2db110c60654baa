"""Rules for smaller parts of a definition: subresources, printer columns, selectable fields, conversion (pure)."""

from collections.abc import Iterator, Sequence

from lastcall_lab.apiserver.custom.field_paths import InvalidPath, schema_at
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_FIELDS = 8


def subresource_violations(said: Object, path: str) -> Iterator[Cause]:
    """The rules for the paths of the scale subresource."""
    scale = said.get("scale")
    if scale is None:
        return
    for name, part in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        at, where = f"{path}.scale.{name}", scale.get(name, "")
        if not where:
            yield field_errors.value_required(at)
        elif not where.startswith("."):
            yield field_errors.invalid(at, where, "must be a simple json path starting with .")
        elif not where.startswith(part):
            yield field_errors.invalid(at, where, f"should be a json path under {part[:-1]}")
    at, where = f"{path}.scale.labelSelectorPath", scale.get("labelSelectorPath", "")
    if where and not where.startswith("."):
        yield field_errors.invalid(at, where, "must be a simple json path starting with .")
    elif where and not where.startswith((".spec.", ".status.")):
        yield field_errors.invalid(at, where, "should be a json path under either .spec or .status")


def column_violations(columns: Sequence[Object], path: str) -> Iterator[Cause]:
    """The rules for printer columns."""
    for index, column in enumerate(columns):
        at, kind, form, where = f"{path}[{index}]", column.get("type", ""), column.get("format"), column.get("jsonPath")
        if not column.get("name"):
            yield field_errors.value_required(f"{at}.name")
        if not kind:
            yield field_errors.value_required(f"{at}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
        elif kind not in _COLUMN_TYPES:
            yield field_errors.invalid(f"{at}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
        if form and form not in _COLUMN_FORMATS:
            yield field_errors.invalid(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not where:
            yield field_errors.value_required(f"{at}.JSONPath")
        elif not where.startswith("."):
            yield field_errors.invalid(f"{at}.JSONPath", where, "must be a simple json path starting with .")


def selectable_field_violations(said: Sequence[Object], schema: Object, path: str) -> Iterator[Cause]:
    """The rules for selectable fields."""
    seen: list[str] = []
    for index, one in enumerate(said):
        at, where = f"{path}[{index}].jsonPath", one.get("jsonPath", "")
        if not where:
            yield field_errors.value_required(at)
            continue
        try:
            found = schema_at(where, schema, keys=False)
        except InvalidPath as error:
            yield field_errors.invalid(at, where, f"is an invalid path: {error}")
            continue
        if where.split(".")[1] == "metadata":
            yield field_errors.invalid(at, where, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            why = "must point to a field of type string, boolean or integer."
            yield field_errors.invalid(at, where, f"{why} Enum string fields and strings with formats are allowed.")
        if where in seen:
            yield field_errors.duplicate(at, where)
        seen.append(where)
    if len(set(seen)) > _MOST_FIELDS:
        yield field_errors.too_many(path, len(set(seen)), _MOST_FIELDS)


def conversion_violations(said: Object) -> Iterator[Cause]:
    """The rules for the conversion between versions."""
    strategy, at = said.get("strategy", ""), "spec.conversion"
    webhook = said.get("webhook") or {}
    if not strategy:
        yield field_errors.value_required(f"{at}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield field_errors.not_supported(f"{at}.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        client = webhook.get("clientConfig")
        if client is None:
            yield field_errors.value_required(f"{at}.webhookClientConfig", "required when strategy is set to Webhook")
        elif (client.get("url") is None) == (client.get("service") is None):
            yield field_errors.value_required(f"{at}.webhookClientConfig", "exactly one of url or service is required")
        versions = webhook.get("conversionReviewVersions")
        if not versions:
            yield field_errors.value_required(f"{at}.conversionReviewVersions")
        elif not {"v1", "v1beta1"} & set(versions):
            why = "must include at least one of v1, v1beta1"
            yield field_errors.invalid(f"{at}.conversionReviewVersions", versions, why)
        return
    why = "should not be set when strategy is not set to Webhook"
    if webhook.get("clientConfig") is not None:
        yield field_errors.forbidden(f"{at}.webhookClientConfig", why)
    if webhook.get("conversionReviewVersions"):
        yield field_errors.forbidden(f"{at}.conversionReviewVersions", why)
