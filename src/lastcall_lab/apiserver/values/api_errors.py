"""The errors of the API, as Kubernetes says them: code, reason, message, details and causes.

The words are those of ``k8s.io/apimachinery/pkg/api/errors``, which clients and people match on.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lastcall_lab.apiserver.values.request import Object


class Cause(NamedTuple):
    """One violation of a rule: ``field`` is a path such as ``spec.containers[0].name``."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """An answer that is no success; ``details`` may hold ``retryAfterSeconds``, which becomes a Retry-After."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: Object = {}
        """Of the Status: a list that cannot go on has a token here."""

    @property
    def retry_after(self) -> int:
        """Seconds after which to try again; 0 if nothing is said about that."""
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
    """There is no such object."""
    message = f'{qualified_resource(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, _details(name, group, plural))


def no_such_resource_error() -> ApiError:
    """There is no such kind or subresource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists_error(plural: str, group: str, name: str) -> ApiError:
    """The name is taken."""
    message = f'{qualified_resource(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(name, group, plural))


def conflict_error(plural: str, group: str, name: str, why: str) -> ApiError:
    """The object is not as the request supposes."""
    message = f'Operation cannot be fulfilled on {qualified_resource(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(name, group, plural))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def invalid_error(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """The object violates rules, all of which are named."""
    said = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    details = _details(name, group, kind, causes=[cause._asdict() for cause in causes])
    return ApiError(422, "Invalid", f'{qualified_resource(kind, group)} "{name}" is invalid: {text}', details)


def bad_request_error(message: str) -> ApiError:
    """The request cannot be understood."""
    return ApiError(400, "BadRequest", message)


def other_namespace_error() -> ApiError:
    """The object says another namespace than the path."""
    return bad_request_error("the namespace of the provided object does not match the namespace sent on the request")


def forbidden_error(plural: str, group: str, name: str, why: str) -> ApiError:
    """The request is understood, and refused."""
    whom = f' "{name}"' if name else ""
    message = f"{qualified_resource(plural, group)}{whom} is forbidden: {why}"
    return ApiError(403, "Forbidden", message, _details(name, group, plural))


def unauthorized_error() -> ApiError:
    """Nobody knows who asks."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed_error() -> ApiError:
    """The resource has no such verb."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def not_acceptable_error(supported: str) -> ApiError:
    """The client accepts a media type that is served, but with parameters that are not."""
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {supported}")


def no_representation_error(available: str) -> ApiError:
    """None of the media types that the client accepts is served."""
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return ApiError(406, "NotAcceptable", message, {})


def unsupported_media_type_error(supported: str) -> ApiError:
    """The body's media type is not one that this request can have."""
    message = f"the body of the request was in an unknown format - accepted media types include: {supported}"
    return ApiError(415, "UnsupportedMediaType", message)


def expired_error(message: str) -> ApiError:
    """The revision that is asked for has been compacted away."""
    return ApiError(410, "Expired", message)


def future_revision_error(asked: int, current: int) -> ApiError:
    """A revision that has not been reached yet."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def too_many_requests_error(message: str, details: Object) -> ApiError:
    """Not now; ``details`` may say when."""
    return ApiError(429, "TooManyRequests", message, details)


def internal_error(message: str) -> ApiError:
    """Something is wrong here, and not with the request."""
    details = {"causes": [{"message": message}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", details)
