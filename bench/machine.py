"""What the figures were measured on."""

import datetime as dt
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import lastcall


def describe():
    """Lines of Markdown."""
    where = tempfile.gettempdir()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    yield f"- {dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC, lastcall {lastcall.__version__}{_commit()}"
    yield f"- {os.cpu_count()} cores ({_cpu()}), {_memory()} GiB, Linux {platform.release()}, load at the end: {load}"
    yield f"- state directories below {where} ({_output('stat', '-f', '-c', '%T', where)}), niceness {os.nice(0)}"
    programs = [
        f"Python {platform.python_version()}",
        *filter(None, map(_version, ("systemctl", "containerd", "runc"))),
    ]
    yield f"- {', '.join(programs)}"


def _commit():
    said = _output("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    return f" ({said})" if said else ""


def _cpu():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory():
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def _version(program):
    """The first line of --version, without the address of its repository."""
    first = (_output(program, "--version") or "").partition("\n")[0]
    return " ".join(word for word in first.split() if "/" not in word and not word.startswith("(")) if first else ""


def _output(*command):
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
