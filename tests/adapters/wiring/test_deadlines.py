"""The sources of deadlines beside an agent that must run whatever becomes of them."""

import asyncio
import json

import pytest

from lastcall.adapters.deadlines.notice_socket import SOCKET_NAME, send_request
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.errors import Unavailable
from lastcall.graceful.deadlines.socket_requests import AgentOutlook
from lastcall.graceful.state_machine import AgentState
from lastcall.model.deadline_settings import DeadlineSettings, NutSettings, SocketSettings
from lastcall.wiring import deadlines
from lastcall.wiring.deadlines import DeadlineSources


class Agent:
    """The part of the agent that the sources use."""

    state = AgentState.ARMED
    outlook = AgentOutlook(state="ARMED", requested=30.0, lead=900.0, observes=False)

    def __init__(self):
        self.notices = ()

    def put_notice(self, notice, *, replace=False):
        self.notices = (notice,)
        return True

    def withdraw_notice(self, source):
        self.notices = ()
        return True


def sources(tmp_path, **settings):
    return DeadlineSources(
        settings=DeadlineSettings(**settings),
        agent=Agent(),
        clock=SystemClock(),
        state_dir=tmp_path,
        metrics=AgentMetrics(),
    )


async def answer_at_last(path, request, seconds=60):
    for _ in range(seconds * 20):
        try:
            return json.loads(await asyncio.to_thread(send_request, path, json.dumps(request).encode()))
        except Unavailable:
            await asyncio.sleep(0.05)
    pytest.fail("the socket never answered")


def metric(found, line):
    return line in found.metrics.render_text().decode()


async def test_a_request_reaches_the_agent_and_is_answered_by_the_plan(tmp_path):
    found = sources(tmp_path, socket=SocketSettings())
    path = tmp_path / SOCKET_NAME
    async with found.watch():
        answer = await answer_at_last(path, {"seconds": 90, "reason": "maintenance"})
        assert answer["ok"] is True
        assert answer["plan"].startswith("the shutdown of the pods begins now and takes 30s at most")
        [notice] = found.agent.notices
        assert notice.reason == "maintenance"
        assert (await answer_at_last(path, {"cancel": True}))["notices"] == []
        assert (await answer_at_last(path, {"seconds": "x"}))["ok"] is False
    assert not path.exists()


async def test_without_the_setting_there_is_no_socket(tmp_path):
    async with sources(tmp_path).watch():
        await asyncio.sleep(0.1)
        assert not (tmp_path / SOCKET_NAME).exists()


async def test_a_socket_that_cannot_be_made_keeps_no_agent_from_running(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(deadlines, "SOCKET_SECONDS", 0.05)
    path = tmp_path / SOCKET_NAME
    path.write_text("in the way")
    found = sources(tmp_path, socket=SocketSettings())
    async with found.watch():
        while not metric(found, 'lastcall_deadline_source_answers{source="Socket"} 0.0'):
            await asyncio.sleep(0.02)
        await asyncio.to_thread(path.unlink)
        assert (await answer_at_last(path, {}))["ok"] is True
        assert metric(found, 'lastcall_deadline_source_answers{source="Socket"} 1.0')
    assert [record.message for record in caplog.records if "no script can announce" in record.message] != []


async def test_a_power_supply_that_is_not_there_is_told_and_begins_nothing(tmp_path):
    nut = NutSettings(ups="ups", command=str(tmp_path / "upsc"), poll_seconds=1)
    found = sources(tmp_path, nut=nut)
    async with found.watch():
        while not metric(found, 'lastcall_deadline_source_answers{source="NUT"} 0.0'):
            await asyncio.sleep(0.02)
    assert found.agent.notices == ()
