"""A real systemd as a service manager (``systemd --user``) in a cage, with units of the test's own."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

from lastcall_lab.private_logind import sandbox

MANAGER = "/lib/systemd/systemd"

BUS_CONFIG = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=/run/user/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
"""

BUS = {
    "dbus.socket": "[Socket]\nListenStream=/run/user/bus\n",
    "dbus.service": (
        "[Unit]\nRequires=dbus.socket\n[Service]\nType=notify\n"
        "ExecStart=/usr/bin/dbus-daemon --config-file=/run/user/bus.conf --address=systemd: --nofork --nopidfile\n"
    ),
}
"""The two names are systemd's: it comes to the bus when both run."""

OTHER_BUS = {
    "dbus.socket": "[Socket]\nListenStream=/run/user/unused\n",
    "dbus.service": "[Unit]\nRequires=dbus.socket\n[Service]\nExecStart=/bin/sleep 100000\n",
}
"""With these it comes to a bus that somebody else runs."""

ENTER = """
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
  if [ -f $hierarchy/cgroup.procs ]; then mkdir $hierarchy/$0 && echo 0 > $hierarchy/$0/cgroup.procs; fi
done 2>/dev/null
"$@"
true
"""
"""Into a group of its own, in which the manager makes its groups. The shell is process 1 of the cage: a systemd that is
becomes a system manager."""


def why_not():
    if os.geteuid() != 0:
        return "a service manager in a cage needs root"
    return sandbox.unavailable_reason()


@contextlib.contextmanager
def service_manager(
    state: Path,
    units: dict[str, str],
    *,
    start: str,
    bus: str = "",
    own_network: bool = True,
    shared: Path | None = None,
):
    """Runs until the context ends; ``start`` is the unit that is started. ``state``/run is the cage's /run.

    ``own_network`` and ``shared`` as of ``sandbox_command``.

    With the units of BUS, systemd is at unix:path=``state``/run/user/bus; with those of OTHER_BUS at the address ``bus``.
    """
    for directory in ("etc/systemd", "run/systemd/system", "run/user/systemd/user"):
        (state / directory).mkdir(parents=True)
    for vendor in ("usr/lib", "usr/local/lib"):
        (state / vendor / "systemd/logind.conf.d").mkdir(parents=True)
    (state / "run/user/bus.conf").write_text(BUS_CONFIG)
    for name, text in units.items():
        (state / "run/user/systemd/user" / name).write_text(text)
    (state / "run/systemd/private").symlink_to("/run/user/systemd/private")  # what root's systemctl looks for
    where = [f"DBUS_SESSION_BUS_ADDRESS={bus}"] if bus else []
    manager = ["env", "XDG_RUNTIME_DIR=/run/user", *where, MANAGER, "--user", "--log-target=console", f"--unit={start}"]
    group = f"lastcall-test-{os.getpid()}"
    command = ["sh", "-c", ENTER, group, *manager]
    line = sandbox.sandbox_command(state, *command, own_network=own_network, shared=shared)
    with (state / "manager.log").open("w") as log, subprocess.Popen(line, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            process.kill()  # and with it the cage
    remove_groups(group)


def remove_groups(name, seconds=60.0):
    """When their last processes have ended."""
    roots = [*Path("/sys/fs/cgroup").glob(name), *Path("/sys/fs/cgroup").glob(f"*/{name}")]
    deadline = time.monotonic() + seconds
    while any(root.exists() for root in roots) and time.monotonic() < deadline:
        for group in sorted((g for root in roots for g in root.glob("**/")), reverse=True):
            with contextlib.suppress(OSError):
                group.rmdir()
        time.sleep(0.02)
    assert not any(root.exists() for root in roots)
