"""Network faults between programs and the API server: in requests, answers and watch events.

All that goes wrong here goes wrong on real networks and with real servers: a request that never arrives, one that was
carried out though nobody hears of it, a server that is busy, a connection that is dead and does not say so.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from lastcall.adapters.kube.transport import ApiResponse, Chunks, Transport
from lastcall.errors import NotConnected, Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.virtual.task_owners import OWNER, TaskOwner

UNANSWERED = 5.0
"""Seconds after which a program gives up a request of which it hears nothing."""

LATENCY = 0.002
"""Seconds from a program to the API server and back, on the average."""


@dataclass(frozen=True, kw_only=True)
class NetworkFault:
    """A fault that affects some programs (all, if none is named). Parts are between 0 and 1, times seconds."""

    programs: Collection[str] = ()
    refused: float = 0.0
    """The part of requests that fails: 409, 429, 500, or a connection that breaks before or after the deed."""
    slow: float = 0.0
    """Each answer takes up to so long."""
    halved: float = 0.0
    """The part of answers (watches are none) in whose middle the connection breaks; what was asked for is done."""
    late: float = 0.0
    """Each piece of a watch comes up to so late; the order stays."""
    doubled: float = 0.0
    """The part of a watch's pieces that comes twice."""
    torn: float = 0.0
    """The part of a watch's pieces in whose middle the connection breaks."""
    lost: float = 0.0
    """The part of a watch's pieces that never comes; the watch stays open."""
    unheard: bool = False
    """No request arrives. Watches that are open go on."""
    unanswered: bool = False
    """No answer arrives, though what was asked for is done."""
    stale: float = 0.0
    """Lists of lastcall's own programs are as they were so long ago; a watch from there on brings what has happened since.

    No kubelet and no controller of Kubernetes takes a list that is older than what it has seen: a reflector names the revision
    that it knows (``relistResourceVersion`` in client-go), and an API server whose cache is behind makes it wait.
    """
    stale_starts: float = 0.0
    """The same of the first list of each kind that a program asks for in its life, and of no later one."""
    silent: bool = False
    """Open watches go silent: no event and no error arrives."""


_OURS = "lastcall"
"""How the user agents of lastcall's programs begin."""

OLD_START = "old first list"
"""The kind of fault that strikes by ``NetworkFault.stale_starts``."""

_EACH, _KEPT = 0.5, 40
"""How often the newest revision is noted, in seconds, and how many are kept."""


class FaultInjector:
    """``down``: the server does not run. ``struck`` hears of each fault and of what it has hit."""

    def __init__(self, clock: Clock, seed: str, struck: Callable[[str, str], None]) -> None:
        self.clock = clock
        self.struck = struck
        self.changed: list[Callable[[], None]] = []
        """Hear that the weather is another."""
        self.listed_old: Callable[[str, float], None] = lambda program, since: None
        """Hears that the first list of a program is of that time (boottime, in seconds)."""
        self._down = False
        self._seed = seed
        self._conditions: list[NetworkFault] = []
        self._revisions: list[tuple[float, int]] = []

    @property
    def down(self) -> bool:
        """Whether the server does not run."""
        return self._down

    @down.setter
    def down(self, down: bool) -> None:
        self._down = down
        self._notify_change()

    @property
    def loses_events(self) -> bool:
        """Whether anybody loses watch events, and will not know of it."""
        return any(one.lost for one in self._conditions)

    @property
    def is_clear(self) -> bool:
        """Whether no fault is active for any program."""
        return not self._down and not self._conditions

    def begin(self, condition: NetworkFault) -> None:
        """Starts a fault."""
        self._conditions.append(condition)
        self._notify_change()

    def end(self, condition: NetworkFault) -> None:
        """Ends a fault."""
        self._conditions.remove(condition)
        self._notify_change()

    def _notify_change(self) -> None:
        for hear in self.changed:
            hear()

    def random_for(self, program: str) -> Random:
        """The random sequence of one program."""
        return random_of(self._seed, f"weather/{program}")

    def revision_at(self, at: float) -> tuple[float, int] | None:
        """When the store's newest revision at that time was noted, and the revision; None if it is not known any more."""
        known = [one for one in self._revisions if one[0] <= at]
        return known[-1] if known else None

    def forget_revisions(self) -> None:
        """History begins anew."""
        self._revisions.clear()

    def note_revision(self, revision: int) -> None:
        """It is the newest from now on."""
        now = self.clock.boottime()
        if not self._revisions or now - self._revisions[-1][0] >= _EACH:
            self._revisions.append((now, revision))
            del self._revisions[:-_KEPT]

    def worst_value(self, program: str, what: str) -> float:
        """The worst that conditions say of it for a program."""
        if not self._conditions:
            return 0.0
        found = [one for one in self._conditions if not one.programs or program in one.programs]
        return max((float(getattr(one, what)) for one in found), default=0.0)


