"""What whole rehearsals measure: a real cluster in virtual time, and numbers that follow from the scenario."""

import functools
import re
from pathlib import Path

import msgspec
import pytest

from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, SERVICES
from lastcall.graceful.config import AgentConfig
from lastcall.model.pods import Pod
from lastcall.model.shutdown import PhasePlan
from lastcall_lab import virtual
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.network_faults import NetworkFault
from lastcall_lab.simulation.outcome import RehearsalOutcome, TimelineTopic
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.request_losses import ServiceClients
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario import (
    Expectation,
    Goal,
    LeaderSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioShutdownManager,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.shipped_scenarios import scenario_text
from lastcall_lab.simulation.truth import ContainerEvent, Truth
from lastcall_lab.simulation.volume_writers import VolumeWriters
from lastcall_lab.traffic.endpoint_table import SERVICE_NAME
from lastcall_lab.virtual import VirtualClock, VirtualProcess
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import InMemoryVolumes

DELAY = 0.5


def rehearsed(scenario, seed=1):
    async def main():
        rehearsal = Rehearsal(scenario, seed)
        await rehearsal.run()
        return build_outcome(rehearsal)

    return virtual.run(main())


def workload(found, name):
    return next(one for one in found.workloads if one.name == name)


def web(name, **more):
    return ScenarioWorkload(
        kind=ScenarioWorkloadKind.DEPLOYMENT, name=name, replicas=3, requests=30.0, drains=False, **more
    )


DRAIN = Scenario(
    name="drain",
    workloads=(
        web("naive"),
        web("polite", pre_stop=2.0),
        ScenarioWorkload(kind=ScenarioWorkloadKind.DAEMON_SET, name="logs"),
    ),
    timeline=(ScenarioEvent(at=10, verb=Verb.DRAIN, nodes=("node-2",)),),
    propagation=DELAY,
    lasts=60,
    expect=(Expectation(goal=Goal.REQUESTS_LOST, subject="polite"), Expectation(goal=Goal.REQUESTS_LOST)),
)


@functools.cache
def drained():
    return rehearsed(DRAIN)


def test_a_pod_that_is_evicted_loses_requests_as_long_as_clients_do_not_know():
    naive = workload(drained(), "naive")
    assert naive.requests == 30 * 60
    assert naive.requests_lost == pytest.approx(30 * DELAY / 3, rel=0.1)
    assert (naive.killed, naive.power_cut, naive.down) == (0, 0, 0)


def test_a_hook_longer_than_that_loses_none():
    assert workload(drained(), "polite").requests_lost == 0
    assert [(one.holds, one.measured) for one in drained().verdicts][0] == (True, "0 requests")
    assert not drained().verdicts[1].holds


def test_the_timeline_is_in_order_and_says_what_was_done():
    lines = drained().lines
    assert [line.at for line in lines] == sorted(line.at for line in lines)
    assert (lines[0].topic, lines[0].text) == (TimelineTopic.EVENT, "drain node-2")
    told = [line.text for line in lines]
    assert told.index("1 pod of naive ends on node-2") < told.index("drained: node-2")


BLOCKED = Scenario(
    name="blocked",
    workloads=(ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=3, min_available="3"),),
    timeline=(
        ScenarioEvent(at=10, verb=Verb.DRAIN, nodes=("node-2",)),
        ScenarioEvent(at=20, verb=Verb.PARTITION, nodes=("node-3",), lasts=120),
    ),
    lasts=200,
)


def test_the_timeline_says_what_a_drain_waits_for_and_what_the_control_plane_makes_of_a_node():
    lines = rehearsed(BLOCKED).lines
    (waits,) = [line for line in lines if "the drain waits" in line.text]
    assert re.fullmatch(r"web-\w+-\w+ may not be evicted yet, and the drain waits: node-2", waits.text)
    assert waits.at == pytest.approx(10, abs=1)
    assert not [line for line in lines if line.text.startswith("drained")]
    about = [(line.text, line.at) for line in lines if "ready" in line.text]
    assert [text for text, _ in about] == ["not ready, since nothing is heard of its kubelet: node-3", "ready: node-3"]
    assert 60 <= about[0][1] <= 80, "50 s after the last sign of life, which comes every 10 s, at a beat of 5 s"
    assert about[1][1] >= 140


