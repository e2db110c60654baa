"""The state directory: files that outlive this process. They need not survive a reboot, so no file is synced.

``pods/<namespace>_<name>_<uid>/`` holds ``pod.json``, a ``<container>.log`` for each container, and a directory for
each container that was to be started:

``env``   the environment of the main process, each variable ended by NUL
``shim``  the shim's line of /proc/PID/stat, written by itself; empty if a late shim is forbidden to start
``main``  the same of the container's main process
``stop``  "yes" when SIGTERM is sent
``exit``  the exit code (128 + n after signal n)
``links``  mountPaths and the paths of their volumes, each ended by NUL; ``root`` is an empty directory then
``enclosed``  exists if the main process sees its volumes at the mountPaths; else ``unmounted`` says why not
``attempt``  which start of the container it is, 0 for the first; the log of a later one is ``<container>.log.<attempt>``

A file whose last line has no end is incomplete. Only our user can enter the directory, because ``pod.json`` and ``env``
may contain secrets.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.model.pods import Pod
from lastcall_lab.processes.process import ProcessIdentity, parse_identity


class PodState(Facts, frozen=True):
    """A pod that was to be started. ``life`` differs for each start of a pod of this uid.

    ``one_by_one``: its containers are started one at a time, and the end of each is reported.
    """

    pod: Pod
    address: str
    boot_id: str
    life: str
    one_by_one: bool = False


class ContainerFiles:
    """The files of one container; ``attempt`` is read from them if it is not given."""

    def __init__(self, pod_directory: Path, name: str, attempt: int | None = None) -> None:
        self.directory = pod_directory / name
        self.attempt = int(self._read_text("attempt") or 0) if attempt is None else attempt
        self.log = log_path(pod_directory, name, self.attempt)

    def create(
        self, variables: Iterable[str], user: tuple[int, int] | None, links: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Creates all files that a container starts with.

        ``variables`` are ``NAME=value``; ``links`` are mountPaths with the paths of their volumes. The log belongs to
        ``user`` (uid, gid), so that it can be opened as /dev/stdout.
        """
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        (self.directory / "attempt").write_text(str(self.attempt), encoding="ascii")
        (self.directory / "env").write_bytes(b"".join(f"{variable}\0".encode() for variable in variables))
        if said := "".join(f"{target}\0{source}\0" for target, source in links):
            (self.directory / "root").mkdir()
            (self.directory / "links").write_bytes(os.fsencode(said))
        (self.directory / "stop").write_bytes(b"no ")  # now, because making a file can take a millisecond
        self.log.touch(mode=0o640)
        if user:
            os.chown(self.log, *user)

    def environment(self) -> dict[str, str]:
        """The initial environment of the main process."""
        pairs = [pair.partition("=") for pair in self._read_text("env").split("\0") if pair]
        return {name: value for name, _, value in pairs}

    def forbid_start(self) -> bool:
        """Prevents a late shim from starting; False if it has started."""
        try:
            os.close(os.open(self.directory / "shim", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def shim_identity(self) -> ProcessIdentity | None:
        """The identity of the shim; None if it has not started."""
        return parse_identity(self._read_text("shim"))

    def main_identity(self) -> ProcessIdentity | None:
        """The identity of the main process; None if it has not started."""
        return parse_identity(self._read_text("main"))

    def is_enclosed(self) -> bool:
        """Whether the main process has namespaces of its own, in which it sees its volumes."""
        return bool(self._read_text("enclosed"))

    def unmounted_reason(self) -> str:
        """Why the main process does not see its volumes at their mountPaths; empty if it does."""
        return self._read_text("unmounted").strip()

    def exit_code(self) -> int | None:
        """The exit code of the main process; None if it has not ended, or if the code is unknown."""
        text = self._read_text("exit")
        return int(text) if text.endswith("\n") else None

    def ended_at(self) -> int:
        """When the exit code was written, in nanoseconds since 1970; 0 if it was not. Only good for ordering."""
        with contextlib.suppress(FileNotFoundError):
            return (self.directory / "exit").stat().st_mtime_ns
        return 0

    def sigterm_recorded(self) -> bool:
        """Whether SIGTERM was sent, or was about to be sent."""
        return self._read_text("stop") == "yes"

    def record_sigterm(self, send: Callable[[], None]) -> None:
        """Records that SIGTERM is sent, and then sends it.

        If this process dies between the two, the container never gets the signal. The window is a matter of
        microseconds, because all slow work comes first. In the other order, a container could get the signal twice
        whenever the woken process takes the CPU from us, which is frequent. If recording fails, the signal is sent all
        the same, and then OSError raised.
        """
        try:
            record = os.open(self.directory / "stop", os.O_WRONLY)
            try:
                os.write(record, b"yes")
                send()
            finally:
                os.close(record)
        except OSError:
            send()
            raise

    def _read_text(self, name: str) -> str:
        try:
            return (self.directory / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""


class ProcessStateDirectory:
    """The files of all pods."""

    def __init__(self, path: Path) -> None:
        self._pods = path / "pods"
        self._pods.mkdir(mode=0o700, parents=True, exist_ok=True)

    def pod_directory(self, pod: Pod) -> Path:
        """The directory of a pod's files."""
        return self._pods / f"{pod.metadata.namespace}_{pod.metadata.name}_{pod.metadata.uid}"

    def create(self, state: PodState) -> None:
        """Creates the files of a pod that is to be started, without any of an earlier start."""
        directory = self.pod_directory(state.pod)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        draft = directory / "pod.json.new"
        draft.write_bytes(msgspec.json.encode(state))
        draft.rename(directory / "pod.json")

    def load(self) -> Iterator[tuple[PodState, list[str]]]:
        """The pods of this boot, each with the names of its containers.

        Files of an earlier boot are deleted, because their processes ended with it.
        """
        for directory in sorted(self._pods.iterdir()):
            try:
                state = msgspec.json.decode((directory / "pod.json").read_bytes(), type=PodState)
            except FileNotFoundError:
                continue  # finished: only logs are left
            except msgspec.DecodeError as error:
                raise InvalidInput(str(directory / "pod.json"), [str(error)]) from error
            if state.boot_id == boot_id():
                yield state, sorted(entry.name for entry in directory.iterdir() if entry.is_dir())
            else:
                shutil.rmtree(directory, ignore_errors=True)

    def forget(self, pod: Pod) -> None:
        """Deletes all files but the logs; ``pod.json`` first, so that an interruption leaves no partial pod."""
        directory = self.pod_directory(pod)
        (directory / "pod.json").unlink(missing_ok=True)
        for entry in directory.iterdir() if directory.exists() else ():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)

    def forget_logs(self, pod: Pod, name: str, *, before: int) -> None:
        """Deletes the logs of a container's attempts before this one."""
        directory = self.pod_directory(pod)
        for attempt in range(before):
            for path in (log := log_path(directory, name, attempt), log.with_name(f"{log.name}.times")):
                path.unlink(missing_ok=True)

    def delete(self, uid: str) -> None:
        """Deletes all files of the pod with this uid, if there are any."""
        for directory in self._pods.iterdir():
            if directory.name.endswith(f"_{uid}"):
                shutil.rmtree(directory, ignore_errors=True)


def log_path(pod_directory: Path, name: str, attempt: int) -> Path:
    """The path of a container's output."""
    return pod_directory / (f"{name}.log.{attempt}" if attempt else f"{name}.log")


def boot_id() -> str:
    """The id of the boot (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
