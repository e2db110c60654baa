"""A lab's API server on a small disk that runs full and gets room again; it ends with 0 if nothing was lost.

python lab_small_disk.py DIRECTORY

It mounts a tmpfs, for which it needs a mount namespace of its own and root in it; 77 says that this cannot be.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from random import Random

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.storage.database import Database
from lastcall_lab.apiserver.values.request import Request

MAPS = "/api/v1/namespaces/default/configmaps"
CANNOT_MOUNT = 77


async def create(server, name):
    body = json.dumps({"metadata": {"name": name}, "data": {"x": "y" * 20_000}}).encode()
    return (await server.handle(Request.of("POST", MAPS, body=body))).status


async def names(server):
    response = await server.handle(Request.of("GET", MAPS))
    assert response.status == 200, response.body
    return {one["metadata"]["name"] for one in json.loads(response.body)["items"]}


async def until_full(server, acknowledged, refused, life):
    """Eight clients write until each of them has been refused."""

    async def write(writer):
        for number in range(1000):
            name = f"{life}-{writer}-{number}"
            code = await create(server, name)
            (acknowledged if code == 201 else refused).add(name)
            if code != 201:
                assert code == 500
                return
        raise AssertionError("the disk is never full")

    await asyncio.gather(*(write(number) for number in range(8)))


async def main(directory):
    acknowledged, refused = set(), set()
    filler = directory / "filler"
    filler.write_bytes(b"x" * 2_000_000)
    data = await Database.open(directory)
    server = ApiServer(SystemClock(), Random(1), store=data.store)
    for life in ("a", "b"):
        await until_full(server, acknowledged, refused, life)
        assert await names(server) == acknowledged, "reads go on, and show what is on the disk"
        filler.write_bytes(b"x" * 500_000 if life == "a" else b"")
        assert await create(server, f"{life}-after") == 201, "there is room again"
        acknowledged.add(f"{life}-after")
    await data.close()
    data = await Database.open(directory)
    assert await names(ApiServer(SystemClock(), Random(1), store=data.store)) == acknowledged
    assert len(refused) == 16, refused
    await data.close()


if __name__ == "__main__":
    disk = Path(sys.argv[1])
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", disk], check=False).returncode:
        sys.exit(CANNOT_MOUNT)
    asyncio.run(main(disk))
