"""The token with which a drain reads the agents' pages, at the lab's API server."""

import asyncio
from random import Random

import pytest
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.reader_token import LASTS_SECONDS, PAUSE_SECONDS, ReaderToken
from lastcall.adapters.kube.resources import NAMESPACES, dict_resource
from lastcall.errors import LastcallError, NotFound
from lastcall.names import METRICS_READER, SYSTEM_NAMESPACE
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN

ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
REVIEWS = dict_resource("authentication.k8s.io", "v1", "tokenreviews")


class CountingTransport:
    """Counts requests for tokens."""

    def __init__(self, inner):
        self._inner, self.asked = inner, 0

    async def request(self, method, target, headers, body, **options):
        self.asked += target.partition("?")[0].endswith("/token")
        return await self._inner.request(method, target, headers, body, **options)


class World:
    def __init__(self):
        server = ApiServer(SystemClock(), Random(1))
        self.transport = CountingTransport(InProcessTransport(server, ADMIN))
        self.client, self.clock = Client(self.transport), Hand()
        self.token = ReaderToken(self.client, self.clock)

    async def with_account(self):
        await self.client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await self.client.create(ACCOUNTS, {"metadata": {"name": METRICS_READER}}, namespace=SYSTEM_NAMESPACE)
        return self


async def test_it_is_the_readers_and_is_asked_for_once():
    world = await World().with_account()
    found = await asyncio.gather(*(world.token.current_credential() for _ in range(50)))
    assert (len(set(map(id, found))), world.transport.asked) == (1, 1)
    body = {"spec": {"token": found[0].token}}
    user = (await world.client.create(REVIEWS, body))["status"]["user"]["username"]
    assert user == f"system:serviceaccount:{SYSTEM_NAMESPACE}:{METRICS_READER}"


async def test_it_is_renewed_when_it_is_old_or_refused():
    world = await World().with_account()
    first = await world.token.current_credential()
    world.clock.now += LASTS_SECONDS / 2
    second = await world.token.current_credential()
    assert world.token.mark_refused(first)
    assert await world.token.current_credential() is second
    assert world.token.mark_refused(second)
    await world.token.current_credential()
    assert world.transport.asked == 3


async def test_without_the_account_nobody_asks_again_at_once():
    world = World()
    with pytest.raises(NotFound):
        await world.token.current_credential()
    for _ in range(9):
        with pytest.raises(LastcallError, match="lastcall-"):
            await world.token.current_credential()
    assert world.transport.asked == 1
    world.clock.now += PAUSE_SECONDS
    with pytest.raises(NotFound):
        await world.token.current_credential()
