"""``kubectl exec`` and ``kubectl logs`` of containers behind the CRI."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import Connection
from lastcall.aio import cancel
from lastcall.errors import LastcallError
from lastcall.lab.apiserver.kubelets import STDERR, STDOUT

_LONGEST = 24 * 3600.0
"""Seconds after which a program is given up."""

_CHUNK = 256 * 1024


class SyncExecution:
    """A program by ExecSync: it reads nothing, and what it says comes when it has ended."""

    def __init__(self, connection: Connection, container_id: str, command: Sequence[str]) -> None:
        request = cri.ExecSyncRequest(container_id=container_id, cmd=command)
        work = connection.call("ExecSync", request, within=_LONGEST)
        self._answer: asyncio.Task[cri.ExecSyncResponse] = asyncio.create_task(work, name=f"exec {command[0]}")

    async def write(self, data: bytes) -> None:
        """Nobody reads it."""

    def end_input(self) -> None:
        """There was none."""

    def resize(self, width: int, height: int) -> None:
        """It has no terminal."""

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """All of it at the end; what the runtime says about a program that it cannot start."""
        try:
            answer = await asyncio.shield(self._answer)
        except LastcallError as error:
            yield STDERR, f"{error}\n".encode()
            return
        if answer.stdout:
            yield STDOUT, answer.stdout
        if answer.stderr:
            yield STDERR, answer.stderr

    async def wait(self) -> int:
        """Its exit code; 126 if it could not be started."""
        try:
            return (await asyncio.shield(self._answer)).exit_code
        except LastcallError:
            return 126

    def kill(self) -> None:
        """The runtime ends it when it is not asked any more."""
        if not self._answer.done():
            self._killing = asyncio.ensure_future(cancel(self._answer))


class CriLog:
    """A log in the CRI's format: time, stream, F for a whole line or P for a part of one, text."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self, position: int) -> tuple[Sequence[tuple[float, bytes]], int]:
        """Whole lines from ``position`` on, some at a time."""
        return await asyncio.to_thread(self._read, position)

    def _read(self, position: int) -> tuple[list[tuple[float, bytes]], int]:
        try:
            with self._path.open("rb") as file:
                file.seek(position)
                data = file.read(_CHUNK)
        except FileNotFoundError:
            return [], position
        whole = data[: data.rfind(b"\n") + 1]
        lines = []
        for line in whole.splitlines(keepends=True):
            at, _, rest = line.partition(b" ")
            _, tags, text = rest.split(b" ", 2)
            said = datetime.fromisoformat(at.decode()).timestamp()
            lines.append((said, text if tags.startswith(b"F") else text.rstrip(b"\n")))
        return lines, position + len(whole)
