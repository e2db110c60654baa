"""Files and directories that their owner alone can read, whatever the umask is and whatever mode they had before."""

import os
import stat
from pathlib import Path

from lastcall.errors import InvalidInput

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700


def make_directory(path: Path) -> None:
    """Makes a directory with its parents; one that is there gets the mode. OSError if that cannot be."""
    path.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
    restrict_access(path.resolve())


def restrict_access(path: Path) -> None:
    """Takes a file or directory of this user from the group and from others; nothing if it is not there.

    What belongs to another user is left as it is: its owner decides.
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
    """An empty file, unless there is one already; private in both cases. OSError if it cannot be made."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
    restrict_access(path)


def write_file(path: Path, content: bytes) -> None:
    """Replaces a file as a whole or not at all, also if the machine loses power. InvalidInput if that cannot be."""
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
