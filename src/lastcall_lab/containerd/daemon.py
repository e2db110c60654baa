"""A private containerd with its own sockets, state, images and cgroups; the machine need not run another one."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection, CriRefused
from lastcall.errors import Unavailable
from lastcall_lab.containerd import configuration, images, leftovers

_PROGRAMS = {"containerd": "containerd", "containerd-shim-runc-v2": "containerd", "ctr": "containerd", "runc": "runc"}
"""Required programs, and the Debian packages that contain them."""

_UP = 90.0


def unavailable_reason() -> str | None:
    """Why a private containerd cannot run on this machine; None if it can."""
    if os.geteuid() != 0:
        return "a private containerd needs root"
    missing = [f"{name} (package {package})" for name, package in _PROGRAMS.items() if not _is_installed(name)]
    if not images.find_busybox():
        missing.append("a static busybox (package busybox-static)")
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not _cgroups_writable():
        return "cgroups cannot be made: /sys/fs/cgroup is read-only"
    return None


class PrivateContainerd:
    """Runs from ``start`` to ``clean_up``; all its files are below ``directory``, its pods in ``cgroup``.

    The methods block: within an event loop use ``async with``, or ``asyncio.to_thread``. ``programs`` is a directory
    with another containerd than the installed one.
    """

    def __init__(self, *, programs: Path | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lc-"))
        self.socket = self.directory / "c.sock"  # the path of a socket has at most 107 bytes
        self.endpoint = f"unix://{self.socket}"
        self.cgroup = f"/{self.directory.name}"
        self.log = self.directory / "containerd.log"
        self._path = ":".join([str(programs)] * bool(programs) + [os.environ.get("PATH", ""), "/usr/sbin:/sbin"])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The pid of containerd; 0 if it does not run."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Starts it and, the first time, imports the images; waits until it answers. Unavailable shows its log."""
        first = not (self.directory / "config.toml").exists()
        if first:
            self._write_configuration()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["containerd", "--config", str(self.directory / "config.toml"), "--log-level", "info"],
                executable=shutil.which("containerd", path=self._path),
                env={**os.environ, "PATH": self._path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            asyncio.run(self._wait_until_up())
        except Unavailable as error:
            end = self.log.read_text(errors="replace")[-2000:]
            raise Unavailable(f"containerd does not start: {error}\n{end}") from error
        if first:
            self._import_images()

    def stop(self) -> None:
        """Stops containerd alone: containers survive in their shims."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Stops and starts it, as an upgrade does."""
        self.stop()
        self.start()

    def clean_up(self) -> list[int]:
        """Ends all pods, containerd and leftovers: processes, mounts, cgroups, files.

        Returns the processes that had survived their containerd; normally none.
        """
        try:
            if self._process is not None:
                asyncio.run(self.remove_pods())
        except Unavailable:
            pass  # survivors are killed below
        self.stop()
        killed = leftovers.remove_leftovers(self.directory, self.socket, self.cgroup)
        shutil.rmtree(self.directory, ignore_errors=True)
        return killed

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.clean_up)

    def _write_configuration(self) -> None:
        for name in ("cni/bin", "cni/net.d", "runc"):
            (self.directory / name).mkdir(parents=True)
        runc = shutil.which("runc", path=self._path)
        if runc is None:
            raise Unavailable("runc is not installed")
        configuration.write_configuration(
            self.directory / "config.toml",
            directory=self.directory,
            runc=runc,
            snapshotter=configuration.choose_snapshotter(self.directory),
        )

    def _import_images(self) -> None:
        program = images.find_busybox()
        if program is None:
            raise Unavailable("no static busybox is installed")
        archive = self.directory / "images.tar"
        images.write_archive(archive, program)
        ctr = ["ctr", "--address", str(self.socket), "--namespace", "k8s.io", "images", "import", str(archive)]
        done = subprocess.run(ctr, env={"PATH": self._path}, check=False, capture_output=True, text=True)
        archive.unlink()
        if done.returncode != 0:
            raise Unavailable(f"images cannot be imported: {done.stderr.strip()}")

    async def _wait_until_up(self) -> None:
        connection = CriConnection(self.endpoint)
        give_up = time.monotonic() + _UP
        try:
            while True:
                try:
                    await connection.call("Status", cri.StatusRequest())
                    return
                except Unavailable:
                    if self._process is None or self._process.poll() is not None or time.monotonic() > give_up:
                        raise
                await asyncio.sleep(0.02)
        finally:
            connection.close()

    async def remove_pods(self) -> None:
        """Kills and removes all pods; Unavailable if containerd does not answer."""
        connection = CriConnection(self.endpoint)
        try:
            sandboxes = await connection.call("ListPodSandbox", cri.ListPodSandboxRequest())
            await asyncio.gather(*(_remove_sandbox(connection, sandbox.id) for sandbox in sandboxes.items))
        finally:
            connection.close()


async def _remove_sandbox(connection: CriConnection, sandbox: str) -> None:
    await _call_twice(connection, "StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=sandbox))
    await _call_twice(connection, "RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox))


async def _call_twice(connection: CriConnection, verb: str, request: Any) -> None:
    """Repeats a call that containerd refused: a shim has just ended, or a container is removed at the same time."""
    try:
        await connection.call(verb, request, within=60)
    except CriRefused:
        await connection.call(verb, request, within=60)


def _is_installed(program: str) -> bool:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None


def _cgroups_writable() -> bool:
    """Whether cgroups can be made: in the hierarchy of version 2, or in all those of version 1."""
    tree = Path("/sys/fs/cgroup")
    top = tree if (tree / "cgroup.controllers").exists() else tree / "memory"
    probe = top / f"lc-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True
