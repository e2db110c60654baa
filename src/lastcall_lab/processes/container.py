"""One container from its start to its end."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lastcall.ports.node import Clock
from lastcall_lab.processes.command_spec import PATH, ContainerCommand
from lastcall_lab.processes.process import ForeignProcess, kill_marked
from lastcall_lab.processes.state_files import ContainerFiles

log = logging.getLogger(__name__)

_HERE = Path(__file__).parent
_STARTING = 0.002
"""Seconds between two checks for the main process while it is being started."""


class ProcessContainer:
    """A container that runs or has run, started by this process or an earlier one.

    It has ended when its shim has: then the exit code is written and no process of the container is left.
    """

    def __init__(
        self,
        container_id: str,
        files: ContainerFiles,
        *,
        shim: ForeignProcess | None,
        on_end: Callable[["ProcessContainer"], None],
    ) -> None:
        self.id = container_id
        self.files = files
        self.exit_code: int | None = None
        self.ended = asyncio.Event()
        self._on_end = on_end
        self._shim = shim
        self._main: ForeignProcess | None = None
        self._main_known = False
        self._sigterm_sent = files.sigterm_recorded()
        self._watched: ForeignProcess | None = None
        if shim:
            self._watch(shim)
        else:
            self._shim_is_gone()

    @property
    def namespace_pid(self) -> int:
        """The process whose namespaces a program beside the main process must enter; 0 if there are none."""
        return self._main.pid if self._main and self.files.is_enclosed() else 0

    async def wait_until_started(self, clock: Clock) -> None:
        """Waits until the main process is known, or the container has ended: some milliseconds after the start."""
        while not self._find_main() and not self.ended.is_set():
            await clock.sleep(_STARTING)

    def terminate(self) -> None:
        """Sends SIGTERM to the main process once. Requires ``wait_until_started``."""
        if self._sigterm_sent or not self._main or self.ended.is_set():
            return
        self._sigterm_sent = True
        try:
            self.files.record_sigterm(partial(self._main.send_signal, signal.SIGTERM))
        except OSError as error:
            log.warning("container %s: SIGTERM was sent but cannot be recorded: %s", self.id, error)

    def kill(self) -> None:
        """Sends SIGKILL to the main process; its shim kills the rest."""
        if self._main and not self.ended.is_set():
            self._main.send_signal(signal.SIGKILL)

    def notice_end(self) -> None:
        """Detects an end that the event loop has not reported yet."""
        while self._watched and self._watched.has_ended:
            self._handle_watched_end()

    def close(self) -> None:
        """Stops watching; the container runs on."""
        self._unwatch()
        for process in (self._shim, self._main):
            if process:
                process.close()

    def _find_main(self) -> bool:
        if not self._main_known and (identity := self.files.main_identity()):
            self._main = ForeignProcess.find(identity)
            self._main_known = True
        return self._main_known

    def _watch(self, process: ForeignProcess) -> None:
        self._watched = process
        asyncio.get_running_loop().add_reader(process.descriptor, self._handle_watched_end)

    def _unwatch(self) -> None:
        if self._watched:
            asyncio.get_running_loop().remove_reader(self._watched.descriptor)
            self._watched = None

    def _handle_watched_end(self) -> None:
        """The watched process has ended: the shim, or the main process if there is no shim any more."""
        self._unwatch()
        if not self._shim:
            self._finish()
            return
        self._shim.reap()
        self._shim.close()
        self._shim = None
        self._shim_is_gone()

    def _shim_is_gone(self) -> None:
        """A killed shim leaves its processes behind, and the exit code remains unknown."""
        self.exit_code = self.files.exit_code()
        self._find_main()
        if self.exit_code is None and self._main and not self._main.has_ended:
            log.warning("container %s: its shim is gone: its exit code will not be known", self.id)
            self._watch(self._main)
        else:
            self._finish()

    def _finish(self) -> None:
        if self.exit_code is None:
            kill_marked(_environment_mark(self.id))
        self.ended.set()
        self.close()
        self._on_end(self)


def _environment_mark(container_id: str) -> str:
    return f"LASTCALL_CONTAINER={container_id}"


def spawn_container(container_id: str, files: ContainerFiles, command: ContainerCommand) -> ForeignProcess:
    """Starts a container's shim, which starts the container. Raises OSError if that fails."""
    variables = [*(f"{name}={value}" for name, value in command.env.items()), _environment_mark(container_id)]
    files.create(variables, command.user, command.links)
    python = (sys.executable, "-I", "-S")
    user = f"{command.user[0]}:{command.user[1]}" if command.user else ""
    argv = (
        *(*python, str(_HERE / "launch.py"), str(files.directory), command.directory, str(files.log)),
        *(*python, str(_HERE / "enter.py"), str(files.directory), user),
        *command.argv,
    )
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(files.log), os.O_WRONLY | os.O_APPEND, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return ForeignProcess.from_pid(
        os.posix_spawn(sys.executable, argv, {"PATH": PATH}, setsid=True, file_actions=actions)
    )
