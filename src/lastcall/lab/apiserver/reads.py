"""Lists, in pages and at old revisions, and single objects."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lastcall.lab.apiserver import fields, selectors, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.store import Compacted, Key, Store, Stored


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
    narrowed: bool
    """Whether there is any selector."""

    def __contains__(self, stored: object) -> bool:
        return (
            isinstance(stored, Stored)
            and self.namespace in ("", stored.key.namespace)
            and self.labels(stored.labels)
            and self.fields(stored.fields)
        )


def selection(context: Context) -> Selection:
    """From the path and the query. ApiError if a selector cannot be read."""
    route, request = context.route, context.request
    label, text = request.parameter("labelSelector"), request.parameter("fieldSelector")
    if route.name:
        text = f"metadata.name={route.name}" + (f",{text}" if text else "")
    supported = {"metadata.name": "", "metadata.namespace": "", **route.resource.behaviour.fields({"metadata": {}})}
    return Selection(
        route.namespace,
        selectors.labels(label) if label else selectors.everything,
        selectors.fields(text, route.resource.qualified, supported) if text else selectors.everything,
        narrowed=bool(label or text),
    )


class Reader:
    """Answers from the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, context: Context) -> Stored:
        """One object. ApiError if there is none, or if its revision has not been reached yet."""
        route = context.route
        self.reached(context.request.parameter("resourceVersion"))
        stored = self._store.get(Key(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise status.not_found(route.resource.plural, route.resource.group, route.name)
        return stored

    def list(self, context: Context) -> Page:
        """One page. ApiError for parameters that make no sense or ask for what is not kept any more."""
        request, resource = context.request, context.route.resource
        chosen = selection(context)
        limit, token = _limit(request.parameter("limit")), request.parameter("continue")
        revision, after = self._start(request.parameter("resourceVersion"), context)
        if token:
            revision, after = _opened(token)
        items = [one for one in self._at(resource, chosen.namespace, revision, token) if one in chosen]
        items = [one for one in items if one.key[1:] > after]
        at = revision or self._store.revision
        if not limit or len(items) <= limit:
            return Page(items, at)
        page = items[:limit]
        remaining = None if chosen.narrowed else len(items) - limit
        return Page(page, at, _token(at, page[-1].key), remaining)

    def reached(self, asked: str) -> int:
        """A revision as a number, 0 for none. ApiError if it is none, or lies in the future."""
        if not asked:
            return 0
        if not asked.isdigit():
            cause = fields.invalid("resourceVersion", asked, "must be a decimal integer")
            raise status.invalid("ListOptions", "meta.k8s.io", "", [cause])
        if int(asked) > self._store.revision:
            raise status.revision_of_the_future(int(asked), self._store.revision)
        return int(asked)

    def _start(self, asked: str, context: Context) -> tuple[int, tuple[str, str]]:
        """The revision to list, 0 for the latest, and the name after which to begin."""
        match = context.request.parameter("resourceVersionMatch")
        _check_match(match, asked, context)
        revision = self.reached(asked)
        return (revision if match == "Exact" else 0), ("", "")

    def _at(self, resource: Resource, namespace: str, revision: int, token: str) -> Sequence[Stored]:
        if not revision or revision == self._store.revision:
            return list(self._store.objects(resource.storage, namespace))
        try:
            return self._store.objects_at(resource.storage, namespace, revision)
        except Compacted:
            raise status.expired(_too_old(token)) from None


def _check_match(match: str, revision: str, context: Context) -> None:
    """``validation.ValidateListOptions``."""
    path, causes = "resourceVersionMatch", []
    if match and not revision and not context.request.flag("sendInitialEvents"):
        causes.append(fields.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match == "Exact" and revision == "0":
        causes.append(fields.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if match and match not in ("Exact", "NotOlderThan"):
        causes.append(fields.not_supported(path, match, ["Exact", "NotOlderThan", ""]))
    if causes:
        raise status.invalid("ListOptions", "meta.k8s.io", "", causes)


def _limit(text: str) -> int:
    try:
        return max(0, int(text or 0))
    except ValueError:
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _token(revision: int, key: Key) -> str:
    content = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": [key.namespace, key.name]})
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _opened(token: str) -> tuple[int, tuple[str, str]]:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(content["rv"]), tuple(content["start"])
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise status.bad_request(f"invalid continue token: continue key is not valid: {error}") from None


def _too_old(token: str) -> str:
    if not token:
        return "The resourceVersion for the provided list is too old."
    return (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list"
        " without the continue parameter, or use the continue token in this response to retrieve the remainder of the"
        " results. Continuing with the provided token results in an inconsistent list - objects that were created,"
        " modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
