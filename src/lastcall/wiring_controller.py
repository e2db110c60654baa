"""Joins the failover controller to the real world: one process, its signals, its status pages, its cluster."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import SystemRandom

import msgspec

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.controller_metrics import ControllerMetrics
from lastcall.adapters.fencing.fence_agent import DIRECTORIES, FenceAgents
from lastcall.adapters.fencing.fences import KubeFences
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.election import Election
from lastcall.adapters.kube.failover_cluster import COMPONENT, KubeCluster
from lastcall.adapters.kube.http import Http, Limits
from lastcall.adapters.kube.watching import Key
from lastcall.adapters.status_server import TEXT, alive, serving
from lastcall.aio import first
from lastcall.failover.deciding.concluding import Terms
from lastcall.failover.doing.controller import CONCURRENCY, Controller, Outside, Status
from lastcall.failover.doing.event_writer import Telling
from lastcall.failover.knowing.proofs import Kind, switched
from lastcall.failover.limits.storms import Limit
from lastcall.failover.telling import announcing, audit, heard
from lastcall.failover.telling.happenings import (
    Acted,
    Blocked,
    Broke,
    Decided,
    Happening,
    Learned,
    Rested,
    Stepped,
    Stopped,
)
from lastcall.failover.telling.progress import Progress
from lastcall.failover.telling.stages import Stage
from lastcall.model.fence_policy import Mode
from lastcall.model.power import Power
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.ports import Clock

log = logging.getLogger(__name__)
audit_log = logging.getLogger("lastcall.audit")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line says. ``metrics`` is host and port, None for no status page."""

    kubeconfig: str = ""
    """Empty: as kubectl finds it, or the pod's own."""
    context: str = ""
    metrics: tuple[str, int] | None = None
    namespace: str = SYSTEM_NAMESPACE
    """lastcall's own: of the Lease, and of Secrets."""
    mode: Mode = Mode.ENFORCE
    detach: bool = False
    concurrency: int = CONCURRENCY
    agents: Sequence[str] = DIRECTORIES
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def identity(environ: Mapping[str, str]) -> str:
    """Of this life of the program: the pod's or the machine's name, and what no other life has."""
    return f"{environ.get('POD_NAME') or socket.gethostname()}_{SystemRandom().getrandbits(32):08x}"


