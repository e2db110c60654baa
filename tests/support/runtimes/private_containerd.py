"""One private containerd for all tests of a session: started when the first asks for it, gone when Python ends.

The variable LASTCALL_CONTAINERD names a directory with the programs of another containerd than the installed one.
"""

import atexit
import functools
import os
import sys
from pathlib import Path

from lastcall_lab.containerd import PrivateContainerd


@functools.cache
def shared_containerd() -> PrivateContainerd:
    """Blocks while it starts: call it in a thread."""
    programs = os.environ.get("LASTCALL_CONTAINERD")
    containerd = PrivateContainerd(programs=Path(programs) if programs else None)
    atexit.register(_clean_up, containerd)
    containerd.start()
    return containerd


def _clean_up(containerd):
    left = containerd.clean_up()
    if left:
        sys.stderr.write(f"containerd left processes behind, killed now: {left}\n")
