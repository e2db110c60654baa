"""``python container_restarter.py ENDPOINT REQUEST``: what a kubelet does for one container, as a service of the host.

Starts the container of the CreateContainerRequest in the file REQUEST, and again whenever none of its runs is left.
"""

import asyncio
import sys
from pathlib import Path

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.errors import Unavailable

LOOK = 0.1


async def ensure_running(connection, request):
    chosen = cri.ContainerFilter(pod_sandbox_id=request.pod_sandbox_id)
    found = (await connection.call("ListContainers", cri.ListContainersRequest(filter=chosen))).containers
    if any(one.state in (cri.CONTAINER_RUNNING, cri.CONTAINER_CREATED) for one in found):
        return
    request.config.metadata.attempt = len(found)
    request.config.log_path = f"{request.config.metadata.name}/{len(found)}.log"
    made = await connection.call("CreateContainer", request, within=60)
    await connection.call("StartContainer", cri.StartContainerRequest(container_id=made.container_id), within=60)


async def main(endpoint, file):
    request = cri.CreateContainerRequest.FromString(Path(file).read_bytes())
    connection = CriConnection(endpoint)
    while True:
        try:
            await ensure_running(connection, request)
        except Unavailable as error:
            sys.stderr.write(f"{error}\n")
        await asyncio.sleep(LOOK)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
