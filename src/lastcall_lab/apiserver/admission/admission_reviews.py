"""AdmissionReview, version v1 (pure): requests to webhooks and the meaning of their responses.

The messages are those of ``k8s.io/apiserver/pkg/admission/plugin/webhook`` (request, errors).
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.encoding import go_json
from lastcall_lab.apiserver.encoding.request_bodies import from_yaml
from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Object, UserInfo

_GROUP = "admission.k8s.io"
_KIND = "AdmissionReview"


class WebhookCallFailed(Exception):
    """The webhook gave no valid response; the text is the reason in the API server's words."""


@dataclass(frozen=True)
class AdmissionResponse:
    """The response of a webhook."""

    allowed: bool
    result: Object = field(default_factory=dict)
    """The Status of a denial."""
    warnings: Sequence[str] = ()
    patch: Sequence[Any] = ()


def admission_request(attributes: AdmissionAttributes, resource: ServedResource, uid: str) -> Object:
    """The AdmissionRequest for a webhook whose rules match ``resource``, possibly an equivalent of the real one."""
    shown: Object = {"uid": uid, "kind": _kind(attributes, resource), "resource": _resource(resource)}
    if attributes.subresource:
        shown["subResource"] = attributes.subresource
    shown["requestKind"] = _kind(attributes, attributes.resource)
    shown["requestResource"] = _resource(attributes.resource)
    if attributes.subresource:
        shown["requestSubResource"] = attributes.subresource
    if attributes.name:
        shown["name"] = attributes.name
    namespace = attributes.name if attributes.resource.qualified_name == "namespaces" else attributes.namespace
    if namespace:
        shown["namespace"] = namespace
    return {
        **shown,
        "operation": attributes.operation,
        "userInfo": user_info(attributes.user),
        "object": attributes.obj and convert_for_webhook(attributes.obj, attributes, resource),
        "oldObject": attributes.old and convert_for_webhook(attributes.old, attributes, resource),
        "dryRun": attributes.dry_run,
        "options": attributes.options or None,
    }


def encode_review(asked: Object) -> Object:
    """The body of the HTTP request."""
    return {"kind": _KIND, "apiVersion": f"{_GROUP}/v1", "request": asked}


def user_info(user: UserInfo) -> Object:
    """``authentication/v1 UserInfo``."""
    info: Object = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return {name: value for name, value in info.items() if value}


def _kind(attributes: AdmissionAttributes, resource: ServedResource) -> Object:
    """A subresource such as ``scale`` has its own kind, which its object names."""
    said = attributes.obj or attributes.old or {}
    version, kind = said.get("apiVersion", ""), said.get("kind", "")
    if not attributes.subresource or not kind or version == attributes.resource.api_version:
        return {"group": resource.group, "version": resource.version, "kind": kind or resource.kind}
    group, _, number = version.rpartition("/")
    return {"group": group, "version": number, "kind": kind}


