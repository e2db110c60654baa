"""The GuardPolicies and shutdowns of nodes that the guard follows, at the lab's API server in virtual time."""

import asyncio
from random import Random

from support.guard.shop import WHEN, entry, in_shop

from lastcall.adapters.kube.guard_policies import KubeGuardPolicies
from lastcall.adapters.kube.node_shutdown_marks import NodeShutdownMarks
from lastcall.aio import cancel_and_wait
from lastcall.names import NODE_SHUTDOWN_MARK


@in_shop
async def test_recorded_shutdowns_of_nodes_are_followed(shop):
    marks = NodeShutdownMarks(shop.client, shop.clock, Random(1))
    following = asyncio.ensure_future(marks.run())
    await shop.clock.sleep(1)
    assert (marks.changes, marks.deadlines) == (0, {})
    mark = {"metadata": {"annotations": {NODE_SHUTDOWN_MARK: '{"bootId": "b", "cordoned": true}'}}}
    await shop.server.good("PATCH", "/api/v1/nodes/n1", mark)
    await shop.clock.sleep(1)
    assert marks.changes == 0, "an older agent records no deadline"
    text = '{"bootId": "b", "cordoned": true, "deadline": "2026-11-28T12:00:00Z"}'
    await shop.server.good("PATCH", "/api/v1/nodes/n1", {"metadata": {"annotations": {NODE_SHUTDOWN_MARK: text}}})
    seen = await marks.wait_for_change(0)
    assert marks.deadlines == {"n1": WHEN}
    await shop.server.good("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"a": "b"}}})
    await shop.clock.sleep(1)
    assert marks.changes == seen
    await shop.server.good("DELETE", "/api/v1/nodes/n1")
    await marks.wait_for_change(seen)
    assert marks.deadlines == {}
    await cancel_and_wait(following)


@in_shop
async def test_policies_are_followed(shop):
    policies = KubeGuardPolicies(shop.client, shop.clock, Random(1))
    following = asyncio.ensure_future(policies.run())
    assert policies.changes == -1
    seen = await policies.wait_for_change(-1)
    assert list(policies.by_key) == [("shop", "db")]
    await shop.records.change_entry(policies.by_key["shop", "db"], "u1", lambda *_: entry("u1"))
    await policies.wait_for_change(seen)
    assert policies.by_key["shop", "db"].status.pods[0].uid == "u1"
    await cancel_and_wait(following)
