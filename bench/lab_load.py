"""A client of the lab's API server, as a process of its own so that the server has its core for itself.

Arguments: ``inprocess`` (the server is in this process then) or a kubeconfig; methods of ``Load``, with commas; a JSON object with
the sizes, see ``lab.SIZES``; the server's process. Prints one JSON object: lists of values by what was measured.
"""

import asyncio
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from random import Random

from lab_work import Work
from rest import cpu_seconds, rss

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport, TransportLimits
from lastcall.adapters.kube.resources import dict_resource
from lastcall.errors import AlreadyExists


def transport(where):
    """To a server within this process, or to that of a kubeconfig."""
    clock = SystemClock()
    if where != "inprocess":
        access = kubeconfig.load_kubeconfig([Path(where)], clock)
        return HttpsTransport(access.endpoint, access.credentials, limits=TransportLimits(connections=64))
    from lastcall_lab.apiserver import ApiServer
    from lastcall_lab.apiserver.server.in_process import InProcessTransport

    return InProcessTransport(ApiServer(clock, Random(1)))


async def main(where, what, sizes, server):
    carrier = transport(where)
    client = Client(carrier, manager="bench")
    load = Load(Work(client, carrier), client, json.loads(sizes), int(server) or os.getpid())
    await load.prepare()
    for part in what.split(","):
        await getattr(load, part)()
    carrier.close()
    print(json.dumps(load.values), flush=True)


class Load:
    """The order of what is measured."""

    def __init__(self, work, client, sizes, server):
        self._work = work
        self._client = client
        self._sizes = sizes
        self._server = server
        self.values = defaultdict(list)

    async def prepare(self):
        """What pods need to be let in; the server's first answers are not measured."""
        accounts = dict_resource("", "v1", "serviceaccounts")
        try:
            await self._client.create(accounts, {"metadata": {"name": "default"}}, namespace="default")
        except AlreadyExists:
            pass
        await self._work.create("warm", 1, 20)
        await self._work.patch("warm", 1, 20)
        await self._work.delete("warm", 1, 20)

    async def creates(self):
        """Creates alone, by one client and by many."""
        await self._writes(("create",))

    async def writes(self):
        """All writes."""
        await self._writes(("create", "patch", "delete"))

    async def full(self):
        """What a server holds with many pods, and how it answers then."""
        self._note("rss empty", rss(self._server))
        await self._work.create("full", 16, self._sizes["pods"])
        self._note("rss", rss(self._server))
        await self._reads()
        await self._watches()
        await self._work.patch("full", 16, self._sizes["pods"])
        self._note("rss after changes", rss(self._server))

    async def _writes(self, verbs):
        """Each verb on all the pods of its turn, before the next one."""
        for turn in range(self._sizes["turns"]):
            for clients in self._sizes["clients"]:
                count = self._sizes["few"] if clients == 1 else self._sizes["many"]
                for verb in verbs:
                    do, used = getattr(self._work, verb), cpu_seconds(self._server)
                    self._note(f"{verb} {clients}", await do(f"c{clients}-{turn}", clients, count))
                    self._note(f"{verb} {clients}: CPU", (cpu_seconds(self._server) - used) / count)

    async def _reads(self):
        for _ in range(self._sizes["turns"]):
            self._note("get", await self._work.get("full", min(self._sizes["pods"], 500)))
            self._note("list", await self._work.list(0))
            self._note("pages", await self._work.list(500))
            self._note("table", await self._work.table())

    async def _watches(self):
        for watchers in self._sizes["watchers"]:
            count = min(self._sizes["pods"], self._sizes["events"] // watchers)
            for _ in range(self._sizes["turns"]):
                used = cpu_seconds(self._server)
                self._note(f"fan-out {watchers}", await self._work.fan_out("full", watchers, count))
                self._note(f"fan-out {watchers}: CPU", (cpu_seconds(self._server) - used) / count / watchers)
                self._note(f"own node {watchers}", await self._work.each_its_node("full", watchers, count))
            self._note(f"last heard {watchers}", await self._work.last_heard("full", watchers, 20))

    def _note(self, what, value):
        self.values[what].append(value)
        print(f"  {what}: {value:.4g}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
