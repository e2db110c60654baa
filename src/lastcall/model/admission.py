"""``AdmissionReview`` of admission.k8s.io: what the API server asks about a deletion, and the answer (pure)."""

import base64
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.model.decoding import convert_readable, quote_value
from lastcall.model.pods import Pod

VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")


class RemovalKind(Enum):
    """How a pod is to be removed."""

    DELETE = "delete"
    EVICTION = "eviction"


class RequestUser(Facts, frozen=True):
    """authentication/v1 UserInfo."""

    username: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] | None = None


class Preconditions(Facts, frozen=True):
    """meta/v1 Preconditions."""

    uid: str | None = None


class DeleteOptions(Facts, frozen=True):
    """meta/v1 DeleteOptions."""

    dry_run: tuple[str, ...] | None = None
    preconditions: Preconditions | None = None
    grace_period_seconds: int | None = None


class Removal(Facts, frozen=True):
    """A request to delete or evict one pod.

    ``pod`` is the pod as the API server has it, which it shows for a DELETE alone. ``precondition`` is the uid that the
    pod must have, "" for any. Dry runs change nothing.
    """

    kind: RemovalKind
    namespace: str
    name: str
    user: RequestUser
    pod: Pod | None = None
    precondition: str = ""
    is_dry_run: bool = False
    grace_period_seconds: int | None = None
    """As the request gives it; None for the pod's own."""


class Review(Facts, frozen=True):
    """One AdmissionReview; ``removal`` is None if it asks about something else.

    ``is_dry_run`` is that of the request. An eviction may say so in its object, too: that of ``removal`` has both.
    """

    version: str
    uid: str
    removal: Removal | None
    is_dry_run: bool = False


class _GroupResource(Facts, frozen=True):
    group: str = ""
    resource: str = ""


class _EvictionMetadata(Facts, frozen=True):
    name: str = ""
    namespace: str = ""


class _Eviction(Facts, frozen=True):
    metadata: _EvictionMetadata = _EvictionMetadata()
    delete_options: DeleteOptions | None = None


class _Request(Facts, frozen=True):
    uid: str
    operation: str
    resource: _GroupResource
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: RequestUser = RequestUser()
    dry_run: bool | None = None
    object: Any = None
    old_object: Any = None
    options: DeleteOptions | None = None


class _PodRequest(_Request, frozen=True):
    """The same about a pod, whose objects are read at once."""

    object: _Eviction | None = None
    old_object: Pod | None = None


class _PodReview(Facts, frozen=True):
    kind: str
    api_version: str
    request: _PodRequest


_POD_REVIEWS = msgspec.json.Decoder(_PodReview)


def parse_review(data: bytes, source: str) -> Review:
    """The review in a JSON text. InvalidInput if it is none, or lacks what an answer needs."""
    return _read_pod_review(data, source) or _read_any_review(data, source)


def _read_pod_review(data: bytes, source: str) -> Review | None:
    """Reads the fields alone that matter, which is quick; None for what is not about a pod, or not as it should be."""
    try:
        whole = _POD_REVIEWS.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    request = whole.request
    if whole.kind != "AdmissionReview" or whole.api_version not in VERSIONS or not request.uid:
        return None
    return _review(whole.api_version, request, source)


def _read_any_review(data: bytes, source: str) -> Review:
    """The same of any review, and says all that is wrong with it."""
    try:
        whole = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(source, [f"not JSON: {error}"]) from error
    if not isinstance(whole, dict) or whole.get("kind") != "AdmissionReview" or whole.get("apiVersion") not in VERSIONS:
        raise InvalidInput(source, [f"not an AdmissionReview of {' or '.join(VERSIONS)}: {quote_value(whole)}"])
    request, wrong = convert_readable(whole.get("request"), _Request, at="request")
    if wrong or request is None:
        raise InvalidInput(source, wrong)
    if not request.uid:
        raise InvalidInput(source, ['request.uid: "": must not be empty'])
    return _review(whole["apiVersion"], request, source)


def _review(version: str, request: _Request, source: str) -> Review:
    return Review(version=version, uid=request.uid, removal=_removal(request, source), is_dry_run=bool(request.dry_run))


def _removal(request: _Request, source: str) -> Removal | None:
    what = (request.resource.group, request.resource.resource, request.sub_resource, request.operation)
    if what == ("", "pods", "", "DELETE"):
        return _deletion(request, source)
    if what == ("", "pods", "eviction", "CREATE"):
        return _eviction(request, source)
    return None


def _deletion(request: _Request, source: str) -> Removal:
    pod = _with_request_namespace(_read(request.old_object, Pod, "request.oldObject", source), request.namespace)
    options = request.options or DeleteOptions()
    return Removal(
        kind=RemovalKind.DELETE,
        namespace=pod.metadata.namespace if pod else request.namespace or "default",
        name=(pod.metadata.name if pod else "") or request.name,  # a DELETE of a collection names no pod
        user=request.user_info,
        pod=pod,
        precondition=_precondition(options),
        is_dry_run=bool(request.dry_run) or _is_dry_run(options),
        grace_period_seconds=options.grace_period_seconds,
    )


def _eviction(request: _Request, source: str) -> Removal:
    eviction = _read(request.object, _Eviction, "request.object", source) or _Eviction()
    options = eviction.delete_options or DeleteOptions()
    # The eviction's own dryRun is not in request.dryRun (registry/core/pod/storage/eviction.go: propagateDryRun).
    dry = (request.dry_run, _is_dry_run(options), _is_dry_run(request.options or DeleteOptions()))
    return Removal(
        kind=RemovalKind.EVICTION,
        namespace=request.namespace or eviction.metadata.namespace or "default",
        name=request.name or eviction.metadata.name,
        user=request.user_info,
        precondition=_precondition(options),
        is_dry_run=any(dry),
        grace_period_seconds=options.grace_period_seconds,
    )


def _with_request_namespace(pod: Pod | None, namespace: str) -> Pod | None:
    """The pod in the request's namespace, which counts more than what an object says of itself, or does not say."""
    if pod is None or namespace in ("", pod.metadata.namespace):
        return pod
    return replace(pod, metadata=replace(pod.metadata, namespace=namespace))


def _read(value: Any, type_: type[Any], at: str, source: str) -> Any:
    if value is None or isinstance(value, type_):
        return value
    found, wrong = convert_readable(value, type_, at=at)
    if wrong:
        raise InvalidInput(source, wrong)
    return found


def _is_dry_run(options: DeleteOptions) -> bool:
    return "All" in (options.dry_run or ())


def _precondition(options: DeleteOptions) -> str:
    return (options.preconditions.uid or "") if options.preconditions else ""


def answer_review(
    review: Review,
    *,
    allowed: bool,
    message: str = "",
    warnings: tuple[str, ...] = (),
    audit: Mapping[str, str] | None = None,
    patch: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The AdmissionReview that answers: a refusal is 429 TooManyRequests, which clients try again.

    It has no ``retryAfterSeconds``: client-go would wait in silence, ten times, inside one call. ``patch``: the operations
    of a JSON patch of the object.
    """
    response: dict[str, Any] = {"uid": review.uid, "allowed": allowed}
    if not allowed:
        status = {"status": "Failure", "code": 429, "reason": "TooManyRequests", "message": message}
        response["status"] = status
    if warnings:
        response["warnings"] = list(warnings)
    if audit:
        response["auditAnnotations"] = dict(audit)
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    return {"apiVersion": review.version, "kind": "AdmissionReview", "response": response}
