"""Pods as plain processes of this machine, without root, images or namespaces.

A container is a shim (``shim.sh``, a shell that waits) with the container's processes as its descendants. The shim is
the subreaper for all processes that the container forks, so none of them escapes. It outlives this process: it writes
the exit code into the state directory, and then kills what the main process has left behind.
"""

from lastcall_lab.processes.runtime import ProcessRuntime

__all__ = ["ProcessRuntime"]
