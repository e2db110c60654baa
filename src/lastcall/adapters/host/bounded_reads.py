"""Reads files and pipes whole, up to a limit in bytes: some, such as /dev/zero, have no end."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from lastcall.errors import InvalidInput

STATE_BYTES = 256 * 2**20
"""Limit for a cluster's objects: those of 5,000 nodes with 30 pods each take less."""

CONFIG_BYTES = 10 * 2**20
"""Limit for a configuration, a manifest or a kubeconfig; the kubelet's own (pkg/kubelet/config/file.go)."""


def read_file(path: Path, most: int) -> bytes:
    """All of a file or a pipe. InvalidInput if it has more than ``most`` bytes; OSError if it cannot be read."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size > most:
            raise _too_long(str(path), most)
        return read_stream(file, most, str(path))


def read_stream(stream: BinaryIO, most: int, source: str) -> bytes:
    """Reads the whole stream. Raises InvalidInput, which names ``source``, if it has more than ``most`` bytes."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise _too_long(source, most)
    return data


def _too_long(source: str, most: int) -> InvalidInput:
    return InvalidInput(source, [f"must not have more than {most // 2**20} MiB"])
