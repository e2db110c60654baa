"""What an agent's standing has from elsewhere: the kubelet's lock, from the real logind, and lost identities."""

import asyncio
import os

import pytest
from support.host.logind import private_logind  # noqa: F401  (fixture)

from lastcall import names
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.systemd.bus import Bus
from lastcall.graceful.agent import AgentStatus
from lastcall.graceful.cluster import standing_reporter
from lastcall.graceful.state_machine import AgentState
from lastcall.model.agent_standing import read_standing
from lastcall.wiring.standing import StandingReport

ARMED = AgentStatus(
    state=AgentState.ARMED,
    armed=True,
    logind_reachable=True,
    retries=0,
    requested=30.0,
    granted=60.0,
    degraded=False,
    sentence="armed",
)


class Objects:
    """The part of ports.cluster.NodeObjects that is used."""

    def __init__(self):
        self.written = asyncio.Queue()

    def is_connected(self):
        return True

    async def patch_node(self, patch):
        annotations = patch["metadata"]["annotations"]
        gone = annotations == {names.AGENT_STANDING: None}
        self.written.put_nowait(None if gone else read_standing(annotations))


@pytest.mark.parametrize("holder", ["kubelet", "somebody"])
async def test_what_is_written_and_taken_away(private_logind, monkeypatch, holder):  # noqa: F811
    monkeypatch.setattr(standing_reporter, "LOOK_SECONDS", 0.01)
    bus, objects = await Bus.open(private_logind.address), Objects()
    what = ("shutdown", holder, "a reason", "delay")
    path, interface = "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
    reply = await bus.call("org.freedesktop.login1", path, interface, "Inhibit", "ssss", *what)
    report = StandingReport(objects, SystemLogind(private_logind.address), pod_uid="u")
    report.set_identity("own", usable=False)
    report.set_identity("node", usable=False)
    report.set_identity("node", usable=True)
    async with report.keep(lambda: ARMED, lambda: True):
        said = await asyncio.wait_for(objects.written.get(), 60)
    assert (said.armed, said.kubelet_lock, said.lost_identities) == (True, holder == "kubelet", ("own",))
    assert objects.written.get_nowait() is None
    os.close(reply.unix_fds[0])
    bus.close()


async def test_a_logind_that_does_not_answer_is_no_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(standing_reporter, "LOOK_SECONDS", 0.01)
    objects = Objects()
    report = StandingReport(objects, SystemLogind(f"unix:path={tmp_path}/none"), pod_uid="")
    async with report.keep(lambda: ARMED, lambda: False):
        assert (await asyncio.wait_for(objects.written.get(), 60)).kubelet_lock is False
