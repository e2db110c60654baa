"""Functions that the recorder and its clients share."""

import os
from pathlib import Path

SYSTEMD = "org.freedesktop.systemd1"
SYSTEMD_PATH = "/org/freedesktop/systemd1"
CONTROL_PATH = "/dev/lastcall/Recorder"
CONTROL = "dev.lastcall.Recorder"

BUS_PID = "bus.pid"
LOGIND_PID = "logind.pid"


def running_pid(state: Path, pid_file: str, program: str) -> int | None:
    """The pid in the file if that process runs the program, else None."""
    try:
        pid = int((state / pid_file).read_text())
        return pid if Path(f"/proc/{pid}/comm").read_text().strip() == program[:15] else None
    except (OSError, ValueError):
        return None


def kill_program(state: Path, pid_file: str, program: str, number: int) -> bool:
    """Sends a signal to one of our own processes; False if it does not run."""
    pid = running_pid(state, pid_file, program)
    if pid:
        os.kill(pid, number)
    return bool(pid)
