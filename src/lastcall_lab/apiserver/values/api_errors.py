"""API errors as in Kubernetes: code, reason, message, details and causes.

The messages are those of ``k8s.io/apimachinery/pkg/api/errors``, on which clients and users match.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lastcall_lab.apiserver.values.request import Object


class Cause(NamedTuple):
    """One violation: ``field`` is a path such as ``spec.containers[0].name``."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """An error response; ``details`` may contain ``retryAfterSeconds``, which becomes a Retry-After header."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: Object = {}
        """The Status's metadata: the error of an expired list contains a new continue token."""

    @property
    def retry_after(self) -> int:
        """Seconds until the client should retry; 0 if unspecified."""
        return int((self.details or {}).get("retryAfterSeconds", 0))

    def status(self) -> Object:
        """The Status object."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def _details(name: str, group: str, kind: str, **more: Any) -> Object:
    details = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value or value == 0}


def qualified_resource(plural: str, group: str) -> str:
    """``pods`` or ``deployments.apps``, as messages name a resource."""
    return f"{plural}.{group}" if group else plural


def not_found_error(plural: str, group: str, name: str) -> ApiError:
    """The object does not exist."""
    message = f'{qualified_resource(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(name, group, plural))


def no_such_resource_error() -> ApiError:
    """The resource or subresource does not exist."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists_error(plural: str, group: str, name: str) -> ApiError:
    """The name is taken."""
    message = f'{qualified_resource(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(name, group, plural))


def conflict_error(plural: str, group: str, name: str, why: str) -> ApiError:
    """The object has changed since the client read it."""
    message = f'Operation cannot be fulfilled on {qualified_resource(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(name, group, plural))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def invalid_error(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """The object violates validation rules, all of which are listed."""
    said = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = _details(name, group, kind, causes=[cause._asdict() for cause in causes])
    return ApiError(422, "Invalid", f'{qualified_resource(kind, group)} "{name}" is invalid: {text}', details)


def bad_request_error(message: str) -> ApiError:
    """The request is malformed."""
    return ApiError(400, "BadRequest", message)


def other_namespace_error() -> ApiError:
    """The object's namespace differs from the path's."""
    return bad_request_error("the namespace of the provided object does not match the namespace sent on the request")


def forbidden_error(plural: str, group: str, name: str, why: str) -> ApiError:
    """The request is valid and rejected."""
    whom = f' "{name}"' if name else ""
    message = f"{qualified_resource(plural, group)}{whom} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, _details(name, group, plural))


def unauthorized_error() -> ApiError:
    """The client is not authenticated."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed_error() -> ApiError:
    """The resource does not support the verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def not_acceptable_error(supported: str) -> ApiError:
    """The client accepts a supported media type only with unsupported parameters."""
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {supported}")


def no_representation_error(available: str) -> ApiError:
    """The client accepts none of the supported media types."""
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return ApiError(406, "NotAcceptable", message, {})


def unsupported_media_type_error(supported: str) -> ApiError:
    """The media type of the body is not supported for this request."""
    message = f"the body of the request was in an unknown format - accepted media types include: {supported}"
    return ApiError(415, "UnsupportedMediaType", message)


def expired_error(message: str) -> ApiError:
    """The requested revision has been compacted."""
    return ApiError(410, "Expired", message)


def future_revision_error(asked: int, current: int) -> ApiError:
    """The requested revision is in the future."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def too_many_requests_error(message: str, details: Object) -> ApiError:
    """The client must retry later; ``details`` may say when."""
    return ApiError(429, "TooManyRequests", message, details)


def internal_error(message: str) -> ApiError:
    """An error of the server, not of the request."""
    details = {"causes": [{"message": message}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", details)
