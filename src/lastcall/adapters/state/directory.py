"""The directory in which the agent keeps what must survive it: made, tried, and never the kubelet's."""

import errno
import os
import tempfile
from pathlib import Path

from lastcall.errors import LastcallError, NotPermitted, RefusedForSafety

_KUBELET = Path("/var/lib/kubelet")
_KUBELET_MARKS = (
    ("cpu_manager_state",),
    ("memory_manager_state",),
    ("plugins_registry",),
    ("config.yaml", "pods"),
    ("pki", "pods"),
)
"""What only a kubelet's root directory (``--root-dir``) holds: all the files of one of these lines."""


def refuse_kubelet_directory(path: Path) -> None:
    """RefusedForSafety if this is the kubelet's own root directory, under whatever name.

    The kubelet keeps its state file there under the name that we write too; ours must never replace it.
    """
    marked = any(all(_path_exists(path / name) for name in marks) for marks in _KUBELET_MARKS)
    if marked or path.resolve() == _KUBELET:
        raise RefusedForSafety(
            f"{path} is the kubelet's own directory, whose state file must not be overwritten: "
            "give lastcall a directory of its own, such as /var/lib/lastcall"
        )


_OURS = frozenset(
    {
        "agent.lock",
        "containers",
        "graceful_node_shutdown_state",
        "lock-holder.sock",
        "pods",
        "shutdowns",
        "status",
    }
)
"""What we make in a state directory (docs/reference/files.md)."""


def make_writable(path: Path) -> None:
    """Makes the directory, which its owner alone may enter, and tries to write in it.

    A LastcallError names what is wrong.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"\n")
            file.flush()
    except OSError as error:
        raise explain_error(error, path) from error


def close_to_others(path: Path) -> None:
    """Takes from everybody but the owner the rights to a state directory that an earlier version has made.

    One in which there is anything else than what we make is not ours alone, and is left as it is.
    """
    try:
        found = {entry.name for entry in path.iterdir() if not entry.name.startswith(".tmp-")}
        status = path.stat()
        if found and found <= _OURS and status.st_uid == os.geteuid() and status.st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise explain_error(error, path) from error


def explain_error(error: OSError, path: Path) -> LastcallError:
    """The error of the operating system about ``path`` as one to be told to a person."""
    told = f"{path}: {os.strerror(error.errno) if error.errno else error}"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return NotPermitted(f"{told}: run lastcall as root, or give it another --state-dir")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return LastcallError(f"{path}: not a directory: move the file away, or give another --state-dir")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LastcallError(f"{told}: make room, or give another --state-dir")
    return LastcallError(told)


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Writes the file so that readers see the old or the new one, also after a power cut; blocks for the disk.

    As the kubelet does it (pkg/kubelet/nodeshutdown/storage.go): a temporary file beside it, fsync, rename.
    The directory is synced too, so that the new name survives. OSError leaves the old file as it was.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".tmp-{path.name}", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """The names in the directory are on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _path_exists(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:  # then we cannot write there either
        return False
