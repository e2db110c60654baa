"""A lab's API server on a data directory, as a process of its own that can be killed: it writes, and says what is done.

python lab_writer.py DIRECTORY WRITERS

Each line of its output is one acknowledged write: ``name revision``, or ``name gone``. The first line is the revision
with which it begins.
"""

import asyncio
import json
import sys
from pathlib import Path
from random import Random

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.storage.database import Database
from lastcall_lab.apiserver.values.request import Request

MAPS = "/api/v1/namespaces/default/configmaps"


def say(*words):
    print(*words, flush=True)  # noqa: T201  (it is read by the test)


async def write(server, writer):
    """Creates, changes and deletes, for ever."""
    number = 0
    while True:
        name = f"w{writer}-{server.store.revision}-{number}"
        body = json.dumps({"metadata": {"name": name}, "data": {"x": "y" * 500}}).encode()
        created = await server.handle(Request.of("POST", MAPS, body=body))
        assert created.status == 201, created.body
        say(name, json.loads(created.body)["metadata"]["resourceVersion"])
        if number % 3 == 2:
            deleted = await server.handle(Request.of("DELETE", f"{MAPS}/{name}"))
            assert deleted.status == 200, deleted.body
            say(name, "gone")
        number += 1


async def main(directory, writers):
    database = await Database.open(Path(directory))
    server = ApiServer(SystemClock(), Random(), store=database.store)
    say(server.store.revision)
    await asyncio.gather(*(write(server, number) for number in range(int(writers))))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