def test_an_outcome_is_the_same_for_the_same_seed_and_survives_json():
    again = rehearsed(DRAIN)
    assert again == drained()
    assert msgspec.json.decode(msgspec.json.encode(again), type=RehearsalOutcome) == again


CUT = Scenario(
    name="power cut",
    workloads=(
        web("web"),
        ScenarioWorkload(kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=3, volume=True, writes=0.5),
        ScenarioWorkload(kind=ScenarioWorkloadKind.DAEMON_SET, name="logs"),
    ),
    timeline=(ScenarioEvent(at=10, verb=Verb.POWER_CUT, nodes=("node-2",)),),
    propagation=DELAY,
    lasts=120,
    expect=(Expectation(goal=Goal.STUCK, subject="db"),),
)


@functools.cache
def cut():
    return rehearsed(CUT)


def test_a_power_cut_loses_a_share_of_requests_until_the_node_is_given_up():
    (loss,) = workload(cut(), "web").losses
    assert loss.begin == 10
    assert loss.part == pytest.approx(1 / 3, rel=0.01)
    assert 40 <= loss.end - loss.begin <= 50 + DELAY + 6, "the grace period of the node lifecycle controller"
    assert workload(cut(), "web").requests_lost == pytest.approx(30 / 3 * (loss.end - loss.begin), rel=0.01)


def test_the_pod_of_a_stateful_set_does_not_come_back():
    db = workload(cut(), "db")
    assert (db.wanted, db.serving, db.power_cut, db.down) == (3, 2, 1, 0)
    assert (db.degraded, db.pod_down) == (110, 110)
    assert (cut().verdicts[0].holds, cut().verdicts[0].measured) == (True, "2 of 3 pods")


def test_what_was_acknowledged_before_a_power_cut_is_kept():
    db = workload(cut(), "db")
    assert 0.5 * (2 * 120 + 10) - 3 <= db.writes <= 0.5 * (2 * 120 + 10) + 3
    assert (db.writes_lost, db.writes_refused) == (0, 0)


def test_a_daemon_of_a_machine_without_power_is_not_missed():
    logs = workload(cut(), "logs")
    assert (logs.wanted, logs.serving, logs.degraded) == (2, 2, 0)
    assert [(span.begin, span.end, span.state.value) for span in cut().nodes[1].spans] == [
        (0, 10, "on"),
        (10, 120, "off"),
    ]


def test_a_leader_that_loses_its_power_costs_an_election_and_writes_fail_without_a_storage():
    found = rehearsed(
        Scenario(
            name="leaders",
            nodes=(NodeGroup(count=2),),
            workloads=(
                ScenarioWorkload(
                    kind=ScenarioWorkloadKind.DAEMON_SET, name="control", leader=LeaderSettings(election=7.0)
                ),
                ScenarioWorkload(
                    kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=2, volume=True, writes=1.0
                ),
            ),
            timeline=(
                ScenarioEvent(at=10, verb=Verb.NO_STORAGE, nodes=("node-1",), lasts=20),
                ScenarioEvent(at=40, verb=Verb.POWER_CUT, nodes=("node-1",), lasts=5),
                ScenarioEvent(at=150, verb=Verb.POWER_CUT, nodes=("node-2",), lasts=5),
            ),
            lasts=200,
        )
    )
    control, db = workload(found, "control"), workload(found, "db")
    assert control.down in (7, 14), "the second power cut hits the leader in any case"
    assert control.longest_outage == 7
    assert 19 <= db.writes_refused <= 21
    assert db.writes_lost == 0
    assert [span.state.value for span in found.nodes[0].spans] == ["on", "no storage", "on", "off", "starting", "on"]


