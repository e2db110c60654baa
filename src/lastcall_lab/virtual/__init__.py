"""Virtual time: hours of waiting in milliseconds, in the same order every time, and processes that can be killed.

No threads and no sockets: what waits must wait for a timer or for another task. ``run`` runs a coroutine so; a
``VirtualProcess`` is a program in it that dies as by SIGKILL; what one process asks of another goes through ``run_within`` and
``stream_within``.
"""

from lastcall_lab.virtual.clock import VirtualClock
from lastcall_lab.virtual.loop import Deadlock, Standstill, VirtualLoop, run, running_loop
from lastcall_lab.virtual.process import VirtualProcess, current_process
from lastcall_lab.virtual.process_calls import ProcessStream, run_within, stream_within

__all__ = [
    "Deadlock",
    "ProcessStream",
    "Standstill",
    "VirtualClock",
    "VirtualLoop",
    "VirtualProcess",
    "current_process",
    "run",
    "run_within",
    "running_loop",
    "stream_within",
]