class Counting:
    """The metrics of one controller; ``hear`` is a listener."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._progress = Progress()
        self._held: dict[str, str] = {}
        """What keeps a lost node from being fenced now, by its name."""
        self._metrics = ControllerMetrics(
            steps=[one.value for one in Stage],
            evidence=[one.value for one in Kind],
            answers=[one.value for one in Power],
            reasons=[*(one.value for one in Limit), announcing.FENCERS],
        )

    def hear(self, happening: Happening) -> None:
        """Counts what is to be counted of it."""
        measured = self._progress.hear(happening, self._clock.boottime())
        for stage, seconds in measured.spent:
            self._metrics.passed(stage.value, seconds)
        for kind in measured.kinds:
            self._metrics.judged(kind.value)
        match happening:
            case Decided(node=node) | Blocked(node=node):
                self._held[node] = announcing.held_by(happening)
            case Rested(node=node):
                self._held.pop(node, None)
            case Stopped():
                self._held.clear()
            case Stepped(step=step, seconds=seconds):
                self._metrics.carried_out(type(step).__name__, seconds)
            case Learned(fact=fact):
                self._metrics.answered(switched(fact).value)
            case Broke():
                self._metrics.broke_off()
            case Acted(ended=float(), gone=False, verb=verb, namespace=namespace, reason=reason, error=error):
                self._metrics.acted(
                    verb, namespace=namespace, reason=reason.value if reason else "", failed=bool(error)
                )

    def page(self, status: Status) -> bytes:
        """All of them as they are now, as text/plain; version=0.0.4."""
        nodes = {"All": status.nodes, "InTrouble": status.in_trouble, "Marked": status.marked}
        steps = {stage.value: count for stage, count in self._progress.nodes.items()}
        held = Counter(self._held.values())
        self._metrics.status(leads=status.leads, nodes=nodes, steps=steps, not_fenced=held)
        return self._metrics.text()


class Program:
    """The controller as a process of its own by ``run``, or within another by ``live``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._counting = Counting(self._clock)
        self._me = identity(settings.environ)
        access = kubeconfig.find(
            self._clock, settings.environ, kubeconfig=settings.kubeconfig, context=settings.context
        )
        self._http = Http(access.endpoint, access.credentials, limits=Limits(connections=settings.concurrency + 14))
        random = SystemRandom()
        self._cluster = KubeCluster(self._http, self._clock, random, instance=self._me)
        urgent = self._cluster.client(self._http.urgent)
        self._election = Election(
            urgent, Key(settings.namespace, COMPONENT), self._me, clock=self._clock, random=random
        )
        fences = KubeFences(
            Client(self._http, manager=COMPONENT),
            settings.namespace,
            clock=self._clock,
            environ=settings.environ,
            agents=FenceAgents(settings.agents),
        )
        self._telling = Telling(self._cluster, self._clock)
        self.controller = Controller(
            Outside(clock=self._clock, cluster=self._cluster, leadership=self._election, fences=fences),
            Terms(me=self._me, mode=settings.mode, detach=settings.detach),
            listeners=[self._audit, self._counting.hear, self._telling.hear],
            concurrency=settings.concurrency,
        )

    async def run(self) -> None:
        """Until SIGTERM or SIGINT."""
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        await first(stopped.wait(), self.live())

    async def live(self) -> None:
        """Until cancelled; then the lease is released."""
        log.info("this is %s", self._me)
        try:
            async with self._status_page():
                await first(
                    self._election.lead(self.controller.act),
                    self.controller.observe(),
                    self._telling.run(),
                )
        finally:
            self._http.close()

    # -- what others see -----------------------------------------------------------------------------------------------

    def _audit(self, happening: Happening) -> None:
        entry = audit.entry(happening, by=self._me, wall=self._clock.wall(), now=self._clock.boottime())
        if entry:
            audit_log.info("%s", msgspec.json.encode(entry).decode())

    def _status_page(self) -> contextlib.AbstractAsyncContextManager[None]:
        paths = {
            "/metrics": self._metrics_page,
            "/healthz": alive,
            "/readyz": self._readiness,
            "/failover": self._failover_page,
        }
        return serving(paths, self._settings.metrics, private=("/failover",))

    def _metrics_page(self) -> tuple[int, str, bytes]:
        return 200, "text/plain; version=0.0.4; charset=utf-8", self._counting.page(self.controller.status)

    def _readiness(self) -> tuple[int, str, bytes]:
        """Ready means that it sees the cluster as it is; whether it leads is another question."""
        status = self.controller.status
        trouble = self._cluster.blind or (f"waiting for {status.waiting_for}" if status.waiting_for else "")
        sentence = trouble or ("it leads" if status.leads else f"{self._election.holder or 'nobody'} leads")
        return 503 if trouble else 200, TEXT, f"{sentence}\n".encode()

    def _failover_page(self) -> tuple[int, str, bytes]:
        """A sentence for each node in trouble, and whether others still hear it."""
        lines = [f"{one.name}: {one.sentence}{self._still(one.name)}\n" for one in self.controller.workers]
        return 200, TEXT, "".join(lines).encode() or b"no node is in trouble, or another controller leads\n"

    def _still(self, name: str) -> str:
        knot = self.controller.observing.knots.get(name)
        said = heard.by_others(knot.seen.boot, knot.seen.facts(), self._clock.boottime()) if knot else ""
        return f"; {said}" if said else ""


async def run(settings: Settings) -> None:
    """``lastcall controller``."""
    await Program(settings).run()
