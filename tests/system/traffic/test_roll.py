"""All nodes of a lab are emptied one after the other, behind real proxies that are late, under load."""

import asyncio

import pytest
from support.traffic.traffic_rig import TrafficRig, missing_proxies

from lastcall.names import SETTLE_SECONDS, SLEEP_ADDED

pytestmark = [
    pytest.mark.timeout(270),
    pytest.mark.skipif(bool(missing_proxies()), reason=f"not installed: {', '.join(missing_proxies())}"),
]


async def test_requests_are_lost_by_kubectl_and_none_by_lastcall(tmp_path):
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)
    async with TrafficRig(tmp_path, delays=[2, 1, 0], replicas=4, least=3, rate=100).up() as rig:
        by_kubectl = await rig.roll(rig.drain_by_kubectl, rig.nodes[:1])
        assert by_kubectl.lost, "the state in which the traffic matters"
        await rig.hold_by_policy(more=3)  # on a busy machine a proxy is later than it has ever been
        by_lastcall = await rig.roll(rig.drain_by_lastcall, rig.nodes)
        assert by_lastcall.lost == []
        assert min(by_kubectl.least, by_lastcall.least) >= rig.least
        assert "Warning: the traffic" not in rig.said
        assert "not tell" not in rig.said
        label = "kubectl label namespace default lastcall.dev/settle-seconds="
        await asyncio.to_thread(rig.kubectl, f"annotate pods -l app=shop {SLEEP_ADDED}=0 --overwrite")
        await asyncio.to_thread(rig.kubectl, f"label namespace default {SETTLE_SECONDS}=0 --overwrite")
        said = " ".join([await rig.plan_drain(node) for node in rig.nodes])
        assert label in " ".join(said.split())
