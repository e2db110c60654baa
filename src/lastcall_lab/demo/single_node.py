"""The demo with a single node: starts its pods, presses the power button, shows the shutdown, writes a report."""

import asyncio
import logging
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from rich.console import Console

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.aio import OrderedTaskGroup, cancel_and_wait, wait_first
from lastcall.errors import TimedOut
from lastcall.model import decoding
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownRecord, from_lines
from lastcall.model.shutdown_fold import fold_events
from lastcall.report.html_report import render_html
from lastcall.report.text_report import render_text
from lastcall.report.timeline import build_timeline
from lastcall.wiring.agent import AgentProgram, AgentSettings
from lastcall_lab.demo import demo_logind
from lastcall_lab.demo.view import DemoView
from lastcall_lab.static_node.node_process import open_runtime
from lastcall_lab.static_node.static_pod_node import StaticPodNode, StaticPodRuntime
from lastcall_lab.static_node.status_files import StatusFiles

HERE = Path(__file__).parent
PATIENCE = 60.0
"""Seconds within which everything must have started, and within which it must have ended."""


class SingleNodeDemo:
    """One demo with its own directory; ``endpoint`` is a CRI socket, None for plain processes."""

    def __init__(self, directory: Path, *, endpoint: str | None, logind: str, console: Console) -> None:
        self._directory = directory
        self._endpoint = endpoint
        self._power = demo_logind.open_private_logind if logind == "private" else demo_logind.open_embedded_logind
        self._console = console
        self._clock = SystemClock()
        self._view = DemoView(console, self._clock.boottime)
        self._settings = AgentSettings(
            config=directory / "agent.yaml", state_dir=directory / "state", node_name="demo-node", metrics=None
        )

    async def run(self) -> Path:
        """Runs all of it; returns the path of the HTML report. Raises TimedOut if something hangs."""
        self._write_files()
        logging.getLogger("lastcall").setLevel(logging.CRITICAL)
        async with (
            open_runtime(self._settings, self._directory / "manifests", self._endpoint) as started,
            self._power(self._clock, self._settings.state_dir) as machine,
        ):
            node = StaticPodNode(
                self._settings.node_name,
                manifests=self._directory / "manifests",
                runtime=started,
                status=StatusFiles(self._settings.state_dir / "status"),
                clock=self._clock,
            )
            program = AgentProgram(
                self._settings,
                runtime=started,
                node=node,
                logind=machine.logind,
                lock_keeper=machine.keeper,
                limit_files=machine.limit_files,
                listeners=[self._view.show_event],
            )
            group = OrderedTaskGroup()
            agent = group.start(program.run(), "agent")
            group.start(node.run(), "node")
            try:
                await self._run_with_alarm(self._show_shutdown(node, machine), agent)
            finally:
                program.agent.request_stop()
                await self._remove_pods(started, node)
                await group.cancel()
        return self._write_report()

    def _write_files(self) -> None:
        shutil.copytree(HERE / "manifests", self._directory / "manifests")
        shutil.copy(HERE / "agent.yaml", self._settings.config)
        self._settings.state_dir.mkdir()

    async def _show_shutdown(self, node: StaticPodNode, machine: demo_logind.DemoLogind) -> None:
        self._view.show_text("starting the pods of demo-node ...")
        while len(node.pods) < self._count_pods() or any(_is_starting(pod) for pod in node.pods.values()):
            await self._clock.sleep(0.05)
        await self._clock.sleep(0.5)
        for pod in node.pods.values():
            self._view.add_pod(decoding.convert(pod, Pod, "status"), pod["status"]["phase"])
        if self._view.is_terminal:
            self._view.live.start()
        try:
            self._view.show_text(f"{len(node.pods)} pods run on demo-node; the power button is pressed in 3 seconds")
            await self._clock.sleep(3)
            self._view.show_text("the power button was pressed: the machine shuts down as soon as its pods have ended")
            await machine.press()
            await machine.off()
            self._view.show_text("the lock is released: the machine would be off now")
            await self._clock.sleep(0.3)
        finally:
            if self._view.is_terminal:
                self._view.live.stop()

    def _count_pods(self) -> int:
        return sum(
            len(decoding.parse_documents(path.read_bytes(), path.name)) for path in (HERE / "manifests").glob("*.yaml")
        )

    async def _run_with_alarm(self, show: Coroutine[object, object, None], agent: "asyncio.Task[None]") -> None:
        showing = asyncio.create_task(show, name="show")
        alarm = asyncio.create_task(self._clock.sleep(2 * PATIENCE), name="alarm")
        try:
            if await wait_first(asyncio.shield(showing), asyncio.shield(agent), asyncio.shield(alarm)):
                raise TimedOut(f"the demo hangs; its logs are in {self._directory}")
        finally:
            await cancel_and_wait(showing, alarm)

    @staticmethod
    async def _remove_pods(started: StaticPodRuntime, node: StaticPodNode) -> None:
        for pod in node.pods.values():
            await started.remove_pod(pod["metadata"]["uid"])

    def _write_report(self) -> Path:
        journals = JournalFiles(self._settings.state_dir)
        latest = journals.latest()
        if latest is None:
            raise TimedOut(f"no shutdown was journalled in {self._settings.state_dir}")
        record: ShutdownRecord = fold_events(from_lines(latest[1]))
        self._console.print(render_text(build_timeline(record)), highlight=False, markup=False, soft_wrap=True)
        path = self._directory / "report.html"
        path.write_text(render_html(build_timeline(record)))
        return path


def _is_starting(pod: dict[str, Any]) -> bool:
    """Whether the pod is not running yet, or is a job that has not finished."""
    phase = pod["status"]["phase"]
    return phase == "Pending" or bool(phase == "Running" and pod["spec"]["restartPolicy"] == "Never")
