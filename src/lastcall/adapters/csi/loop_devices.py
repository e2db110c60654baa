"""The loop devices by which a kubelet keeps block devices open, so that no other device takes their name meanwhile.

They are attached to the kubelet's own mount of the device (pkg/volume/util: MapBlockVolume), which cannot be unmounted
before they are detached. All functions block.
"""

from collections.abc import Collection
from pathlib import Path

BLOCK_DEVICES = Path("/sys/block")


def list_loop_devices(backing: Collection[str]) -> list[str]:
    """The paths of the loop devices that are attached to one of these files. OSError if they cannot be listed."""
    devices = sorted(path for path in BLOCK_DEVICES.iterdir() if path.name.startswith("loop"))
    return [f"/dev/{device.name}" for device in devices if _read_backing_file(device) in backing]


def _read_backing_file(device: Path) -> str:
    """The file's path; "" if the device is attached to none."""
    try:
        return (device / "loop" / "backing_file").read_text().rstrip("\n")
    except OSError:
        return ""
