"""What a node says of its own going down: it counts as it is now, though no watch tells of it, and is no proof of anything."""

import msgspec
import pytest
from support.failover.small_cluster import World
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.resources import NODE_SHUTDOWNS, PODS
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.evidence import assessment, node_shutdown_facts
from lastcall.failover.evidence.facts import Boot, NodeSeen, PowerSeen
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import ObjectChange, WatchedKind, WatchedShutdown
from lastcall.model.power import PowerState
from lastcall_lab.apiserver.responses import response_builder
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.simulation.network_faults import NetworkFault

BOOT = Boot(id="b1", system_uuid="m", since=0.0)
GONE = {
    "namespace": "d",
    "name": "p",
    "uid": "u",
    "unmountedTime": "2020-01-01T12:00:30Z",
    "outcome": "Graceful",
}


def shutdown(
    type_=WatchedShutdown,
    revision=1,
    boot="b1",
    outcome="Running",
    start="12:00:00",
    deadline="12:01:40",
    pods=(),
    how="",
    returned="",
):
    status = {"outcome": outcome, "startTime": f"2020-01-01T{start}Z", "pods": list(pods)}
    if returned:
        status["returnedTime"] = f"2020-01-01T{returned}Z"
    if deadline:
        status["deadlineTime"] = f"2020-01-01T{deadline}Z"
    metadata = {"name": "n", "resourceVersion": str(revision)}
    spec = {"nodeName": "n", "bootID": boot, "how": how}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, type_)


def live(**more):
    return shutdown(NodeShutdown, **more)


# -- since when, and until when ----------------------------------------------------------------------------------------


def test_a_nodes_clock_may_be_wrong_its_deadline_counts_from_when_it_was_seen():
    first = node_shutdown_facts.observe_shutdown(None, shutdown(), 50.0)
    again = node_shutdown_facts.observe_shutdown(first, shutdown(revision=2), 70.0)
    fact = node_shutdown_facts.shutdown_fact(again, None)
    assert (fact.deadline, fact.written, fact.boot_id, fact.cancelled) == (150.0, 70.0, "b1", False)
    assert node_shutdown_facts.observe_shutdown(again, shutdown(revision=2), 99.0) is again


def test_what_was_read_and_what_a_watch_tells_is_the_same():
    read = node_shutdown_facts.observe_shutdown(None, live(), 50.0)
    assert node_shutdown_facts.observe_shutdown(read, shutdown(), 60.0) is read
    assert node_shutdown_facts.observe_shutdown(read, shutdown(revision=2), 60.0).began == 50.0


def test_a_shutdown_that_begins_anew_has_its_own_deadline():
    first = node_shutdown_facts.observe_shutdown(None, shutdown(), 50.0)
    second = node_shutdown_facts.observe_shutdown(first, shutdown(revision=2, start="12:01:00"), 200.0)
    assert node_shutdown_facts.shutdown_fact(second, None).deadline == 240.0


@pytest.mark.parametrize("moment", ["", "soon", "2020-01-01T12:01:40"])
def test_one_without_a_deadline_is_waited_for_all_the_same(moment):
    found = shutdown()
    status = msgspec.structs.replace(found.status, deadline_time=moment)
    word = node_shutdown_facts.observe_shutdown(None, msgspec.structs.replace(found, status=status), 50.0)
    assert node_shutdown_facts.shutdown_fact(word, None).deadline == 50.0 + node_shutdown_facts.UNSTATED


# -- which of two readings counts --------------------------------------------------------------------------------------


def test_a_watch_that_is_behind_takes_nothing_back():
    read = node_shutdown_facts.observe_shutdown(None, live(revision=9, outcome="Cancelled"), 50.0)
    assert node_shutdown_facts.observe_shutdown(read, shutdown(revision=5), 60.0) is read


def test_an_answer_that_the_watch_has_overtaken_says_nothing():
    asked = node_shutdown_facts.observe_shutdown(None, shutdown(revision=5), 50.0)
    told = node_shutdown_facts.observe_shutdown(asked, shutdown(revision=9, outcome="Cancelled"), 60.0)
    assert node_shutdown_facts.observe_shutdown(told, live(revision=8), 61.0, since=asked) is told


def test_after_a_history_that_went_back_it_is_seen_for_the_first_time():
    before = node_shutdown_facts.observe_shutdown(None, shutdown(revision=9), 50.0)
    word = node_shutdown_facts.observe_shutdown(before, live(revision=8), 61.0, since=before)
    assert (word.began, word.new) == (61.0, False)


# -- of which pods it tells --------------------------------------------------------------------------------------------


