"""A sandbox in which a real systemd-logind can do no harm, and whether this machine allows it."""

import os
import shutil
import subprocess
from pathlib import Path

LOGIND = Path("/lib/systemd/systemd-logind")
SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_SCRIPT = Path(__file__).with_name("cage.sh")


def sandbox_command(state: Path, *program: str, own_network: bool = True, shared: Path | None = None) -> list[str]:
    """The command line that runs a program in the sandbox. Its first process forks the sandboxed one.

    - Namespaces of its own for mounts, processes, IPC and network: /run (so none of systemd's sockets) and
      /etc/systemd are the state directory's, there are no kernel events of power keys, and reboot(2) would end
      the process namespace only.
    - Without CAP_SYS_BOOT reboot(2) is refused anyway; nothing can give the capability back.

    Without ``own_network`` the program shares the machine's network, loopback above all. logind must have its own. What is
    mounted below ``shared``, the mount point of a shared mount, both have in common.
    An unprivileged caller gets a user namespace in which it is root.
    """
    user = ["--user", "--map-root-user"] if os.geteuid() else []
    return [
        *("unshare", *user, "--mount", "--propagation", "unchanged" if shared else "private"),
        *("--ipc", "--pid", *["--net"] * own_network, "--fork", "--kill-child=SIGKILL"),
        *(("env", f"CAGE_SHARED={shared}") if shared else ()),
        *(str(_SCRIPT), str(state)),
        *("setpriv", "--bounding-set=-sys_boot,-sys_module,-sys_rawio", "--inh-caps=-all"),
        *program,
    ]


def unavailable_reason() -> str | None:
    """Why a private logind cannot run here, for people; None if it can."""
    for tool, package in (
        ("dbus-daemon", "dbus"),
        ("busctl", "systemd"),
        ("unshare", "util-linux"),
        ("setpriv", "util-linux"),
    ):
        if not shutil.which(tool, path=SEARCH_PATH):
            return f"there is no {tool} (Debian package {package})"
    if not LOGIND.exists():
        return f"there is no {LOGIND} (Debian package systemd)"
    if not Path("/etc/systemd").is_dir():
        return "there is no /etc/systemd to hide"
    user = ["--user", "--map-root-user"] if os.geteuid() else []
    probe = ["unshare", *user, "--mount", "--ipc", "--net", "--pid", "--fork", "true"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        return "namespaces are not allowed here"
    return None


def systemd_version() -> int:
    """The version of the machine's systemd, whose logind runs in the sandbox."""
    said = subprocess.run(["systemctl", "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split()[1].split(".")[0])