def _resource(resource: ServedResource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def convert_for_webhook(obj: Object, attributes: AdmissionAttributes, resource: ServedResource) -> Object:
    """The object in the version that the rules name, with that version's field names."""
    if resource is attributes.resource or obj.get("apiVersion") != attributes.resource.api_version:
        return obj
    shown = version_conversion.with_resource_names(resource, version_conversion.to_stored(obj, attributes.resource))
    return {**shown, "apiVersion": resource.api_version, "kind": resource.kind}


def convert_back(obj: Object, attributes: AdmissionAttributes, resource: ServedResource) -> Object:
    """The object of a webhook in version ``resource``, converted to the version of the request."""
    if obj.get("apiVersion") != resource.api_version:
        return obj
    real = attributes.resource
    return {
        **version_conversion.with_resource_names(real, version_conversion.to_stored(obj, resource)),
        "apiVersion": real.api_version,
        "kind": real.kind,
    }


# -- responses ---------------------------------------------------------------------------------------------------------


def parse_answer(body: bytes, uid: str, *, mutating: bool) -> AdmissionResponse:
    """Parses the response for request ``uid``. WebhookCallFailed if it is invalid."""
    try:
        said = go_json.decode_json(body) if body.lstrip().startswith(b"{") else from_yaml(body).value
    except go_json.MalformedJson as error:
        raise _unread(f"couldn't get version/kind; json parse error: {error}") from None
    except ValueError as error:
        raise _unread(str(error)) from None
    if said is None:
        raise _invalid("webhook response was absent")
    if not isinstance(said, dict):
        kind = go_json.json_type_name(said)
        shape = (
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
        raise _unread(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type {shape}"
        )
    _check_kind(said)
    response = said.get("response")
    _check_types({"response": response}, {"response": (dict, "AdmissionReview", "v1.AdmissionResponse")})
    if response is None:
        raise _invalid("webhook response was absent")
    _check_types(response, _RESPONSE, "response.")
    _check_types(response.get("status") or {}, _STATUS, "response.status.")
    for warning in response.get("warnings") or ():
        _check_types({"warnings": warning}, {"warnings": (str, "AdmissionResponse", "string")}, "response.")
    if (response.get("uid") or "") != uid:
        raise _invalid(f"expected response.uid={json.dumps(uid)}, got {json.dumps(response.get('uid') or '')}")
    version, kind = said.get("apiVersion") or "/", said.get("kind", "")
    if (version, kind) != (f"{_GROUP}/v1", _KIND):
        expected = f"{_GROUP}/v1, Kind={_KIND}"
        raise _invalid(f"expected webhook response of {expected}, got {version}, Kind={kind}")
    return _answer(response, mutating=mutating)


_RESPONSE: Mapping[str, tuple[type, str, str]] = {
    "uid": (str, "AdmissionResponse", "types.UID"),
    "allowed": (bool, "AdmissionResponse", "bool"),
    "status": (dict, "AdmissionResponse", "v1.Status"),
    "patch": (str, "AdmissionResponse", "[]uint8"),
    "patchType": (str, "AdmissionResponse", "v1.PatchType"),
    "auditAnnotations": (dict, "AdmissionResponse", "map[string]string"),
    "warnings": (list, "AdmissionResponse", "[]string"),
}
"""Per field: the type of its value, and Go's names of the struct and of the type."""
_STATUS: Mapping[str, tuple[type, str, str]] = {
    "status": (str, "Status", "string"),
    "message": (str, "Status", "string"),
    "reason": (str, "Status", "v1.StatusReason"),
    "details": (dict, "Status", "v1.StatusDetails"),
    "code": (int, "Status", "int32"),
}


def _check_types(said: Object, types: Mapping[str, tuple[type, str, str]], path: str = "") -> None:
    """Checks the present fields. WebhookCallFailed if a value has the wrong type."""
    for name, (wanted, struct, go_type) in types.items():
        value = said.get(name)
        if value is None or (isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool)):
            continue
        found = f"number {value}" if isinstance(value, float) and wanted is int else go_json.json_type_name(value)
        raise _unread(f"json: cannot unmarshal {found} into Go struct field {struct}.{path}{name} of type {go_type}")


def _check_kind(said: Object) -> None:
    version, kind = said.get("apiVersion") or "", said.get("kind") or ""
    if not version and not kind:
        return  # decoded anyway; the error is reported later
    if (version, kind) == (f"{_GROUP}/v1beta1", _KIND):
        raise _unread("converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion")
    if (version, kind) == ("", _KIND):
        raise _invalid(f"expected webhook response of {_GROUP}/v1, Kind={_KIND}, got /, Kind={_KIND}")
    if (version, kind) != (f"{_GROUP}/v1", _KIND):
        raise _unread(f'no kind "{kind}" is registered for version "{version}" in scheme "lastcall lab"')


def _answer(response: Object, *, mutating: bool) -> AdmissionResponse:
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutating and patch:
        raise _invalid("validating webhook may not return response.patch")
    if not mutating and kind is not None:
        raise _invalid("validating webhook may not return response.patchType")
    if patch and kind is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if kind is not None and not patch:
        raise _invalid("webhook returned response.patchType but not response.patch")
    if kind not in (None, "JSONPatch"):
        raise _invalid(f"invalid value of patchType {json.dumps(kind)}")
    return AdmissionResponse(
        allowed=response.get("allowed") is True,
        result=response.get("status") or {},
        warnings=response.get("warnings") or (),
        patch=_patch(patch) if patch else (),
    )


def _patch(encoded: str) -> Sequence[Any]:
    try:
        patch = go_json.decode_json(base64.b64decode(encoded, validate=True))
    except (binascii.Error, go_json.MalformedJson, TypeError, ValueError) as error:
        raise WebhookCallFailed(f"received undecodable patch in webhook response: {error}") from None
    if not isinstance(patch, list):
        raise WebhookCallFailed("received undecodable patch in webhook response: it is no list")
    return patch


def _unread(why: str) -> WebhookCallFailed:
    return WebhookCallFailed(f"failed to call webhook: {why}")


def _invalid(why: str) -> WebhookCallFailed:
    return WebhookCallFailed(f"received invalid webhook response: {why}")


class WebhookDenial(ApiError):
    """A denial, which passes on the Status that the webhook gave."""

    def __init__(self, name: str, result: Object) -> None:
        code = result.get("code") or 0
        reason, said = result.get("reason", ""), result.get("message") or result.get("reason", "")
        denied = f"admission webhook {json.dumps(name)} denied the request"
        message = f"{denied}: {said}" if said else f"{denied} without explanation"
        super().__init__(max(code, 400), reason, message, result.get("details"))


def http_failure(code: int, content_type: str, body: bytes) -> WebhookCallFailed:
    """The error for an unsuccessful HTTP status: the message of a Status, or one derived from the code.

    ``k8s.io/apimachinery/pkg/api/errors.NewGenericServerResponse``.
    """
    if message := _status_message(body):
        return _unread(message)
    text = body.decode(errors="replace").strip() if content_type.startswith("text/") else "unknown"
    said = _BY_CODE.get(code, f"the server responded with the status code {code} but did not return more information")
    if code in (403, 415) or (code == 406 and text != "unknown"):
        said = text
    elif code >= 500 and code not in _BY_CODE:
        said = f"an error on the server ({json.dumps(text)}) has prevented the request from succeeding"
    return _unread(said)


def _status_message(body: bytes) -> str:
    try:
        said = go_json.decode_json(body)
    except go_json.MalformedJson:
        return ""
    failure = isinstance(said, dict) and (said.get("kind"), said.get("status")) == ("Status", "Failure")
    return str(said.get("message") or "") if failure else ""


_BY_CODE = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
