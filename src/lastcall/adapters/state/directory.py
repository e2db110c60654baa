"""The directory of the agent's persistent files: created, checked, and never the kubelet's own."""

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
"""Files that only a kubelet's root directory (``--root-dir``) holds: all those of one line."""


def refuse_kubelet_directory(path: Path) -> None:
    """Raises RefusedForSafety if this is the kubelet's own root directory, under any path.

    The kubelet keeps its state file there under the same name as ours; ours must never replace it.
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
        "notice.sock",
        "pods",
        "pods.json",
        "shutdowns",
        "status",
    }
)
"""The entries that lastcall creates in a state directory (docs/reference/files.md)."""


def make_writable(path: Path) -> None:
    """Creates the directory with access for its owner only, and tries to write in it.

    Raises a LastcallError that names the problem.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"\n")
            file.flush()
    except OSError as error:
        raise explain_error(error, path) from error


def close_to_others(path: Path) -> None:
    """Removes other users' rights to a state directory that an earlier version has created.

    A directory with foreign entries may be shared, and is left as it is.
    """
    try:
        found = {entry.name for entry in path.iterdir() if not entry.name.startswith(".tmp-")}
        status = path.stat()
        if found and found <= _OURS and status.st_uid == os.geteuid() and status.st_mode & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise explain_error(error, path) from error


def explain_error(error: OSError, path: Path) -> LastcallError:
    """Explains an error of the operating system about ``path`` to an administrator."""
    message = f"{path}: {os.strerror(error.errno) if error.errno else error}"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return NotPermitted(f"{message}: run lastcall as root, or give it another --state-dir")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return LastcallError(f"{path}: not a directory: move the file away, or give another --state-dir")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LastcallError(f"{message}: make room, or give another --state-dir")
    return LastcallError(message)


def replace_file(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replaces the file atomically, also across a power failure; blocks for the disk.

    As the kubelet does (pkg/kubelet/nodeshutdown/storage.go): a temporary file in the same directory, fsync, rename.
    The directory is synced too, so that the new name persists. On OSError the old file is unchanged.
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
    """Syncs the names in the directory to the disk."""
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
