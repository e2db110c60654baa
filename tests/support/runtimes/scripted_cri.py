"""The other end of a CRI connection, which answers as a test tells it: for what no runtime does when it is asked to."""

import asyncio
from contextlib import asynccontextmanager

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server

from lastcall.adapters.cri.api import api_grpc
from lastcall.adapters.cri.api import api_pb2 as cri

VERBS = [name for name in vars(api_grpc.RuntimeServiceBase) if name[0].isupper()]


class Scripted:
    """``answers[verb](request, stream)`` gives the reply, or raises; verbs without an answer are UNIMPLEMENTED.

    ``asked`` keeps the requests by verb, ``time_left`` the seconds until each call's deadline.
    """

    def __init__(self):
        self.answers = {"Version": lambda *_: cri.VersionResponse(runtime_name="containerd", runtime_version="1.6.20")}
        self.asked = {verb: [] for verb in VERBS}
        self.time_left = {verb: [] for verb in VERBS}
        self.events = asyncio.Queue()

    async def answer(self, verb, stream):
        request = await stream.recv_message()
        self.asked[verb].append(request)
        self.time_left[verb].append(stream.deadline.time_remaining() if stream.deadline else None)
        if verb not in self.answers:
            raise GRPCError(Status.UNIMPLEMENTED, "not implemented")
        reply = self.answers[verb](request, stream)
        await stream.send_message(await reply if asyncio.iscoroutine(reply) else reply)

    async def stream_events(self, stream):
        """Sends what is put into ``events``; an exception ends the stream."""
        self.asked["GetContainerEvents"].append(await stream.recv_message())
        while True:
            event = await self.events.get()
            if isinstance(event, Exception):
                raise event
            await stream.send_message(event)


def _handler(verb):
    async def handle(self, stream):
        await (self.stream_events(stream) if verb == "GetContainerEvents" else self.answer(verb, stream))

    return handle


Peer = type("Peer", (Scripted, api_grpc.RuntimeServiceBase), {verb: _handler(verb) for verb in VERBS})


@asynccontextmanager
async def scripted_cri(directory):
    """A peer that listens on ``<directory>/cri.sock``: the peer and its endpoint."""
    peer = Peer()
    server = Server([peer])
    path = f"{directory}/cri.sock"
    await server.start(path=path)
    try:
        yield peer, f"unix://{path}"
    finally:
        server.close()
        await server.wait_closed()
