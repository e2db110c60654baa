"""The lab's API server behind its door, on a loopback address, for as long as a test lasts."""

import asyncio
import contextlib
import time

from lastcall.aio import cancel_and_wait
from lastcall_lab.apiserver.authentication import certificates
from lastcall_lab.apiserver.server.http_server import HttpServer


@contextlib.asynccontextmanager
async def serving(handler, directory, upgrade=None, hosts=("127.0.0.1", "localhost"), address="127.0.0.1"):
    """Yields the URL and the PEM text of the authority that has signed the server's certificate."""
    authority = certificates.new_authority("test", now=time.time())
    pair = certificates.server_certificate("apiserver", hosts, authority, now=time.time())
    for name, content in (("crt", pair.certificate), ("key", pair.key)):
        (directory / f"front.{name}").write_bytes(content)
    front = HttpServer(handler, upgrade, certificate=directory / "front.crt", key=directory / "front.key")
    front.listen(address, 0)
    task = asyncio.create_task(front.serve())
    try:
        while not front._server.started:
            await asyncio.sleep(0.01)
        yield front.url, authority.certificate.decode()
    finally:
        front.stop()
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 60)
        await cancel_and_wait(task)
