"""The audit log: one record per request, to compare RBAC rules with the access that is really used."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import msgspec

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.routing.routes import ResourcePath, parse_path, request_verb
from lastcall_lab.apiserver.values.request import Request

KEPT = 10_000
"""The number of records kept in memory."""

Sink = Callable[[str], object]
"""Receives one line of JSON, including its newline."""


class AuditRecord(NamedTuple):
    """One request. ``user`` is empty if authentication failed.

    A non-resource request has a ``path`` instead, and the method in lower case as its verb. ``seconds`` is the time
    until the response, or until the start of a stream; ``wall`` is the time of the request.
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
    """Annotations from policies (``auditAnnotations``, and violations of bindings with the action Audit)."""


class PermissionUse(NamedTuple):
    """The access that an RBAC rule would have to allow: ``resource`` in ``group``, or a non-resource ``path``."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    path: str = ""


class ClockReading(NamedTuple):
    """One moment by both clocks."""

    wall: float
    boottime: float


class _Options(msgspec.Struct, rename="camel"):
    dry_run: list[str] | None = None
    delete_options: "_Options | None" = None


class AuditLog:
    """Keeps the latest records, and counts every use since the start."""

    def __init__(self, clock: Clock, *, kept: int = KEPT, sink: Sink | None = None) -> None:
        self._clock = clock
        self._sink = sink
        self.records: deque[AuditRecord] = deque(maxlen=kept)
        self.used: Counter[PermissionUse] = Counter()

    def begin(self) -> ClockReading:
        """The time at which a request arrives."""
        return ClockReading(self._clock.wall(), self._clock.boottime())

    def end(self, began: ClockReading, request: Request, code: int) -> None:
        """Records a response: ``request`` as parsed, ``code`` of the response."""
        seconds = self._clock.boottime() - began.boottime
        self._keep(_record(request, code, began.wall, seconds))

    def _keep(self, record: AuditRecord) -> None:
        self.records.append(record)
        self.used[permission_use(record)] += 1
        if self._sink:
            self._sink(json.dumps(record._asdict()) + "\n")


@contextmanager
def append_to(path: Path) -> Iterator[Sink]:
    """Appends each line to a file at once, so that the file can be followed."""
    with path.open("a", encoding="utf-8", buffering=1) as file:
        yield file.write


def permission_use(record: AuditRecord) -> PermissionUse:
    """The access that a request used."""
    return PermissionUse(record.user, record.verb, record.group, record.resource, record.subresource, record.path)


def summarize_uses(used: Mapping[PermissionUse, int], user: str = "") -> list[tuple[PermissionUse, int]]:
    """Each use of ``user``, or of all users, with its count, in order."""
    return sorted((one, number) for one, number in used.items() if user in ("", one.user))


def _record(request: Request, code: int, wall: float, seconds: float) -> AuditRecord:
    where = parse_path(request.path)
    asked = request_verb(request, where) if where else ""
    if where is None or not asked:
        where, asked = ResourcePath("", "", "", "", "", "", watch=False), request.method.lower()
    unknown = code == HTTPStatus.UNAUTHORIZED
    return AuditRecord(
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


def _dry_run(request: Request, where: ResourcePath) -> bool:
    """From the query, or from the options in the body of a deletion or an eviction."""
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
