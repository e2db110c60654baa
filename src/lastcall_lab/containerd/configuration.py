"""The configuration file of a private containerd."""

import subprocess
from pathlib import Path

from lastcall_lab.containerd.images import PAUSE

_TEMPLATE = """\
version = 2
root = "{directory}/root"
state = "{directory}/state"
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "{directory}/c.sock"
[ttrpc]
  address = "{directory}/t.sock"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{directory}/cni/bin"
    conf_dir = "{directory}/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
        Root = "{directory}/runc"
"""
# restrict_oom_score_adj: without CAP_SYS_RESOURCE (in most CI containers) a sandbox's score of -998 cannot be set.


def write_configuration(file: Path, *, directory: Path, runc: str, snapshotter: str) -> None:
    """Writes the configuration; all files of this containerd are below ``directory``."""
    text = _TEMPLATE.format(directory=directory, pause=PAUSE, snapshotter=snapshotter, runc=runc)
    file.write_text(text, encoding="utf-8")


def choose_snapshotter(directory: Path) -> str:
    """Returns overlayfs or, where the kernel cannot mount it (on top of another one), native, which copies files."""
    parts = {name: directory / "probe" / name for name in ("lower", "upper", "work", "merged")}
    for part in parts.values():
        part.mkdir(parents=True)
    options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
    mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(parts["merged"])]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        return "native"
    subprocess.run(["umount", str(parts["merged"])], check=True, capture_output=True)
    return "overlayfs"
