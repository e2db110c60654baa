"""Becomes a container's main process: run by path with ``python -I -S``, so that it imports nothing of lastcall.

Arguments: the container's directory, ``uid:gid`` or nothing, then the program and its arguments. The environment comes
from the file ``env``: on a command line everybody could read it. A program that cannot be run ends with 127 or 126, as
in a shell, and with a line in the log.
"""

# pathlib would take longer to import than all the rest; and to become another program is what this is for:
# ruff: noqa: PTH104, PTH118, PTH123, S606

import os
import signal
import sys


def main(directory: str, user: str, *command: str) -> None:
    """Never returns: it runs the program or exits."""
    os.setsid()
    _announce(directory)
    with open(os.path.join(directory, "env"), "rb") as file:
        pairs = [pair.partition(b"=") for pair in file.read().split(b"\0") if pair]
    if user:
        uid, gid = map(int, user.split(":"))
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and that would be inherited
        signal.signal(number, signal.SIG_DFL)
    error = _run(command, {name: value for name, _, value in pairs})
    sys.stderr.write(f"lastcall: {command[0]}: {error.strerror}\n")
    sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _run(command: "tuple[str, ...]", env: "dict[bytes, bytes]") -> OSError:
    """Why it cannot be run, as execvp(3) tells it. (os.execvpe imports a module, which the user may not be able to read.)"""
    program, refused, missing = os.fsencode(command[0]), None, None
    for directory in [b""] if b"/" in program else env[b"PATH"].split(b":"):
        try:
            os.execve(os.path.join(directory, program), command, env)
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = error
        except OSError as error:
            refused = error
    return refused or missing or FileNotFoundError(2, "PATH is empty")


def _announce(directory: str) -> None:
    """The file appears whole or not at all."""
    draft = os.path.join(directory, "main.new")
    with open("/proc/self/stat", encoding="utf-8") as stat, open(draft, "w", encoding="utf-8") as file:
        file.write(stat.read())
    os.rename(draft, os.path.join(directory, "main"))


if __name__ == "__main__":
    main(*sys.argv[1:])
