"""Tests in virtual time, and a worker that tells what becomes of it."""

import asyncio
import functools
import gc

from lastcall_lab import virtual


def in_virtual_time(test):
    """Runs an async test so; what it returns is called when the loop is closed."""

    @functools.wraps(test)
    def run():
        after = virtual.run(test())
        gc.collect()
        if after:
            after()

    return run


async def worker(log, name="worker", pause=1.0):
    try:
        while True:
            log.append(f"{name} {asyncio.get_running_loop().time():g}")
            await asyncio.sleep(pause)
    except asyncio.CancelledError:
        log.append(f"{name} is cancelled")
        raise
    finally:
        log.append(f"{name} cleans up")
