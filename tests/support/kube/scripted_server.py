"""A server in little that answers lists and watches as a script says."""

import asyncio
import json

from lastcall import errors
from lastcall.adapters.kube.transport import ApiResponse


def item(name, revision, uid=""):
    return {"metadata": {"name": name, "resourceVersion": str(revision), "uid": uid or name}}


def listed(revision, *items):
    return json.dumps({"metadata": {"resourceVersion": str(revision)}, "items": items}).encode()


def line(kind, obj):
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def gone():
    return {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}


class Stream:
    """Chunks one after the other; a number is a pause, an exception is raised, None is silence for ever."""

    def __init__(self, *parts):
        self.parts, self.closed = list(parts), False

    def __aiter__(self):
        return self

    async def __anext__(self):
        while self.parts:
            part = self.parts.pop(0)
            if part is None:
                await asyncio.get_running_loop().create_future()
            if isinstance(part, Exception):
                raise part
            if isinstance(part, bytes):
                return part
            await asyncio.sleep(part)
        raise StopAsyncIteration

    async def aclose(self):
        self.closed = True


class Script:
    """``Transport`` that gives the answers of ``steps`` one after the other, and keeps when it was asked for what."""

    def __init__(self, *steps):
        self.steps, self.asked = list(steps), []

    async def request(self, method, target, headers, body, *, stream=False):
        query = dict(part.split("=", 1) for part in target.partition("?")[2].split("&"))
        what = f"watch {query['resourceVersion']}" if stream else "list"
        self.asked.append((round(asyncio.get_running_loop().time(), 1), what))
        if not self.steps:
            raise errors.Unavailable("the script is over")
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, dict):
            return ApiResponse(step["code"], {}, json.dumps(step).encode())
        return ApiResponse(200, {}, step)

    @property
    def order(self):
        return [what for _, what in self.asked]
