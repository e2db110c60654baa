"""The lab's API server as ``replay`` plays to it: within the process, in virtual time, without sockets."""

import json
from random import Random

import yaml

from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.request import ADMIN, Identity, Request


class LabApi:
    """A new, empty server."""

    ca = "Y2E="

    def __init__(self, clock, seed=1):
        self.clock = clock
        self.server = ApiServer(clock, Random(seed))
        self._reviews = []

    def answer_reviews(self, answer):
        """What the webhook answers from now on; the reviews so far are forgotten."""
        self._reviews = []

    def reviews(self):
        """What the webhook was asked."""
        return self._reviews

    async def pause(self, seconds):
        """Lets everything happen that is under way."""
        await self.clock.sleep(seconds)

    async def ask(self, method, target, headers, body, who):
        """Status, headers and body; the body of a watch as a stream of lines."""
        headers, user = dict(headers), ADMIN
        if isinstance(who, dict):
            user = Identity(who["user"], who["groups"])
        elif who:
            headers["authorization"] = "Bearer nobody-knows-it" if "token" in who else ""
        response = await self.server.handle(Request.of(method, target, headers=headers, body=body, user=user))
        kind = str(response.headers.get("content-type", ""))
        if not isinstance(response.body, bytes):
            return response.status, response.headers, lines(response.body)
        return response.status, response.headers, parsed(response.body, kind)


def parsed(body, kind):
    """JSON and YAML as objects, everything else as text."""
    if "json" in kind and body:
        return json.loads(body)
    return yaml.safe_load(body) if "yaml" in kind else body.decode()


async def lines(stream):
    """The events of a watch."""
    rest = b""
    async for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line


def play(case):
    """Plays one case in virtual time."""
    from support.replay import Play

    async def run():
        await Play(LabApi(virtual.VirtualClock()), case).run()

    virtual.run(run())
