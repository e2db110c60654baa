"""The parameters of a list or watch, parsed and validated like ``meta/internalversion ListOptions`` (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass

from lastcall.model.label_selector import parse_integer
from lastcall_lab.apiserver.routing import request_selectors
from lastcall_lab.apiserver.values import api_errors, field_errors
from lastcall_lab.apiserver.values.request import Request

_NEWER = "NotOlderThan"


@dataclass(frozen=True)
class ListOptions:
    """``revision`` stays text, because unset and 0 differ; ``timeout`` is in seconds, 0 for none."""

    watch: bool
    labels: request_selectors.Selector
    terms: list[request_selectors.FieldTerm]
    limit: int
    token: str
    revision: str
    match: str
    initial: bool | None
    """sendInitialEvents, implied by a watch without a revision or from revision 0."""
    bookmarks: bool
    timeout: int

    @property
    def accepts_any_revision(self) -> bool:
        """Whether the client accepts any revision."""
        return self.revision in ("", "0")


def read_list_options(request: Request) -> ListOptions:
    """Parses the parameters. ApiError if they are invalid or contradictory."""
    limit, timeout = _integer(request, "limit"), _integer(request, "timeoutSeconds")
    initial = request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
    watch, match = request.flag("watch"), request.parameter("resourceVersionMatch")
    if watch and initial is None and not match and request.parameter("resourceVersion") in ("", "0"):
        initial, match = True, _NEWER
    options = ListOptions(
        watch=watch,
        labels=request_selectors.parse_label_selector(request.parameter("labelSelector")),
        terms=request_selectors.parse_field_terms(request.parameter("fieldSelector")),
        limit=max(0, limit),
        token=request.parameter("continue"),
        revision=request.parameter("resourceVersion"),
        match=match,
        initial=initial,
        bookmarks=request.flag("allowWatchBookmarks"),
        timeout=max(0, timeout),
    )
    if causes := [*(_watch_rules(options) if watch else _list_rules(options))]:
        raise api_errors.invalid_error("ListOptions", "meta.k8s.io", "", causes)
    return options


def _list_rules(options: ListOptions) -> Iterator[api_errors.Cause]:
    """``validation.ValidateListOptions``."""
    path, match = "resourceVersionMatch", options.match
    if match:
        if not options.revision:
            yield field_errors.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if options.token:
            yield field_errors.forbidden(path, "resourceVersionMatch is forbidden when continue is provided")
        if match not in ("Exact", _NEWER):
            yield field_errors.not_supported(path, match, ["Exact", _NEWER, ""])
        if match == "Exact" and options.revision == "0":
            yield field_errors.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if options.initial is not None:
        yield field_errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch_rules(options: ListOptions) -> Iterator[api_errors.Cause]:
    """``validation.validateWatchOptions``."""
    path, match = "resourceVersionMatch", options.match
    if options.initial is not None and match != _NEWER:
        yield field_errors.forbidden(path, f"sendInitialEvents requires setting resourceVersionMatch to {_NEWER}")
    if match:
        if options.initial is None:
            yield field_errors.forbidden(
                path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        if match != _NEWER:
            yield field_errors.not_supported(path, match, [_NEWER])
        if options.token:
            yield field_errors.forbidden(path, "resourceVersionMatch is forbidden when continue is provided")


def _integer(request: Request, name: str) -> int:
    if name not in request.query:
        return 0
    text = request.parameter(name)
    number = parse_integer(text)
    if number is None:
        why = "value out of range" if text.lstrip("+-").isdigit() else "invalid syntax"
        raise api_errors.bad_request_error(f'strconv.ParseInt: parsing "{text}": {why}')
    return number
