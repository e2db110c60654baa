"""Downward API references in environment variables (``validateObjectFieldSelector``; pure)."""

import re
from collections.abc import Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_MAPS = ("metadata.annotations", "metadata.labels")
_KNOWN = (
    *_MAPS,
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.restartPolicy", "spec.host"),
    *("spec.serviceAccountName", "spec.schedulerName", "status.phase"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
"""All known field paths; some are not allowed in environment variables."""

_VARIABLES = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_PAGES = ("requests.hugepages-", "limits.hugepages-")
_SUBSCRIPTED = re.compile(r"(.*)\['(.*)'\]", re.DOTALL)


def check_field(said: Object, path: str) -> Iterator[Cause]:
    """Validates the ``fieldRef`` of a variable."""
    version, wanted = said.get("apiVersion") or "v1", said.get("fieldPath") or ""
    if not wanted:
        yield field_errors.value_required(f"{path}.fieldPath")
        return
    subscripted = _SUBSCRIPTED.fullmatch(wanted)
    if why := _unconvertible(version, wanted, subscripted):
        yield field_errors.invalid(f"{path}.fieldPath", wanted, f"error converting fieldPath: {why}")
    elif subscripted:
        key = subscripted[2].lower() if subscripted[1] == "metadata.annotations" else subscripted[2]
        if wrong := name_rules.qualified_name_error(key):
            yield field_errors.invalid(path, key, wrong)
    elif (wanted := "spec.nodeName" if wanted == "spec.host" else wanted) not in _VARIABLES:
        yield field_errors.not_supported(f"{path}.fieldPath", wanted, _VARIABLES)


def check_resource(said: Object, path: str) -> Iterator[Cause]:
    """Validates the ``resourceFieldRef`` of a variable."""
    wanted = said.get("resource") or ""
    if not wanted:
        yield field_errors.value_required(f"{path}.resource")
    elif wanted not in _RESOURCES and not wanted.startswith(_PAGES):
        yield field_errors.not_supported(f"{path}.resource", wanted, _RESOURCES)


def _unconvertible(version: str, wanted: str, subscripted: re.Match[str] | None) -> str:
    """Why the field does not exist (``ConvertDownwardAPIFieldLabel``)."""
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted:
        return "" if subscripted[1] in _MAPS else f"field label does not support subscript: {wanted}"
    return "" if wanted in _KNOWN else f"field label not supported: {wanted}"
