"""What the query of a list or watch asks for, as ``meta/internalversion ListOptions`` reads and checks it (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass

from lastcall.lab.apiserver import fields, selectors, status
from lastcall.lab.apiserver.request import Request
from lastcall.model.label_selector import integer

_NEWER = "NotOlderThan"


@dataclass(frozen=True)
class ListOptions:
    """``revision`` stays text, since none and 0 are not the same; ``timeout`` is seconds, 0 for none."""

    watch: bool
    labels: selectors.Selector
    terms: list[selectors.Term]
    limit: int
    token: str
    revision: str
    match: str
    initial: bool | None
    """sendInitialEvents, which a watch without a revision, or of revision 0, implies."""
    bookmarks: bool
    timeout: int

    @property
    def legacy(self) -> bool:
        """Whether any revision will do."""
        return self.revision in ("", "0")


def read(request: Request) -> ListOptions:
    """ApiError if a parameter cannot be read, or if they do not go together."""
    limit, timeout = _integer(request, "limit"), _integer(request, "timeoutSeconds")
    initial = request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
    watch, match = request.flag("watch"), request.parameter("resourceVersionMatch")
    if watch and initial is None and not match and request.parameter("resourceVersion") in ("", "0"):
        initial, match = True, _NEWER
    options = ListOptions(
        watch=watch,
        labels=selectors.labels(request.parameter("labelSelector")),
        terms=selectors.terms(request.parameter("fieldSelector")),
        limit=max(0, limit),
        token=request.parameter("continue"),
        revision=request.parameter("resourceVersion"),
        match=match,
        initial=initial,
        bookmarks=request.flag("allowWatchBookmarks"),
        timeout=max(0, timeout),
    )
    if causes := [*(_watch_rules(options) if watch else _list_rules(options))]:
        raise status.invalid("ListOptions", "meta.k8s.io", "", causes)
    return options


def _list_rules(options: ListOptions) -> Iterator[status.Cause]:
    """``validation.ValidateListOptions``."""
    path, match = "resourceVersionMatch", options.match
    if match:
        if not options.revision:
            yield fields.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if options.token:
            yield fields.forbidden(path, "resourceVersionMatch is forbidden when continue is provided")
        if match not in ("Exact", _NEWER):
            yield fields.not_supported(path, match, ["Exact", _NEWER, ""])
        if match == "Exact" and options.revision == "0":
            yield fields.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if options.initial is not None:
        yield fields.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch_rules(options: ListOptions) -> Iterator[status.Cause]:
    """``validation.validateWatchOptions``."""
    path, match = "resourceVersionMatch", options.match
    if options.initial is not None and match != _NEWER:
        yield fields.forbidden(path, f"sendInitialEvents requires setting resourceVersionMatch to {_NEWER}")
    if match:
        if options.initial is None:
            yield fields.forbidden(
                path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        if match != _NEWER:
            yield fields.not_supported(path, match, [_NEWER])
        if options.token:
            yield fields.forbidden(path, "resourceVersionMatch is forbidden when continue is provided")


def _integer(request: Request, name: str) -> int:
    if name not in request.query:
        return 0
    text = request.parameter(name)
    number = integer(text)
    if number is None:
        why = "value out of range" if text.lstrip("+-").isdigit() else "invalid syntax"
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": {why}')
    return number
