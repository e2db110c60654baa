"""Lists, in pages and at old revisions, and single objects."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lastcall.lab.apiserver import continuation, fields, list_options, selectors, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.continuation import Continuation
from lastcall.lab.apiserver.list_options import ListOptions
from lastcall.lab.apiserver.store import FIRST, Compacted, Key, Store, Stored, place
from lastcall.lab.apiserver.waiting import Interest
from lastcall.model.label_selector import everything

_LARGEST = 2**64
_NUMBER = re.compile(r"0*[0-9]{1,20}", re.ASCII)


class Page(NamedTuple):
    """Some objects of one revision; ``token`` asks for the next ones, of which there are ``remaining`` if that is known."""

    items: Sequence[Stored]
    revision: int
    token: str = ""
    remaining: int | None = None


@dataclass(frozen=True)
class Selection:
    """Which objects of a resource a request is about."""

    namespace: str
    labels: selectors.Selector
    fields: selectors.Selector
    interest: Interest = None
    """A field by whose value alone most of the others can be passed over."""

    @property
    def narrowed(self) -> bool:
        """Whether there is any selector."""
        return self.labels is not everything or self.fields is not everything

    @property
    def whole(self) -> bool:
        """Whether it is about all objects."""
        return not self.namespace and not self.narrowed

    def __contains__(self, stored: object) -> bool:
        return (
            isinstance(stored, Stored)
            and self.namespace in ("", stored.key.namespace)
            and self.labels(stored.labels)
            and self.fields(stored.fields)
        )

    def of(self, items: Sequence[Stored]) -> Sequence[Stored]:
        """Those that are selected, of objects in the namespace."""
        if not self.narrowed:
            return items
        return [one for one in items if self.labels(one.labels) and self.fields(one.fields)]


def selection(context: Context, options: ListOptions) -> Selection:
    """From the path and the query. ApiError if a selector asks for a field that the kind does not know."""
    route = context.route
    supported = route.resource.behaviour.selectable()
    chosen = selectors.fields(options.terms, route.resource, supported)
    terms = options.terms
    if route.name:
        named = selectors.Term("metadata.name", True, route.name)
        if terms and named not in terms:
            raise status.bad_request("fieldSelector metadata.name doesn't match requested name")
        terms = [named, *terms]
        chosen = selectors.fields(terms, route.resource, supported)
    return Selection(route.namespace, options.labels, chosen, _interest(terms, route.namespace))


def _interest(terms: Sequence[selectors.Term], namespace: str) -> Interest:
    equal = [(term.field, term.value) for term in terms if term.equal]
    inside = [("metadata.namespace", namespace)] if namespace else []
    return next(iter([*equal, *inside]), None)


class Reader:
    """Answers from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, context: Context) -> Stored:
        """One object. ApiError if there is none, or if its revision has not been reached yet."""
        route = context.route
        revision = number(context.request.parameter("resourceVersion"))
        self._reached(revision)
        stored = self._store.get(Key(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise status.not_found(route.resource.plural, route.resource.group, route.name)
        return stored

    def list(self, context: Context) -> Page:
        """One page. ApiError for parameters that make no sense or ask for what is not kept any more."""
        options = list_options.read(context.request)
        chosen = selection(context, options)
        start = self._start(options, namespaced=context.route.resource.namespaced)
        found = chosen.of(self._at(context, start, chosen.interest, paged=bool(options.token)))
        # A list of any revision comes from the API server's memory at once: it has no pages.
        limit = 0 if options.revision == "0" and not options.token else options.limit
        revision = start.revision if start.revision > 0 else self._store.revision
        page = found[:limit] if limit else found
        if not self._goes_on(context, options, limit, found, start):
            return Page(page, revision)
        token = continuation.encoded(Continuation(revision, place(page[-1].key)))
        return Page(page, revision, token, None if chosen.narrowed else len(found) - limit)

    def _goes_on(
        self, context: Context, options: ListOptions, limit: int, found: Sequence[Stored], start: Continuation
    ) -> bool:
        """Whether there is another page: the storage knows only that there are more objects, not whether they are selected.

        So the last page can be empty (``etcd3.store.GetList``). A list of one name reads that object alone.
        """
        if not limit or len(found) < limit:
            return False
        one = any(term.field == "metadata.name" and term.equal for term in options.terms)
        if len(found) > limit or one or (options.labels is everything and not options.terms):
            return len(found) > limit
        behind = start._replace(after=place(found[-1].key))
        return bool(self._at(context, behind, None, paged=bool(options.token)))

    def _start(self, options: ListOptions, *, namespaced: bool) -> Continuation:
        """Where to begin; revision 0 or less for the newest state."""
        if options.token:
            start = continuation.decoded(options.token, namespaced=namespaced)
            if not options.legacy:
                raise status.bad_request("specifying resource version is not allowed when using continue")
            return start
        try:
            revision = number(options.revision)
        except status.ApiError as error:
            raise status.bad_request(f"invalid resource version: {error.message}") from None
        self._reached(revision)
        exact = options.match == "Exact" or (not options.match and options.limit > 0)
        return Continuation(revision if exact else 0, FIRST)

    def _at(self, context: Context, start: Continuation, interest: Interest, *, paged: bool) -> Sequence[Stored]:
        storage, namespace = context.route.resource.storage, context.route.namespace
        if start.revision <= 0 or start.revision == self._store.revision:
            return self._store.objects(storage, namespace, start.after, interest)
        self._reached(start.revision)
        try:
            return self._store.objects_at(storage, namespace, start.revision, start.after)
        except Compacted:
            raise _too_old(start, paged=paged) from None

    def _reached(self, revision: int) -> None:
        if revision > self._store.revision:
            raise status.revision_of_the_future(revision, self._store.revision)


def number(revision: str) -> int:
    """A revision as a number, 0 for none. ApiError, as the storage's errors come out, if it is none."""
    if not revision:
        return 0
    if not (_NUMBER.fullmatch(revision) and int(revision) < _LARGEST):
        why = "value out of range" if revision.isdigit() else "invalid syntax"
        cause = fields.invalid("resourceVersion", revision, f'strconv.ParseUint: parsing "{revision}": {why}')
        raise status.ApiError(500, "", f"{cause.field}: {cause.message}")
    return int(revision)


def _too_old(start: Continuation, *, paged: bool) -> status.ApiError:
    if not paged:
        return status.expired("The resourceVersion for the provided list is too old.")
    error = status.expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list"
        " without the continue parameter, or use the continue token in this response to retrieve the remainder of the"
        " results. Continuing with the provided token results in an inconsistent list - objects that were created,"
        " modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.metadata = {"continue": continuation.encoded(start._replace(revision=-1))}
    return error
