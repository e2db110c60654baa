"""A pod that tolerates the taint out-of-service for a time has all of it, and is failed over when it is over."""

from datetime import datetime

import pytest
from support.failover.virtual_cluster import failing_over, workload
from support.lab.volume_kubelets import claim

from lastcall.adapters.kube.resources import PODS, STATEFUL_SETS
from lastcall_lab.apiserver.values.object_meta import timestamp

SECONDS = 60
LIMITS = {"minHealthy": 1, "settle": "5s", "perDomain": 5, "perHour": 50}


async def patient(world):
    """A pod that tolerates all for a time, with a volume; where it runs, and there is nothing else that would go."""
    made = workload("patient", replicas=1, serviceName="patient", volumeClaimTemplates=[claim("data")])
    tolerance = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
    made["spec"]["template"]["spec"]["tolerations"] = [tolerance]
    await world.cluster.create(STATEFUL_SETS, made)
    await world.until(lambda: world.place("patient"), 60)
    place = world.place("patient")
    beside = [one for one in world.cluster.all(PODS) if one["spec"].get("nodeName") == place]
    assert len(beside) == 1
    return place


@pytest.mark.parametrize("power_on", [False, True])
def test_it_is_failed_over_alone_and_when_its_time_is_over(power_on):
    """Its machine is not switched on before: it could go nowhere else then."""

    @failing_over(policy={"limits": LIMITS, **({"powerOn": "AfterFailover"} if power_on else {})})
    async def scenario(world):
        place = await patient(world)
        world.start()
        await world.cluster.settle(20)
        world.nodes.pull(place)
        await world.until(lambda: world.out_of_service(place), 120)
        tainted = datetime.fromisoformat(world.out_of_service(place)[0]["timeAdded"]).timestamp()
        while world.place("patient") in (None, place):
            asked = [what for what, _ in world.fences[place].asked]
            removed = world.verbs("delete") + world.verbs("force-delete")
            early = world.cluster.clock.wall() < tainted + SECONDS
            assert not (early and (removed or "on" in asked)), timestamp(world.cluster.clock.wall())
            assert world.cluster.clock.wall() < tainted + SECONDS + 120
            await world.cluster.settle(1)
        if power_on:
            await world.until(lambda: "on" in [what for what, _ in world.fences[place].asked], 120)

    scenario()
