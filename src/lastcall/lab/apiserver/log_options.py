"""What the query of ``pods/log`` asks for (``PodLogOptions``), pure."""

from collections.abc import Iterator

from lastcall.lab.apiserver import fields, meta, status
from lastcall.lab.apiserver.kubelets import LogOptions
from lastcall.lab.apiserver.request import Request
from lastcall.lab.apiserver.status import Cause
from lastcall.model.label_selector import integer

_STREAMS = ("All", "Stderr", "Stdout")


def log_options(request: Request, container: str, wall: float) -> LogOptions:
    """As a kubelet is asked for the log of ``container`` at ``wall``. ApiError for what is no number and no time."""
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
    """ApiError if they make no sense (``validation.ValidatePodLogOptions``)."""
    if causes := [*_causes(request)]:
        raise status.invalid("PodLogOptions", "", pod, causes)


def _causes(request: Request) -> Iterator[Cause]:
    tail, limit, since = (_number(request, name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    if tail is not None and tail < 0:
        yield fields.invalid("tailLines", tail, "must be greater than or equal to 0")
    if limit is not None and limit < 1:
        yield fields.invalid("limitBytes", limit, "must be greater than 0")
    if since is not None and request.parameter("sinceTime"):
        yield fields.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif since is not None and since < 1:
        yield fields.invalid("sinceSeconds", since, "must be greater than 0")
    stream = request.parameter("stream") or "All"
    if stream not in _STREAMS:
        yield fields.not_supported("stream", stream, _STREAMS)
    if stream != "All" and tail is not None:
        yield fields.forbidden("", "`tailLines` and specific `stream` are mutually exclusive for now")


def _since(request: Request, wall: float) -> float | None:
    """In seconds since 1970."""
    if (ago := _number(request, "sinceSeconds")) is not None:
        return wall - ago
    if not (text := request.parameter("sinceTime")):
        return None
    try:
        return meta.seconds(text)
    except ValueError:
        raise status.bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse') from None


def _number(request: Request, name: str) -> int | None:
    text = request.parameter(name)
    if not text:
        return None
    if (number := integer(text)) is None:
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return number
