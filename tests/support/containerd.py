"""One private containerd for all tests of a session: started when the first asks for it, gone when Python ends."""

import atexit
import functools
import sys

from lastcall.lab.containerd import PrivateContainerd


@functools.cache
def shared_containerd() -> PrivateContainerd:
    """Blocks while it starts: call it in a thread."""
    containerd = PrivateContainerd()
    atexit.register(_clean_up, containerd)
    containerd.start()
    return containerd


def _clean_up(containerd):
    left = containerd.clean_up()
    if left:
        sys.stderr.write(f"containerd left processes behind, killed now: {left}\n")
