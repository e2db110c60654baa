"""Virtual time: hours of waiting in milliseconds, in the same order every time, and processes that can be killed.

No threads and no sockets: what waits must wait for a timer or for another task. ``run`` runs a coroutine so; a
``Process`` is a program in it that dies as by SIGKILL; what one process asks of another goes through ``within`` and
``stream_within``.
"""

from lastcall.lab.virtual.boundary import Stream, stream_within, within
from lastcall.lab.virtual.clock import VirtualClock
from lastcall.lab.virtual.loop import Deadlock, Standstill, VirtualLoop, run, this_loop
from lastcall.lab.virtual.process import Process, current

__all__ = [
    "Deadlock",
    "Process",
    "Standstill",
    "Stream",
    "VirtualClock",
    "VirtualLoop",
    "current",
    "run",
    "stream_within",
    "this_loop",
    "within",
]
