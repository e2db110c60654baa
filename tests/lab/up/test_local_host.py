"""What a machine of the lab leaves behind when its power is gone."""

import contextlib
from random import Random
from types import SimpleNamespace

from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import Unavailable
from lastcall_lab.up import local_host as hosts
from lastcall_lab.up.local_host import LocalHost, MachineClients


class Deaf:
    """A runtime that does not answer."""

    async def refresh_pods(self):
        raise Unavailable("no answer in time")


async def test_a_runtime_that_does_not_answer_is_closed_all_the_same(monkeypatch, tmp_path):
    done = []

    @contextlib.asynccontextmanager
    async def opened(*_):
        try:
            yield Deaf()
        finally:
            done.append("closed")

    monkeypatch.setattr(hosts.pod_runtimes, "open_runtime", opened)
    storage = SimpleNamespace(drop_mounts=lambda node: done.append(f"{node} lost its power"))
    site = SimpleNamespace(clock=SystemClock(), random=Random(1), directory=tmp_path, delay=0.0, storage=storage)
    host = LocalHost("lab-1", 0, site, MachineClients(None, None, None))
    host._runtime = await host._opened.enter_async_context(hosts.pod_runtimes.open_runtime())  # noqa: SLF001
    await host.die()
    assert done == ["closed", "lab-1 lost its power"]
