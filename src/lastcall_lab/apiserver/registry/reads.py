"""Reads of single objects and of lists, in pages and at old revisions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lastcall.model.label_selector import select_everything
from lastcall_lab.apiserver.registry import continue_tokens
from lastcall_lab.apiserver.registry.continue_tokens import ContinueToken
from lastcall_lab.apiserver.routing import list_options, request_selectors
from lastcall_lab.apiserver.routing.list_options import ListOptions
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.change_waiters import Interest
from lastcall_lab.apiserver.storage.store import FIRST, Compacted, StorageKey, Store, StoredObject, place_of
from lastcall_lab.apiserver.values import api_errors, field_errors

_LARGEST = 2**64
_NUMBER = re.compile(r"0*[0-9]{1,20}", re.ASCII)


class ListPage(NamedTuple):
    """Objects at one revision; ``token`` continues the list, with ``remaining`` objects if that is known."""

    items: Sequence[StoredObject]
    revision: int
    token: str = ""
    remaining: int | None = None


@dataclass(frozen=True)
class ObjectSelection:
    """The objects of a resource that a request selects."""

    namespace: str
    labels: request_selectors.Selector
    fields: request_selectors.Selector
    interest: Interest = None
    """The indexed field of the selection, which excludes most other objects."""

    @property
    def has_selectors(self) -> bool:
        """Whether it has a selector."""
        return self.labels is not select_everything or self.fields is not select_everything

    @property
    def selects_all(self) -> bool:
        """Whether it selects all objects."""
        return not self.namespace and not self.has_selectors

    def __contains__(self, stored: object) -> bool:
        return (
            isinstance(stored, StoredObject)
            and self.namespace in ("", stored.key.namespace)
            and self.labels(stored.labels)
            and self.fields(stored.fields)
        )

    def of(self, items: Sequence[StoredObject]) -> Sequence[StoredObject]:
        """The selected objects among those of the namespace."""
        if not self.has_selectors:
            return items
        return [one for one in items if self.labels(one.labels) and self.fields(one.fields)]


def select_objects(context: RequestContext, options: ListOptions) -> ObjectSelection:
    """From path and query. ApiError if a selector uses a field that the kind does not support."""
    route = context.route
    supported = route.resource.behaviour.selectable_fields()
    chosen = request_selectors.field_selector(options.terms, route.resource, supported)
    terms = options.terms
    if route.name:
        named = request_selectors.FieldTerm("metadata.name", True, route.name)
        if terms and named not in terms:
            raise api_errors.bad_request_error("fieldSelector metadata.name doesn't match requested name")
        terms = [named, *terms]
        chosen = request_selectors.field_selector(terms, route.resource, supported)
    return ObjectSelection(route.namespace, options.labels, chosen, _interest(terms, route.namespace))


def _interest(terms: Sequence[request_selectors.FieldTerm], namespace: str) -> Interest:
    equal = [(term.field, term.value) for term in terms if term.equal]
    inside = [("metadata.namespace", namespace)] if namespace else []
    return next(iter([*equal, *inside]), None)


class ObjectReader:
    """Reads from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, context: RequestContext) -> StoredObject:
        """One object. ApiError if it does not exist, or if the requested revision is in the future."""
        route = context.route
        revision = parse_revision(context.request.parameter("resourceVersion"))
        self._check_reached(revision)
        stored = self._store.get(StorageKey(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise api_errors.not_found_error(route.resource.plural, route.resource.group, route.name)
        return stored

    def list(self, context: RequestContext) -> ListPage:
        """One page. ApiError if the parameters are invalid or request compacted revisions."""
        options = list_options.read_list_options(context.request)
        chosen = select_objects(context, options)
        start = self._start(options, namespaced=context.route.resource.namespaced)
        found = chosen.of(self._at(context, start, chosen.interest, paged=bool(options.token)))
        # The API server's watch cache serves a list at any revision at once, without pages.
        limit = 0 if options.revision == "0" and not options.token else options.limit
        revision = start.revision if start.revision > 0 else self._store.revision
        page = found[:limit] if limit else found
        if not self._goes_on(context, options, limit, found, start):
            return ListPage(page, revision)
        token = continue_tokens.encode_token(ContinueToken(revision, place_of(page[-1].key)))
        return ListPage(page, revision, token, None if chosen.has_selectors else len(found) - limit)

    def _goes_on(
        self,
        context: RequestContext,
        options: ListOptions,
        limit: int,
        found: Sequence[StoredObject],
        start: ContinueToken,
    ) -> bool:
        """Whether there is another page. The storage knows of more objects, but not whether they match.

        So the last page can be empty (``etcd3.store.GetList``). A list of one name reads only that object.
        """
        if not limit or len(found) < limit:
            return False
        one = any(term.field == "metadata.name" and term.equal for term in options.terms)
        if len(found) > limit or one or (options.labels is select_everything and not options.terms):
            return len(found) > limit
        behind = start._replace(after=place_of(found[-1].key))
        return bool(self._at(context, behind, None, paged=bool(options.token)))

    def _start(self, options: ListOptions, *, namespaced: bool) -> ContinueToken:
        """The start position; a revision of 0 or less means the newest state."""
        if options.token:
            start = continue_tokens.decode_token(options.token, namespaced=namespaced)
            if not options.accepts_any_revision:
                raise api_errors.bad_request_error("specifying resource version is not allowed when using continue")
            return start
        try:
            revision = parse_revision(options.revision)
        except api_errors.ApiError as error:
            raise api_errors.bad_request_error(f"invalid resource version: {error.message}") from None
        self._check_reached(revision)
        exact = options.match == "Exact" or (not options.match and options.limit > 0)
        return ContinueToken(revision if exact else 0, FIRST)

    def _at(
        self, context: RequestContext, start: ContinueToken, interest: Interest, *, paged: bool
    ) -> Sequence[StoredObject]:
        storage, namespace = context.route.resource.storage, context.route.namespace
        if start.revision <= 0 or start.revision == self._store.revision:
            return self._store.objects(storage, namespace, start.after, interest)
        self._check_reached(start.revision)
        try:
            return self._store.objects_at(storage, namespace, start.revision, start.after)
        except Compacted:
            raise _too_old(start, paged=paged) from None

    def _check_reached(self, revision: int) -> None:
        if revision > self._store.revision:
            raise api_errors.future_revision_error(revision, self._store.revision)


def parse_revision(revision: str) -> int:
    """The revision as a number, 0 for none. ApiError with the storage's error if it is invalid."""
    if not revision:
        return 0
    if not (_NUMBER.fullmatch(revision) and int(revision) < _LARGEST):
        why = "value out of range" if revision.isdigit() else "invalid syntax"
        cause = field_errors.invalid("resourceVersion", revision, f'strconv.ParseUint: parsing "{revision}": {why}')
        raise api_errors.ApiError(500, "", f"{cause.field}: {cause.message}")
    return int(revision)


def _too_old(start: ContinueToken, *, paged: bool) -> api_errors.ApiError:
    if not paged:
        return api_errors.expired_error("The resourceVersion for the provided list is too old.")
    error = api_errors.expired_error(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list"
        " without the continue parameter, or use the continue token in this response to retrieve the remainder of the"
        " results. Continuing with the provided token results in an inconsistent list - objects that were created,"
        " modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.metadata = {"continue": continue_tokens.encode_token(start._replace(revision=-1))}
    return error