def test_pods_count_as_gone_only_by_the_same_shutdowns_word():
    still = {**GONE, "uid": "w", "unmountedTime": None}
    word = node_shutdown_facts.observe_shutdown(None, shutdown(), 50.0)
    assert node_shutdown_facts.shutdown_fact(word, live(pods=[GONE, still])).gone == {"u"}
    assert node_shutdown_facts.shutdown_fact(word, live(boot="b2", pods=[GONE])).gone == frozenset()
    assert node_shutdown_facts.shutdown_fact(word, live(start="12:00:01", pods=[GONE])).gone == frozenset()
    assert node_shutdown_facts.shutdown_fact(word, None).gone == frozenset()


@pytest.mark.parametrize(
    ("told", "read"), [("Cancelled", "Running"), ("Running", "Cancelled"), ("Cancelled", "Cancelled")]
)
def test_whichever_says_that_it_was_cancelled_no_pod_counts_as_gone(told, read):
    fact = node_shutdown_facts.shutdown_fact(
        node_shutdown_facts.observe_shutdown(None, shutdown(outcome=told), 50.0),
        live(revision=2, outcome=read, pods=[GONE]),
    )
    assert fact.cancelled
    assert assessment.ended_pod_uids(BOOT, [fact]) == frozenset()
    assert assessment.fencing_held_until(BOOT, [fact], 60.0) is None


@failing_over
async def test_a_shutdown_that_was_cancelled_while_the_watch_was_silent_frees_no_pod(world):
    """The pod that it listed as unmounted may run again: nothing proves that it is over."""
    world.start("a")
    await world.cluster.settle(30)
    node = world.place()
    gone = [one["metadata"]["uid"] for one in world.cluster.all(PODS) if one["spec"].get("nodeName") == node]
    world.fences[node].away = True
    await world.says(node, seconds=30)
    await world.cluster.settle(2)
    world.weather.begin(NetworkFault(programs=("a",), silent=True))
    pods = [{**GONE, "uid": uid} for uid in gone]
    said = {"status": {"outcome": "Cancelled", "pods": pods}}
    await world.cluster.patch(NODE_SHUTDOWNS, node, said, subresource="status", namespace="")
    world.nodes.silent.add(node)
    await world.cluster.settle(100)
    assert not {"delete", "force-delete"} & {*world.verbs()}


# -- whether it is a sign of life --------------------------------------------------------------------------------------


def off(at):
    return PowerSeen(boot_id="b1", source="bmc", power=PowerState.OFF, asked=at, answered=at)


def hear(observing, what, at):
    observing.handle_change(ObjectChange(WatchedKind.SHUTDOWNS, "n", what), at)
    return node_shutdown_facts.shutdown_fact(observing.shutdown_of("n"), None)


def test_what_is_there_at_the_first_look_is_no_sign_of_life():
    """It may have been written before the machine went off: the device that says so is believed."""
    observing = ClusterView(lambda _: None)
    facts = [off(45.0), off(47.0), hear(observing, shutdown(), 75.0), off(150.0), off(152.0)]
    assert assessment.assess(BOOT, facts, 160.0).state is assessment.BootState.DEAD


def test_what_is_written_later_is_a_sign_of_life():
    observing = ClusterView(lambda _: None)
    hear(observing, shutdown(), 30.0)
    facts = [off(45.0), off(47.0), hear(observing, shutdown(revision=2), 75.0)]
    assert assessment.assess(BOOT, facts, 160.0).state is assessment.BootState.ALIVE


@pytest.mark.parametrize("type_", [WatchedShutdown, NodeShutdown])
def test_what_the_next_boot_writes_is_no_sign_of_life_of_this_one(type_):
    first = node_shutdown_facts.observe_shutdown(None, shutdown(type_), 50.0)
    assert first.new
    second = node_shutdown_facts.observe_shutdown(first, shutdown(type_, revision=2, returned="12:05:00"), 300.0)
    assert not second.new
    facts = [
        node_shutdown_facts.shutdown_fact(second, None),
        *(PowerSeen(boot_id="b1", source="bmc", power=PowerState.OFF, asked=at, answered=at) for at in (200.0, 202.0)),
    ]
    assert assessment.assess(BOOT, facts, 300.0).state is assessment.BootState.DEAD


def test_so_is_the_first_one_of_a_node_that_had_none():
    observing = ClusterView(lambda _: None)
    observing.handle_change(ObjectChange(WatchedKind.SHUTDOWNS, "", None), 0.0)
    facts = [off(45.0), off(47.0), hear(observing, shutdown(), 75.0)]
    assert assessment.assess(BOOT, facts, 160.0).state is assessment.BootState.ALIVE


# -- what no watch tells of --------------------------------------------------------------------------------------------


@failing_over
async def test_one_that_no_watch_has_told_of_holds_fencing_back_all_the_same(world):
    world.start("a")
    await world.cluster.settle(30)
    node = world.place()
    world.weather.begin(NetworkFault(programs=("a",), silent=True))
    await world.cluster.settle(5)
    begun = world.now
    await world.says(node, seconds=100)
    world.nodes.pull(node)
    await world.until(lambda: world.verbs("off"), 250)
    assert world.now - begun >= 100


