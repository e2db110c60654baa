"""Connects the agent to the sources that announce that this machine goes down."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lastcall.adapters.deadlines.metadata_http import HttpMetadataService
from lastcall.adapters.deadlines.notice_socket import SOCKET_NAME, serve_notices
from lastcall.adapters.deadlines.upsc import UpscCommand
from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.aio import cancel_and_wait
from lastcall.errors import InvalidInput, LastcallError
from lastcall.graceful.agent import ShutdownAgent
from lastcall.graceful.cluster.source_reporter import SourceReporter
from lastcall.graceful.deadlines.findings import SourceFinding
from lastcall.graceful.deadlines.metadata_feeds import AzureFeed, Ec2Feed, GcpFeed
from lastcall.graceful.deadlines.power_supply import supply_finding
from lastcall.graceful.deadlines.socket_requests import parse_request, plan_answer, requested_notice
from lastcall.graceful.deadlines.source_watch import SourceWatch
from lastcall.graceful.state_machine import AgentState
from lastcall.model.deadline_settings import DeadlineSettings, NutSettings, RebalanceAction
from lastcall.model.shutdown_notice import NoticeSource
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Clock

SOCKET_SECONDS = 10.0
"""Seconds between two attempts to make the socket."""

log = logging.getLogger(__name__)

GCP_PAUSE = 1.0
"""Seconds between two requests to Compute Engine, each of which waits for a change itself."""


@dataclass(frozen=True, kw_only=True)
class DeadlineSources:
    """The configured sources of one agent."""

    settings: DeadlineSettings
    agent: ShutdownAgent
    clock: Clock
    state_dir: Path
    metrics: AgentMetrics
    objects: NodeObjects | None = None
    """Where the sources' standing is written; None without an API server."""

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Asks the sources, and serves the socket, while the context lasts."""
        async with contextlib.AsyncExitStack() as opened:
            reporter = self._build_reporter()
            watches = self._build_watches(reporter)
            loops = [watch.run() for watch in watches] + ([reporter.run()] if reporter and watches else [])
            for loop in [*loops, *([self._serve_socket()] if self.settings.socket else [])]:
                task = asyncio.create_task(loop, name="deadlines")
                opened.push_async_callback(cancel_and_wait, task)
            yield

    async def _serve_socket(self) -> None:
        """Serves the socket; tries again if it cannot be made, because the agent must run without it."""
        said = ""
        while True:
            try:
                async with serve_notices(self.state_dir / SOCKET_NAME, self.answer_request):
                    said = ""
                    self.metrics.set_deadline_source(NoticeSource.SOCKET.value, "", "")
                    await asyncio.get_running_loop().create_future()  # until this task is cancelled
            except LastcallError as error:
                if str(error) != said:
                    log.error("no script can announce a shutdown, trying again: %s", error)
                said = str(error)
                self.metrics.set_deadline_source(NoticeSource.SOCKET.value, "", said)
            await self.clock.sleep(SOCKET_SECONDS)

    def answer_request(self, line: bytes) -> bytes:
        """Carries out a request from the socket."""
        now = self.clock.boottime()
        try:
            request = parse_request(line)
            notice = requested_notice(request, now=now, wall=self.clock.wall())
        except InvalidInput as error:
            return msgspec.json.encode({"ok": False, "error": str(error)})
        if request.cancel:
            self.agent.withdraw_notice(NoticeSource.SOCKET)
        elif notice:
            self.agent.put_notice(notice, replace=True)
        return msgspec.json.encode(plan_answer(self.agent.notices, self.agent.outlook, now=now))

    def _build_reporter(self) -> SourceReporter | None:
        ec2 = self.settings.ec2
        cordons = [NoticeSource.EC2.value] if ec2 and ec2.rebalance is RebalanceAction.CORDON else []
        return SourceReporter(self.objects, self.clock, cordons=frozenset(cordons)) if self.objects else None

    def _build_watches(self, reporter: SourceReporter | None) -> list[SourceWatch]:
        settings, watches = self.settings, []
        if settings.ec2:
            feed = Ec2Feed(HttpMetadataService(settings.ec2.endpoint), self.clock)
            watches.append(self._build_watch(reporter, NoticeSource.EC2, feed.look, settings.ec2.poll_seconds))
        if settings.gcp:
            gcp = GcpFeed(HttpMetadataService(settings.gcp.endpoint), self.clock)
            watches.append(
                self._build_watch(reporter, NoticeSource.GCP, gcp.look, settings.gcp.poll_seconds, pause=GCP_PAUSE)
            )
        if settings.azure:
            azure = AzureFeed(
                HttpMetadataService(settings.azure.endpoint), self.clock, settings.azure, self._have_pods_ended
            )
            watches.append(self._build_watch(reporter, NoticeSource.AZURE, azure.look, settings.azure.poll_seconds))
        if settings.nut:
            look = functools.partial(
                self._look_at_supply, UpscCommand(settings.nut.command, settings.nut.ups), settings.nut
            )
            watches.append(self._build_watch(reporter, NoticeSource.NUT, look, settings.nut.poll_seconds))
        return watches

    def _build_watch(
        self,
        reporter: SourceReporter | None,
        source: NoticeSource,
        look: Callable[[], Awaitable[SourceFinding]],
        seconds: float,
        *,
        pause: float | None = None,
    ) -> SourceWatch:
        def record_look(warning: str, failure: str) -> None:
            self.metrics.set_deadline_source(source.value, warning, failure)
            if reporter:
                reporter.record_look(source.value, warning, failure)

        return SourceWatch(
            source,
            look,
            self.agent,
            clock=self.clock,
            pause=seconds if pause is None else pause,
            pause_after_failure=seconds,
            on_look=record_look,
        )

    async def _look_at_supply(self, supply: UpscCommand, settings: NutSettings) -> SourceFinding:
        variables = await supply.read_variables()
        return supply_finding(variables, settings, now=self.clock.boottime())

    def _have_pods_ended(self) -> bool:
        return self.agent.state is AgentState.RELEASED and not self.agent.outlook.observes