# -- clients and writers alone -----------------------------------------------------------------------------------------


def endpoint(uid):
    target = {"kind": "Pod", "name": uid, "namespace": "default", "uid": uid}
    return {"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "targetRef": target}


LEAVING = {"ready": False, "serving": True, "terminating": True}


def slice_of(*uids, name="shop-1"):
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "default", "labels": {SERVICE_NAME: "shop"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 80}],
        "endpoints": [endpoint(uid) for uid in uids],
    }


def test_clients_know_later_than_the_api_server_and_bad_weather_keeps_it_from_them():
    async def main():
        clock, shop = VirtualClock(), ObjectKey("default", "shop")
        cluster = SimulatedCluster(Scenario(name="clients"), clock, "1")
        plane, weather = cluster.plane, cluster.weather
        await plane.admin.create(ENDPOINT_SLICES, slice_of("a", "b"), namespace="default")
        clients = ServiceClients(plane, clock, "1", [shop], propagation=3.0)
        await clients.start()
        assert [one.came for one in clients.learned[shop]] == [("a", "b")]
        begin = clock.boottime()
        body = {"endpoints": [endpoint("b"), endpoint("c")]}
        await plane.admin.patch(ENDPOINT_SLICES, "shop-1", body, namespace="default")
        await plane.admin.create(
            SERVICES,
            {"metadata": {"name": "other", "namespace": "default"}, "spec": {"ports": [{"port": 80}]}},
            namespace="default",
        )
        await clock.sleep(10)
        (learned,) = clients.learned[shop][1:]
        assert (learned.came, learned.went) == (("c",), ("a",))
        assert begin + 3 <= learned.at <= begin + 4
        weather.begin(NetworkFault(programs=("clients",), silent=True))
        await plane.admin.patch(ENDPOINT_SLICES, "shop-1", {"endpoints": []}, namespace="default")
        await clock.sleep(30)
        assert len(clients.learned[shop]) == 2
        await clients.stop()

    virtual.run(main())


def test_clients_know_the_endpoints_of_all_slices_and_those_that_leave_if_there_is_no_other():
    async def main():
        clock, shop = VirtualClock(), ObjectKey("default", "shop")
        plane = SimulatedCluster(Scenario(name="clients"), clock, "1").plane
        for name, uids in (("one", "ab"), ("two", "c")):
            await plane.admin.create(ENDPOINT_SLICES, slice_of(*uids, name=name), namespace="default")
        clients = ServiceClients(plane, clock, "1", [shop], propagation=0.0)
        await clients.start()
        await plane.admin.delete(ENDPOINT_SLICES, "two", namespace="default")
        await clock.sleep(1)
        body = {"endpoints": [endpoint("a") | {"conditions": LEAVING}, endpoint("b")]}
        await plane.admin.patch(ENDPOINT_SLICES, "one", body, namespace="default")
        await clock.sleep(1)
        body = {"endpoints": [endpoint("a") | {"conditions": LEAVING}]}
        await plane.admin.patch(ENDPOINT_SLICES, "one", body, namespace="default")
        await clock.sleep(1)
        changes = [(one.came, one.went) for one in clients.learned[shop]]
        assert changes[-3:] == [((), ("c",)), ((), ("a",)), (("a",), ("b",))]
        await clients.stop()

    virtual.run(main())