class FaultyTransport:
    """``transport.Transport`` of one program, with injected faults."""

    def __init__(self, transport: Transport, weather: FaultInjector, program: str) -> None:
        self._transport = transport
        self._weather = weather
        self._program = program
        self._random = weather.random_for(program)
        self._listing: set[str] = set()
        """What has been watched from the beginning since lists are old."""
        self._life: TaskOwner | None = None
        self._listed: set[str] = set()
        """What the program has listed in this life."""

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, stream: bool = False
    ) -> ApiResponse:
        """One answer, or none."""
        ours = headers.get("user-agent", "").startswith(_OURS)
        step = _RequestStep(self._program, method, target, stream, ours)
        await self._delay_request(step)
        if self._is_down(step):
            raise NotConnected("the API server does not run")
        await self._lose_answer(step, "unheard", "lost request")
        target = self._stale_target(step)
        if self._must_list(step):
            return _error_answer("410")
        refusal = self._refuse_request(method, step)
        if isinstance(refusal, ApiResponse):
            return refusal
        answer = await self._transport.request(method, target, headers, body, stream=stream)
        if answer.status < 300 and step.is_list:
            self._listed.add(step.target)
        if refusal:
            raise Unavailable("the connection broke before the answer came")
        if self._is_down(step):
            raise Unavailable("the API server stopped before the answer came")
        await self._lose_answer(step, "unanswered", "lost answer")
        if isinstance(answer.body, bytes):
            self._break_off(step)
            return answer
        return ApiResponse(
            answer.status, answer.headers, _FaultyStream(answer.body, self._weather, self._program, str(step))
        )

    def close(self) -> None:
        """Gives up all connections."""
        self._transport.close()

    def _is_down(self, step: "_RequestStep") -> bool:
        if self._weather.down:
            self._weather.struck("API server down", str(step))
        return bool(self._weather.down)

    async def _delay_request(self, step: "_RequestStep") -> None:
        await self._weather.clock.sleep(LATENCY * (0.5 + self._random.random()))
        if slow := self._weather.worst_value(self._program, "slow"):
            self._weather.struck("slow answer", str(step))
            await self._weather.clock.sleep(self._random.random() * slow)

    async def _lose_answer(self, step: "_RequestStep", what: str, told: str) -> None:
        """On a way that swallows everything nobody is refused: who asks finds out by waiting."""
        if self._weather.worst_value(self._program, what):
            self._weather.struck(told, str(step))
            await self._weather.clock.sleep(UNANSWERED)
            raise Unavailable("no answer came in time")

    def _must_list(self, step: "_RequestStep") -> bool:
        """A cache that is behind does not know where a watch left off: who watches lists again, once."""
        if not self._weather.worst_value(self._program, "stale"):
            self._listing.clear()
            return False
        path = urlsplit(step.target).path
        if not step.ours or not step.stream or path in self._listing:
            return False
        self._listing.add(path)
        return True

    def _stale_target(self, step: "_RequestStep") -> str:
        """The target of a list that is answered from a cache which is behind; others stay as they are."""
        if not step.is_list:
            return step.target
        first = self._is_first(step.target)
        told, behind = "old list", self._weather.worst_value(self._program, "stale") if step.ours else 0.0
        if first and (starts := self._weather.worst_value(self._program, "stale_starts")) > behind:
            told, behind = OLD_START, starts
        if not behind:
            return step.target
        noted = self._weather.revision_at(self._weather.clock.boottime() - behind)
        if noted is None:
            return step.target
        since, revision = noted
        self._weather.struck(told, str(step))
        if told == OLD_START:
            self._weather.listed_old(self._program, since)
        return f"{step.target}{'&' if '?' in step.target else '?'}resourceVersion={revision}&resourceVersionMatch=Exact"

    def _is_first(self, target: str) -> bool:
        """Whether nobody has answered this list to the program since it was started."""
        if (life := OWNER.get()) is not self._life:
            self._life, self._listed = life, set()
        return target not in self._listed

    def _break_off(self, step: "_RequestStep") -> None:
        """A client has whole answers only (``transport.Transport``): of half a one it knows that there was one."""
        part = self._weather.worst_value(self._program, "halved")
        if part and self._random.random() < part:
            self._weather.struck("torn answer", str(step))
            raise Unavailable("the connection broke in the middle of the answer")

    def _refuse_request(self, method: str, step: "_RequestStep") -> ApiResponse | bool:
        """An answer in place of the deed; True if the deed is done and not answered; Unavailable if it is not done."""
        part = self._weather.worst_value(self._program, "refused")
        if not part or self._random.random() >= part:
            return False
        writes = method in ("PUT", "PATCH", "DELETE")
        kinds = ["broken before", "broken after", "429", "500", *(["409"] if writes else [])]
        kind = self._random.choice(kinds)
        self._weather.struck(kind, str(step))
        if kind == "broken before":
            raise Unavailable("the connection broke before the request arrived")
        return kind == "broken after" or _error_answer(kind)


