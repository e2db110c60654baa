"""Pods as plain processes of this machine: no root, no image, no namespace.

A container is a shim (``shim.sh``, a shell that waits) with the container's processes below it. The shim is the
subreaper of all that the container forks, so that they are exactly its descendants, and it outlives this process: it
writes the exit code into the state directory, and then kills what the main process has left behind.
"""

from lastcall_lab.processes.runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]
