"""Names this process among others of its kind."""

import socket
from collections.abc import Mapping
from random import SystemRandom


def instance_identity(environ: Mapping[str, str]) -> str:
    """Identifies this process: the pod's or the machine's name, plus a random part."""
    return f"{environ.get('POD_NAME') or socket.gethostname()}_{SystemRandom().getrandbits(32):08x}"