class _RequestStep(NamedTuple):
    """A request of a program, which is put into words only if a fault strikes it."""

    program: str
    method: str
    target: str
    stream: bool
    ours: bool = False
    """Whether a program of lastcall asks."""

    @property
    def is_list(self) -> bool:
        """Whether a collection is asked for, at no revision in particular."""
        return self.method == "GET" and not self.stream and _is_list(self.target)

    def __str__(self) -> str:
        return f"{self.program}: {request_text(self.method, self.target, stream=self.stream)}"


class _FaultyStream:
    """The pieces of a watch as they come through."""

    def __init__(self, chunks: Chunks, weather: FaultInjector, program: str, step: str) -> None:
        self._chunks = chunks
        self._weather = weather
        self._program = program
        self._step = step
        self._random = weather.random_for(f"{program}/{step}/{weather.clock.boottime()}")
        self._broken = False

    def __aiter__(self) -> "_FaultyStream":
        return self

    async def __anext__(self) -> bytes:
        if self._broken:
            raise Unavailable("the connection broke")
        chunk = await anext(self._chunks)
        while self._loses_event():
            chunk = await anext(self._chunks)
        weather, program = self._weather, self._program
        if weather.worst_value(program, "silent"):
            weather.struck("silent watch", self._step)
            await asyncio.get_running_loop().create_future()
        if late := weather.worst_value(program, "late"):
            weather.struck("late watch event", self._step)
            await weather.clock.sleep(self._random.random() * late)
        if self._random.random() < weather.worst_value(program, "torn"):
            weather.struck("torn watch event", self._step)
            self._broken = True
            return chunk[: len(chunk) // 2]
        if self._random.random() < weather.worst_value(program, "doubled"):
            weather.struck("doubled watch event", self._step)
            return chunk + chunk
        return chunk

    def _loses_event(self) -> bool:
        part = self._weather.worst_value(self._program, "lost")
        if not part or self._random.random() >= part:
            return False
        self._weather.struck("lost watch event", self._step)
        return True

    async def aclose(self) -> None:
        """Gives up what has not been read."""
        await self._chunks.aclose()


def _is_list(target: str) -> bool:
    """Whether a collection is asked for, at no revision in particular."""
    parts = urlsplit(target)
    words = parts.path.strip("/").split("/")
    rest = words[2:] if words[0] == "api" else words[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    return len(rest) == 1 and not any(one in parts.query for one in ("resourceVersion", "continue", "watch"))


def request_text(method: str, target: str, *, stream: bool) -> str:
    """A request in few words, without names: ``PATCH pods/status``, ``WATCH nodes``."""
    parts = urlsplit(target).path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    what = "/".join([*rest[:1], *rest[2:3]])
    return f"{'WATCH' if stream else method} {what}"


_FAILURES = {
    "409": ("Conflict", "the object has been modified; please apply your changes to the latest version and try again"),
    "410": ("Expired", "too old resource version"),
    "429": ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    "500": ("InternalError", "Internal error occurred: etcdserver: request timed out"),
}


def _error_answer(code: str) -> ApiResponse:
    reason, message = _FAILURES[code]
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": int(code),
    }
    headers = {"content-type": "application/json"} | ({"retry-after": "1"} if code == "429" else {})
    return ApiResponse(int(code), headers, msgspec.json.encode(body))
