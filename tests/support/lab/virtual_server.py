"""The lab's API server for tests that ask it things one by one, in virtual time."""

import functools
import json
from random import Random

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.values.request import ADMIN, Request


class Asked(ApiServer):
    """With short ways to ask, and ``plugins`` before its own."""

    def __init__(self, clock, *plugins, **more):
        self.first = plugins
        super().__init__(clock, Random(1), **more)

    def _plugins(self):
        return [*self.first, *super()._plugins()]

    async def ask(self, method, target, body=None, user=ADMIN):
        """Code and answer."""
        data = json.dumps(body).encode() if body is not None else b""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = Request.of(method, target, body=data, headers={"content-type": kind}, user=user)
        response = await self.handle(request)
        return response.status, json.loads(response.body)

    async def good(self, method, target, body=None):
        """The answer, which is a success."""
        code, answer = await self.ask(method, target, body)
        assert code < 300, answer
        return answer

    async def events(self, target, number):
        """The first events of a watch."""
        response = await self.handle(Request.of("GET", target))
        found = []
        async for chunk in response.body:
            found += [json.loads(line) for line in chunk.splitlines()]
            if len(found) >= number:
                break
        await response.body.aclose()
        return found


def on_server(*plugins):
    """Runs a test against a new server in virtual time; ``plugins`` are made anew, too."""

    def decorate(test):
        @functools.wraps(test)
        def run():
            async def main():
                await test(Asked(virtual.VirtualClock(), *(make() for make in plugins)))

            virtual.run(main())

        del run.__wrapped__
        return run

    return decorate
