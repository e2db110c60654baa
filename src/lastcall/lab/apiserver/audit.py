"""Who asked what: one record for every request, so that rules of RBAC can be held against what is really used."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import msgspec

from lastcall.lab.apiserver.request import Request
from lastcall.lab.apiserver.routes import Place, place, verb
from lastcall.ports import Clock

KEPT = 10_000
"""Records that are kept in memory."""

Sink = Callable[[str], object]
"""Takes one line of JSON, with its end."""


class Record(NamedTuple):
    """One request; nobody is its user if it was not known who asked. What is no resource has a ``path`` instead, and the method in lower case as its verb.

    ``seconds`` is how long the answer took, or the beginning of a stream; ``wall`` is when it was asked.
    """

    wall: float
    user: str
    groups: tuple[str, ...]
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    path: str
    code: int
    dry_run: bool
    seconds: float
    annotations: Mapping[str, str]
    """What policies have added (``auditAnnotations``, and violations whose binding says Audit)."""


class Use(NamedTuple):
    """What a rule of RBAC would have to allow: ``resource`` in ``group``, or a ``path`` that is none."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    path: str = ""


class Moment(NamedTuple):
    """One moment by both clocks."""

    wall: float
    boottime: float


class _Options(msgspec.Struct, rename="camel"):
    dry_run: list[str] | None = None
    delete_options: "_Options | None" = None


class Audit:
    """Keeps the last records, and how often each use has happened since the beginning."""

    def __init__(self, clock: Clock, *, kept: int = KEPT, sink: Sink | None = None) -> None:
        self._clock = clock
        self._sink = sink
        self.records: deque[Record] = deque(maxlen=kept)
        self.used: Counter[Use] = Counter()

    def begin(self) -> Moment:
        """When a request comes."""
        return Moment(self._clock.wall(), self._clock.boottime())

    def end(self, began: Moment, request: Request, code: int) -> None:
        """When it is answered: ``request`` as it was understood, ``code`` of the answer."""
        seconds = self._clock.boottime() - began.boottime
        self._keep(_record(request, code, began.wall, seconds))

    def _keep(self, record: Record) -> None:
        self.records.append(record)
        self.used[use(record)] += 1
        if self._sink:
            self._sink(json.dumps(record._asdict()) + "\n")


@contextmanager
def appended(path: Path) -> Iterator[Sink]:
    """Each line goes to the end of a file at once, so that it can be followed."""
    with path.open("a", encoding="utf-8", buffering=1) as file:
        yield file.write


def use(record: Record) -> Use:
    """What was used by a request."""
    return Use(record.user, record.verb, record.group, record.resource, record.subresource, record.path)


def summary(used: Mapping[Use, int], user: str = "") -> list[tuple[Use, int]]:
    """Each use of ``user``, or of everybody, with its number, in their order."""
    return sorted((one, number) for one, number in used.items() if user in ("", one.user))


def _record(request: Request, code: int, wall: float, seconds: float) -> Record:
    where = place(request.path)
    asked = verb(request, where) if where else ""
    if where is None or not asked:
        where, asked = Place("", "", "", "", "", "", watch=False), request.method.lower()
    unknown = code == HTTPStatus.UNAUTHORIZED
    return Record(
        wall=wall,
        user="" if unknown else request.user.name,
        groups=() if unknown else tuple(request.user.groups),
        verb=asked,
        group=where.group,
        resource=where.plural,
        subresource=where.subresource,
        namespace=where.namespace,
        name=where.name,
        path="" if where.plural else request.path,
        code=code,
        dry_run=_dry_run(request, where),
        seconds=seconds,
        annotations=request.annotations,
    )


def _dry_run(request: Request, where: Place) -> bool:
    """In the query, or in the options that a deletion or an eviction has in its body."""
    if "dryRun" in request.query:
        return True
    if not request.body or not (request.method == "DELETE" or where.subresource == "eviction"):
        return False
    try:
        said = msgspec.json.decode(request.body, type=_Options)
    except msgspec.DecodeError:
        return False
    options = said.delete_options if where.subresource == "eviction" else said
    return bool(options and options.dry_run)
