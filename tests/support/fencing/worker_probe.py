"""A process that an errand runs in tests: does what its settings say. As a program it is who asks, and then hangs."""

import asyncio
import os
import socket
import sys
from pathlib import Path
from urllib.parse import quote

from lastcall.adapters.fencing.fence_worker import FenceAction, FenceReply, FenceWorker
from lastcall.adapters.fencing.worker_process import serve_question
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import RefusedForSafety, Unavailable
from lastcall.model.base import Facts

TESTS = str(Path(__file__).parents[2])
MODULE = "support.fencing.worker_probe"


class Probe(Facts, frozen=True):
    """``does`` names one of the functions below."""

    does: str
    port: int = 0
    secret: str = ""


def hang(turn):
    """Sends its process id, and waits for an answer that never comes."""
    with socket.create_connection(("127.0.0.1", turn.settings.port)) as connection:
        connection.sendall(f"{os.getpid()}\n".encode())
        connection.recv(1)


def look(turn):
    """What others can see of it."""
    told = Path("/proc/self/cmdline").read_text() + Path("/proc/self/environ").read_text()
    return FenceReply(why=told)


def tell(turn):
    raise RefusedForSafety(f"not with {turn.settings.secret}")


def spell(turn):
    raise Unavailable(f"no connection to https://fence:{quote(turn.settings.secret)}@bmc")


def find(turn):
    """What nobody has given to it."""
    token = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    turn.secrets.append(token)
    raise Unavailable(f"refused with {token}")


def fail(turn):
    raise KeyError(turn.settings.secret)


def crash(turn):
    sys.stderr.write(f"it was {turn.settings.secret}\n")
    sys.stderr.flush()
    os._exit(3)


def babble(turn):
    sys.stdout.write("well\n")
    sys.stdout.flush()
    os._exit(0)


def errand(does, **settings):
    probe = Probe(does=does, **settings)
    secrets = (probe.secret,) if probe.secret else ()
    return FenceWorker(MODULE, probe, SystemClock(), {"PATH": "/usr/bin:/bin"}, secrets)


async def _ask(port):
    await errand("hang", port=port).ask(FenceAction.OFF, float(sys.argv[2]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(_ask(int(sys.argv[1])))

    else:
        serve_question(Probe, lambda turn: globals()[turn.settings.does](turn))
