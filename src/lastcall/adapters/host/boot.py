"""The id of the machine's current boot."""

from pathlib import Path


def boot_id() -> str:
    """The kernel's name for this boot; another one after every start of the machine (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
