"""Guarded pods of a lab node that shuts down: the Node is marked for the guard, and each waits for its application."""

import json

import pytest
from support.lab.node_shutdown import at, off, pods, with_agent
from support.lab.virtual_node import on_node

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.resources import PODS
from lastcall.names import GUARD_READY, NODE_SHUTDOWN_MARK
from lastcall_lab.apiserver.values.object_meta import parse_seconds, timestamp


async def say(node, status, name="app"):
    """The guard's condition, probed now."""
    condition = {"type": GUARD_READY, "status": status, "reason": "Preparing", "message": "2 of 3 members"}
    condition["lastProbeTime"] = timestamp(node.clock.wall())
    body = {"status": {"conditions": [condition]}}
    await node.client.patch(PODS, name, body, namespace="default", subresource="status", kind=STRATEGIC)


def mark(node):
    text = node.node()["metadata"]["annotations"].get(NODE_SHUTDOWN_MARK)
    return json.loads(text) if text else None


@on_node()
async def test_a_pod_gets_sigterm_when_its_application_is_ready(node):
    await pods(node)
    await say(node, "False")
    logind = with_agent(node)
    await node.clock.sleep(1)
    pressed = node.clock.boottime()
    wall = node.clock.wall()
    await logind.power_off()
    await node.until(lambda: mark(node))
    assert mark(node)["bootId"] == "boot-1"
    assert parse_seconds(mark(node)["deadline"]) == pytest.approx(wall + 30, abs=2)
    await node.clock.sleep(5)
    assert at(node, "app", "TERM") is None
    await say(node, "True")
    await logind.wait_for_start(seconds=300)
    assert at(node, "app", "TERM") >= pressed + 5
    assert node.status("app")["reason"] == "Terminated"


@on_node()
async def test_the_deadline_wins(node):
    await pods(node)
    await say(node, "False")
    logind = with_agent(node)
    await node.clock.sleep(1)
    pressed = node.clock.boottime()
    assert await off(node, logind) < 31
    assert at(node, "app", "TERM") == pytest.approx(pressed + 10, abs=1), "half of its phase's 20 seconds"


@on_node()
async def test_a_node_without_guarded_pods_is_not_marked(node):
    await pods(node)
    logind = with_agent(node)
    await node.clock.sleep(1)
    assert await off(node, logind) < 5
    assert mark(node) is None


@on_node()
async def test_the_mark_is_written_as_soon_as_the_api_server_is_there(node):
    await pods(node)
    await say(node, "False")
    logind = with_agent(node)
    await node.clock.sleep(1)
    node.line.cut = True
    await logind.power_off()
    await node.clock.sleep(3)
    assert mark(node) is None
    node.line.cut = False
    await node.until(lambda: mark(node), 5)
    await logind.wait_for_start(seconds=300)


@on_node()
async def test_a_shutdown_that_is_cancelled_takes_the_mark_back_and_leaves_the_pod_alone(node):
    await pods(node)
    await say(node, "False")
    logind = with_agent(node)
    await node.clock.sleep(1)
    await logind.power_off()
    await node.until(lambda: mark(node))
    await node.clock.sleep(2)
    await logind.cancel_schedule()
    await node.until(lambda: mark(node) is None)
    await node.clock.sleep(30)
    assert at(node, "app", "TERM") is None
    assert node.ready("app")


@on_node()
async def test_the_next_boot_takes_the_mark_away(node):
    await pods(node)
    await say(node, "False")
    logind = with_agent(node)
    await node.clock.sleep(1)
    await off(node, logind)
    node.agent.cancel()
    await node.stop()
    assert mark(node)
    node.boot("boot-2")
    with_agent(node)
    await node.until(lambda: mark(node) is None, 20)
