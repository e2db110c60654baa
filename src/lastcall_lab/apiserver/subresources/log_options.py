"""The query parameters of ``pods/log`` (``PodLogOptions``), pure."""

from collections.abc import Iterator

from lastcall.model.label_selector import parse_integer
from lastcall_lab.apiserver.subresources.kubelet_api import LogOptions
from lastcall_lab.apiserver.values import api_errors, field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Request

_STREAMS = ("All", "Stderr", "Stdout")


def read_log_options(request: Request, container: str, wall: float) -> LogOptions:
    """The options for the kubelet, for ``container`` at ``wall``. ApiError for invalid numbers and times."""
    return LogOptions(
        container=container,
        follow=request.flag("follow"),
        previous=request.flag("previous"),
        timestamps=request.flag("timestamps"),
        tail=_number(request, "tailLines"),
        since=_since(request, wall),
        limit_bytes=_number(request, "limitBytes"),
    )


def check_log_options(request: Request, pod: str) -> None:
    """ApiError if the options are invalid (``validation.ValidatePodLogOptions``)."""
    if causes := [*_causes(request)]:
        raise api_errors.invalid_error("PodLogOptions", "", pod, causes)


def _causes(request: Request) -> Iterator[Cause]:
    tail, limit, since = (_number(request, name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    if tail is not None and tail < 0:
        yield field_errors.invalid("tailLines", tail, "must be greater than or equal to 0")
    if limit is not None and limit < 1:
        yield field_errors.invalid("limitBytes", limit, "must be greater than 0")
    if since is not None and request.parameter("sinceTime"):
        yield field_errors.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif since is not None and since < 1:
        yield field_errors.invalid("sinceSeconds", since, "must be greater than 0")
    stream = request.parameter("stream") or "All"
    if stream not in _STREAMS:
        yield field_errors.not_supported("stream", stream, _STREAMS)
    if stream != "All" and tail is not None:
        yield field_errors.forbidden("", "`tailLines` and specific `stream` are mutually exclusive for now")


def _since(request: Request, wall: float) -> float | None:
    """Seconds since 1970."""
    if (ago := _number(request, "sinceSeconds")) is not None:
        return wall - ago
    if not (text := request.parameter("sinceTime")):
        return None
    try:
        return object_meta.parse_seconds(text)
    except ValueError:
        raise api_errors.bad_request_error(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse'
        ) from None


def _number(request: Request, name: str) -> int | None:
    text = request.parameter(name)
    if not text:
        return None
    if (number := parse_integer(text)) is None:
        raise api_errors.bad_request_error(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return number
