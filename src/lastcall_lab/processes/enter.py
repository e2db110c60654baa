"""Becomes a container's main process: run by path with ``python -I -S``, so it imports nothing of lastcall.

Arguments: the container's directory, ``uid:gid`` or nothing, then the program and its arguments. The environment comes
from the file ``env``, because a command line is readable by every user. With a file ``links`` the process sees its
volumes at their mountPaths (``enclose.py``) and makes the file ``enclosed``. If the machine does not allow that, the
file ``unmounted`` says why. A program that cannot be run ends with 127 or 126, as in a shell, and with a line in the
log.
"""

# pathlib would take longer to import than all the rest; and to become another program is what this is for:
# ruff: noqa: PTH100, PTH109, PTH118, PTH120, PTH123, S606

import os
import signal
import sys


def main(directory: str, user: str, *command: str) -> None:
    """Never returns: it runs the program or exits."""
    os.setsid()
    with open(os.path.join(directory, "env"), "rb") as file:
        pairs = [pair.partition(b"=") for pair in file.read().split(b"\0") if pair]
    place = os.open(directory, os.O_DIRECTORY | os.O_CLOEXEC)  # a volume may hide it
    _enclose(directory, place)
    _announce(place)
    if user:
        uid, gid = map(int, user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a child would inherit that
        signal.signal(number, signal.SIG_DFL)
    error = _run(command, {name: value for name, _, value in pairs})
    sys.stderr.write(f"lastcall: {command[0]}: {error.strerror}\n")
    sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _run(command: "tuple[str, ...]", env: "dict[bytes, bytes]") -> OSError:
    """Runs the program; returns why it cannot, as execvp(3) does.

    It does not use os.execvpe, which imports a module that the user may not be able to read.
    """
    program, refused, missing = os.fsencode(command[0]), None, None
    for directory in [b""] if b"/" in program else env[b"PATH"].split(b":"):
        try:
            os.execve(os.path.join(directory, program), command, env)
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = error
        except OSError as error:
            refused = error
    return refused or missing or FileNotFoundError(2, "PATH is empty")


def _enclose(directory: str, place: int) -> None:
    """Shows the volumes, if any, before this process is known and its namespaces can be entered."""
    try:
        with open(os.path.join(directory, "links"), "rb") as file:
            words = os.fsdecode(file.read()).split("\0")[:-1]
    except FileNotFoundError:
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import enclose  # type: ignore[import-not-found]  # noqa: PLC0415  (it lies beside this file)

    where = os.getcwd()
    try:
        enclose.enclose(os.path.join(directory, "root"), list(zip(words[::2], words[1::2], strict=True)))
    except OSError as error:
        _write(place, "unmounted", f"{error.strerror or error}\n")
        return
    _write(place, "enclosed", "yes\n")
    try:
        os.chdir(where)
    except OSError:
        pass


def _announce(place: int) -> None:
    """Writes the file atomically."""
    with open("/proc/self/stat", encoding="utf-8") as stat:
        _write(place, "main.new", stat.read())
    os.rename("main.new", "main", src_dir_fd=place, dst_dir_fd=place)


def _write(place: int, name: str, text: str) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=place)
    os.write(descriptor, text.encode())
    os.close(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