@failing_over
async def test_who_may_not_read_them_fails_over_all_the_same(world):
    """The right may be missing for good: a machine that goes down is fenced too early then, but none is left for ever."""
    handle = world.cluster.server.handle

    async def refuse(request):
        if "/nodeshutdowns" not in request.path:
            return await handle(request)
        return response_builder.error_response(
            request, api_errors.forbidden_error("nodeshutdowns", "lastcall.dev", "", "no right")
        )

    world.cluster.server.handle = refuse
    world.start("a")
    await world.cluster.settle(30)
    node = world.place()
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node), 120)


async def test_it_is_asked_for_anew_only_when_the_rest_is():
    world, observing, said = World(), ClusterView(lambda _: None), [live(), live(revision=2)]

    async def read(_):
        return said.pop(0)

    world.cluster.read_shutdown = read
    first = await world.reading.read_shutdown("n", observing)
    world.clock.now += 0.6
    assert await world.reading.read_shutdown("n", observing) is first
    assert (observing.shutdown_of("n").revision, observing.shutdown_of("n").began) == ("1", 100.0)
    world.clock.now += 0.2
    assert (await world.reading.read_shutdown("n", observing)).metadata.resource_version == "2"
    assert observing.shutdown_of("n").revision == "2"


# -- the kind ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "gone"),
    [("poweroff", {"u"}), ("reboot", {"u"}), ("halt", {"u"}), ("kexec", {"u"}), ("", {"u"}), ("soft-reboot", set())],
)
def test_pods_that_a_soft_reboot_ended_run_again_in_the_same_boot(how, gone):
    """The boot id stays, so that nothing else tells these pods from those that the restarted kubelet runs."""
    word = node_shutdown_facts.observe_shutdown(None, shutdown(how=how), 50.0)
    fact = node_shutdown_facts.shutdown_fact(word, live(how=how, outcome="Completed", pods=[GONE]))
    assert fact.how == how
    assert assessment.ended_pod_uids(BOOT, [fact]) == gone


def test_a_kind_that_only_one_of_two_readings_knows_counts():
    """logind may announce a soft-reboot after a shutdown has begun by other news."""
    early = node_shutdown_facts.observe_shutdown(None, shutdown(), 50.0)
    late = node_shutdown_facts.observe_shutdown(None, shutdown(how="soft-reboot"), 50.0)
    for word, read in ((early, live(how="soft-reboot", pods=[GONE])), (late, live(pods=[GONE]))):
        assert node_shutdown_facts.shutdown_fact(word, read).gone == frozenset()


def test_a_soft_reboot_is_held_back_as_any_shutdown_and_proves_nothing():
    word = node_shutdown_facts.observe_shutdown(None, shutdown(how="soft-reboot"), 50.0)
    fact = node_shutdown_facts.shutdown_fact(word, None)
    assert assessment.fencing_held_until(BOOT, [fact], 60.0) == 150.0
    verdict = assessment.assess(BOOT, [fact, NodeSeen(boot_id="b1", system_uuid="m", ready="True", at=90.0)], 500.0)
    assert verdict.state is assessment.BootState.UNKNOWN
    assert "it announced a soft-reboot: its boot id stays, and the pods that it ended may run again" in verdict.reasons


def test_a_kexec_is_proved_by_the_new_boot_id_of_a_machine_that_was_never_off():
    word = node_shutdown_facts.observe_shutdown(None, shutdown(how="kexec"), 50.0)
    fact = node_shutdown_facts.shutdown_fact(word, None)
    on = [PowerSeen(boot_id="b1", source="bmc", power=PowerState.ON, asked=at, answered=at) for at in (60.0, 300.0)]
    before = assessment.assess(BOOT, [fact, *on], 310.0)
    assert before.state is not assessment.BootState.DEAD
    assert any("announced a kexec: its machine stays on" in reason for reason in before.reasons)
    new = NodeSeen(boot_id="b2", system_uuid="m", ready="True", at=200.0)
    assert assessment.assess(BOOT, [fact, *on, new], 310.0).state is assessment.BootState.DEAD


@pytest.mark.parametrize(
    ("by", "gone"), [(["EC2"], set()), (["EC2", "Logind"], {"u"}), (["Logind"], {"u"}), ([], {"u"})]
)
def test_a_machine_that_only_a_notice_takes_down_may_stay_up_and_run_its_pods_again(by, gone):
    word = node_shutdown_facts.observe_shutdown(None, shutdown(), 50.0)
    read = live(outcome="Completed", pods=[GONE])
    read = msgspec.structs.replace(read, spec=msgspec.structs.replace(read.spec, announced_by=tuple(by)))
    assert node_shutdown_facts.shutdown_fact(word, read).gone == gone
