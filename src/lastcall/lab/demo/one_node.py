"""Runs the demo: starts the node and its pods, presses the power button, shows what happens, leaves a report."""

import asyncio
import logging
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from rich.console import Console

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.journal_files import JournalFiles
from lastcall.aio import Group, cancel, first
from lastcall.errors import TimedOut
from lastcall.lab.demo import power
from lastcall.lab.demo.view import View
from lastcall.lab.node import LabNode, Runtime
from lastcall.lab.program import runtime
from lastcall.lab.status_files import StatusFiles
from lastcall.model import decode
from lastcall.model.pods import Pod
from lastcall.model.record import fold
from lastcall.model.shutdown import Shutdown, from_lines
from lastcall.report.html import html
from lastcall.report.text import text
from lastcall.report.timeline import timeline
from lastcall.wiring import Program, Settings

HERE = Path(__file__).parent
PATIENCE = 60.0
"""Seconds in which everything must have started, and in which it must have ended."""


class Demo:
    """One demo in a directory of its own; ``endpoint`` is a CRI socket, None for plain processes."""

    def __init__(self, directory: Path, *, endpoint: str | None, logind: str, console: Console) -> None:
        self._directory = directory
        self._endpoint = endpoint
        self._power = power.private if logind == "private" else power.embedded
        self._console = console
        self._clock = SystemClock()
        self._view = View(console, self._clock.boottime)
        self._settings = Settings(
            config=directory / "agent.yaml", state_dir=directory / "state", node_name="demo-node", metrics=None
        )

    async def run(self) -> Path:
        """Shows it all; the path of the HTML report. TimedOut if something hangs."""
        self._lay_out()
        logging.getLogger("lastcall").setLevel(logging.CRITICAL)
        async with (
            runtime(self._settings, self._directory / "manifests", self._endpoint) as started,
            self._power(self._clock, self._settings.state_dir) as machine,
        ):
            node = LabNode(
                self._settings.node_name,
                manifests=self._directory / "manifests",
                runtime=started,
                status=StatusFiles(self._settings.state_dir / "status"),
                clock=self._clock,
            )
            program = Program(
                self._settings,
                runtime=started,
                node=node,
                logind=machine.logind,
                lock_keeper=machine.keeper,
                limit_files=machine.limit_files,
                listeners=[self._view.event],
            )
            group = Group()
            agent = group.start(program.run(), "agent")
            group.start(node.run(), "node")
            try:
                await self._within(self._show(node, machine), agent)
            finally:
                program.agent.leave()
                await self._tidy(started, node)
                await group.cancel()
        return self._report()

    def _lay_out(self) -> None:
        shutil.copytree(HERE / "manifests", self._directory / "manifests")
        shutil.copy(HERE / "agent.yaml", self._settings.config)
        self._settings.state_dir.mkdir()

    async def _show(self, node: LabNode, machine: power.Power) -> None:
        self._view.say("starting the pods of demo-node ...")
        while len(node.pods) < self._count() or any(_starting(pod) for pod in node.pods.values()):
            await self._clock.sleep(0.05)
        await self._clock.sleep(0.5)
        for pod in node.pods.values():
            self._view.add(decode.convert(pod, Pod, "status"), pod["status"]["phase"])
        if self._view.drawn:
            self._view.live.start()
        try:
            self._view.say(f"{len(node.pods)} pods run on demo-node; the power button is pressed in 3 seconds")
            await self._clock.sleep(3)
            self._view.say("the power button was pressed: the machine is going down, as soon as its pods have ended")
            await machine.press()
            await machine.off()
            self._view.say("the lock is released: the machine would be off now")
            await self._clock.sleep(0.3)
        finally:
            if self._view.drawn:
                self._view.live.stop()

    def _count(self) -> int:
        return sum(len(decode.documents(path.read_bytes(), path.name)) for path in (HERE / "manifests").glob("*.yaml"))

    async def _within(self, show: Coroutine[object, object, None], agent: "asyncio.Task[None]") -> None:
        showing = asyncio.create_task(show, name="show")
        alarm = asyncio.create_task(self._clock.sleep(2 * PATIENCE), name="alarm")
        try:
            if await first(asyncio.shield(showing), asyncio.shield(agent), asyncio.shield(alarm)):
                raise TimedOut(f"the demo hangs; its logs are in {self._directory}")
        finally:
            await cancel(showing, alarm)

    @staticmethod
    async def _tidy(started: Runtime, node: LabNode) -> None:
        for pod in node.pods.values():
            await started.remove(pod["metadata"]["uid"])

    def _report(self) -> Path:
        journals = JournalFiles(self._settings.state_dir)
        latest = journals.latest()
        if latest is None:
            raise TimedOut(f"no shutdown was journalled in {self._settings.state_dir}")
        record: Shutdown = fold(from_lines(latest[1]))
        self._console.print(text(timeline(record)), highlight=False, markup=False, soft_wrap=True)
        path = self._directory / "report.html"
        path.write_text(html(timeline(record)))
        return path


def _starting(pod: dict[str, Any]) -> bool:
    """Also a job that has not done its work yet."""
    phase = pod["status"]["phase"]
    return phase == "Pending" or bool(phase == "Running" and pod["spec"]["restartPolicy"] == "Never")