class Volume:
    """A volume at node-1, and a pod that writes to it once a second; ``tell`` says what happens to the pod."""

    def __init__(self):
        self.clock, self.shelf = VirtualClock(), InMemoryVolumes()
        self.storage, self.truth = Storage(self.shelf, self.clock), Truth(self.clock)
        db = ScenarioWorkload(kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", volume=True, writes=1.0)
        self.writers = VolumeWriters(self.storage, self.shelf, self.clock, self.truth, lambda _: db)

    async def begin(self):
        await self.storage.attach("v", "node-1", shared=False)
        await self.storage.mount("v", "node-1", "u", Path("/nowhere"))
        metadata = {"name": "db-0", "namespace": "default", "uid": "u"}
        self.truth.record_start_order(
            "node-1", msgspec.convert({"metadata": metadata, "spec": {"containers": []}}, Pod), "main"
        )

    def tell(self, what):
        self.truth.listeners[0](ContainerEvent(self.clock.boottime(), "node-1", "u", "main", what))

    async def end(self):
        await self.writers.stop()
        acknowledged = [one.at for one in self.writers.attempts if one.acknowledged]
        return acknowledged, [one.at for one in self.writers.lost]


def on_volume(test):
    async def main():
        volume = Volume()
        await volume.begin()
        await test(volume)

    def run():
        virtual.run(main())

    run.__name__ = test.__name__
    return run


@on_volume
async def test_what_a_volume_has_not_kept_is_lost(volume):
    volume.tell("start")
    await volume.clock.sleep(3.5)
    volume.tell("exit")
    await volume.clock.sleep(10)
    await volume.shelf.remove("v")
    await volume.shelf.make("v")
    volume.tell("start")
    await volume.clock.sleep(2.75)
    volume.truth.record_power_off("node-1")
    await volume.clock.sleep(10)
    assert await volume.end() == ([1, 2, 3, 14.5, 15.5], [1, 2, 3])


@on_volume
async def test_what_is_written_after_another_machine_has_the_volume_is_lost(volume):
    volume.tell("start")
    await volume.clock.sleep(2.5)
    await volume.storage.attach("v", "node-2", shared=False)
    await volume.clock.sleep(2)
    await volume.storage.detach("v", "node-1")
    await volume.clock.sleep(2)
    assert await volume.end() == ([1, 2, 3, 4], [3, 4])
    assert [one.at for one in volume.writers.attempts if not one.acknowledged] == [5, 6]


@on_volume
async def test_a_writer_outlives_the_program_that_has_started_its_container(volume):
    async def kubelet():
        volume.tell("start")
        await volume.clock.sleep(100)

    process = VirtualProcess("kubelet")
    process.start(kubelet(), "kubelet")
    await volume.clock.sleep(1.5)
    process.kill()
    await volume.clock.sleep(2)
    assert await volume.end() == ([1, 2, 3], [])


@on_volume
async def test_a_pod_whose_volume_is_not_mounted_is_refused(volume):
    await volume.storage.unmount("v", "node-1", "u", Path("/nowhere"))
    volume.tell("start")
    await volume.clock.sleep(2.5)
    assert await volume.end() == ([], [])
    assert len(volume.writers.attempts) == 2


@pytest.mark.parametrize("manager", ScenarioShutdownManager)
def test_the_last_pod_to_end_leaves_its_volume_behind_unless_nobody_ends_it(manager):
    """Unmounted and told before the power goes, so that its volume can be attached elsewhere while the node is off."""
    scenario = Scenario(
        name="last-pod",
        workloads=(ScenarioWorkload(kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=3, volume=True),),
        agent=AgentConfig(kind="AgentConfiguration", groups=(PhasePlan(priority=0, seconds=30),)),
        manager=manager,
        timeline=(ScenarioEvent(at=10, verb=Verb.REBOOT, nodes=("node-2",), lasts=200),),
        lasts=400,
    )
    found = workload(rehearsed(scenario), "db")
    assert (found.pod_down > 200) == (manager is ScenarioShutdownManager.NONE)


def test_who_ignores_sigterm_does_not_end_by_itself():
    """The promise of a scenario: by SIGKILL is not by itself, and a machine that grants too little shows it."""
    ladder = scenario_text("battery-ladder")
    patient = ladder.replace(b"endsIn: 14s", b"endsIn: 20s")  # its phase has 15.98 s
    outcomes = [run_rehearsal(read_scenario(data, "x"), 1) for data in (ladder, patient)]
    goals = [[one for one in outcome.verdicts if one.expectation.goal is Goal.ENDED_BY_ITSELF] for outcome in outcomes]
    assert [[one.holds for one in found] for found in goals] == [[True, True, True], [True, False, True]]
