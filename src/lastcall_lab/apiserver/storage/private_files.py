"""Files and directories with owner-only access, regardless of the umask and of their earlier mode."""

import os
import stat
from pathlib import Path

from lastcall.errors import InvalidInput

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700


def make_directory(path: Path) -> None:
    """Creates a directory with its parents; an existing one gets the mode. OSError on failure."""
    path.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
    restrict_access(path.resolve())


def restrict_access(path: Path) -> None:
    """Removes group and other access from a file or directory of this user; nothing if it does not exist.

    Files of other users are left unchanged.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
        return
    wanted = DIRECTORY_MODE if stat.S_ISDIR(found.st_mode) else FILE_MODE
    if stat.S_IMODE(found.st_mode) != wanted:
        path.chmod(wanted)


def create_file(path: Path) -> None:
    """Creates an empty file unless it exists; private in both cases. OSError on failure."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
    restrict_access(path)


def write_file(path: Path, content: bytes) -> None:
    """Replaces a file atomically and durably, even if the machine loses power. InvalidInput on failure."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        create_file(temporary)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InvalidInput(str(path), [f"cannot be written: {error.strerror}"]) from None


def read_file(path: Path) -> bytes:
    """The content of a file, which is made private. InvalidInput if it cannot be read."""
    try:
        restrict_access(path)
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(str(path), [f"cannot be read: {error.strerror}"]) from None
