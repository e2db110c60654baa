"""A Node that was left behind when its machine was registered under another name: the machine, which is well, is not fenced."""

import msgspec
import pytest
from support.failover.explain_command import CLUSTER, document, machine, policy
from support.failover.snapshots import lease
from support.failover.virtual_cluster import NAMES, failing_over, uuid

from lastcall.adapters.kube.resources import NODES
from lastcall.failover.limits.duplicate_nodes import TraceIndex, fencer_refusal, node_traces
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.ports.fences import FenceTarget

PLUGS = {
    "agent": {
        "program": "fence_apc_snmp",
        "parameters": {"ip": "pdu"},
        "parametersByNode": {"plug": {"a": "5", "b": "5"}},
    }
}


UUID, SWAPPED = "00112233-4455-6677-8899-aabbccddeeff", "33221100-5544-7766-8899-AABBCCDDEEFF"
UNSET = "03000200-0400-0500-0006-000700080009"


def policies(*specs):
    found = [{"metadata": {"name": f"p{number}"}, "spec": spec} for number, spec in enumerate(specs)]
    return [msgspec.convert(one, FencePolicy) for one in found]


def fencer(**kind):
    return {"fencers": [{"name": "f", **kind}]}


def redfish(**settings):
    said = {"address": {"annotation": "bmc"}, "systemID": {"value": "1"}, "credentials": {"secretName": "s-{node}"}}
    return {"redfish": {**said, **settings}}


def agent(**settings):
    return {"agent": {"program": "fence_ipmilan", "parametersFrom": {"ip": {"annotation": "bmc"}}, **settings}}


def refused(a, b, *specs, other=None, heard=True):
    """Why the first fencer of the first policy is not used for Node ``a``; ``other``: the policy of ``b``."""
    every, among = policies(*specs), TraceIndex()
    node, rival = FenceNode(name="a", **a), FenceNode(name="b", **b)
    among.update_node("a", node_traces(node, every[0], every))
    among.update_node("b", node_traces(rival, every[0] if other is None else other and every[other], every))
    return fencer_refusal(node, every[0].spec.fencers[0], every[0], among, lambda _: heard)


def bmc(address):
    return {"annotations": {"bmc": address}}


@pytest.mark.parametrize(
    ("a", "b", "spec", "says"),
    [
        ({}, {}, fencer(**PLUGS), "same device"),
        (bmc("https://Bmc-5/"), bmc("https://bmc-5:443"), fencer(**redfish()), "same device"),
        (bmc("10.0.0.5"), bmc("10.0.0.5 "), fencer(**agent()), "same device"),
        ({}, {}, fencer(**agent(parametersFrom={}, parameters={"ip": "x"})), "same device"),
        (
            bmc("x"),
            bmc("x"),
            fencer(**agent(secretParameters={"password": {"name": "bmc-{node}", "key": "p"}})),
            "same device",
        ),
        ({"provider_id": "aws:///a/i-1"}, {"provider_id": "aws:///i-1"}, fencer(ec2={}), "same instance"),
        ({"boot_id": "7"}, {"boot_id": "7"}, fencer(manual={}), "same boot id"),
        ({"machine_id": "7"}, {"machine_id": "7"}, fencer(manual={}), "machineIDCheck: Disabled"),
        ({"system_uuid": UUID}, {"system_uuid": SWAPPED}, fencer(manual={}), "same system UUID"),
        ({"serial": "S1"}, {"serial": "s1"}, fencer(manual={}), "same serial number"),
    ],
)
def test_a_fencer_is_refused_that_would_strike_another_node_that_is_heard_of(a, b, spec, says):
    why = refused(a, b, spec)
    assert why.startswith("node b, which is heard of, ")
    assert says in why
    assert refused(a, b, spec, heard=False) == ""


@pytest.mark.parametrize(
    ("a", "b", "spec"),
    [
        (bmc("https://bmc-5"), bmc("https://bmc-6"), fencer(**redfish())),
        (bmc("https://bmc-5"), bmc("https://bmc-5:8443"), fencer(**redfish())),
        (bmc("https://bmc-5"), {}, fencer(**redfish())),
        (
            {"annotations": {"bmc": "https://chassis", "blade": "1"}},
            {"annotations": {"bmc": "https://chassis", "blade": "2"}},
            fencer(**redfish(systemID={"annotation": "blade"})),
        ),
        ({}, {}, fencer(**agent(parametersFrom={}, secretParameters={"ip": {"name": "{node}", "key": "ip"}}))),
        ({"boot_id": "7", "machine_id": "7"}, {"boot_id": "8", "machine_id": "8"}, fencer(manual={})),
        ({"machine_id": "7"}, {"machine_id": "7"}, {**fencer(manual={}), "machineIDCheck": "Disabled"}),
        ({"machine_id": "0" * 32}, {"machine_id": "0" * 32}, fencer(manual={})),
        ({}, {}, fencer(manual={})),
        ({"system_uuid": UNSET}, {"system_uuid": UNSET}, fencer(manual={})),
        ({"serial": "Default string"}, {"serial": "Default string"}, fencer(manual={})),
    ],
)
def test_machines_that_are_two_are_told_apart(a, b, spec):
    assert refused(a, b, spec) == ""


def test_the_device_of_a_node_that_another_policy_or_none_holds_for():
    own, other = fencer(**agent()), fencer(**agent(parametersFrom={}, parameters={"ip": "10.0.0.5"}))
    assert "same device" in refused(bmc("10.0.0.5"), {}, own, other, other=1)
    assert "same device" in refused(bmc("10.0.0.5"), bmc("10.0.0.5"), own, other=False)
    assert refused({}, {}, other, other=False) == "", "it is the same for all nodes of its policy, and for no other"


def test_traces_come_and_go():
    among = TraceIndex()
    among.update_node("a", frozenset({("boot", "1")}))
    among.update_node("b", frozenset({("boot", "1"), ("machine", "m")}))
    assert among.other_nodes("a", ("boot", "1")) == ["b"]
    among.update_node("b", frozenset({("machine", "m")}))
    assert among.other_nodes("a", ("boot", "1")) == []
    among.update_node("b", frozenset())
    assert among.other_nodes("a", ("machine", "m")) == []


# -- explain -----------------------------------------------------------------------------------------------------------


def test_explain_says_which_node_is_in_the_way():
    lost, renamed = machine("n1", boot="old"), machine("n5", "True", boot="new")
    for one in (lost, renamed):
        one["status"]["nodeInfo"]["machineID"] = "4711"
    rest = [one for one in CLUSTER if one["metadata"]["name"] != "n1"]
    found = document("n1", lost, lease("n1", 300), renamed, lease("n5", 3), *rest, policy())
    assert found["next"] == "nothing is done yet"
    assert "bmc is refused: node n5, which is heard of, shows the same machineID" in found["inTheWay"][0]["why"]
    found = document("n1", lost, lease("n1", 300), renamed, lease("n5", 3), *rest, policy(machineIDCheck="Disabled"))
    assert found["next"] == "it is made sure now that its machine is off, by bmc"


# -- in a cluster ------------------------------------------------------------------------------------------------------


def shared_plug(gone, other):
    table = {name: other if name == gone else name for name in NAMES}
    kind = {"program": "fence_apc_snmp", "parameters": {"ip": "pdu"}, "parametersByNode": {"plug": table}}
    return [{"name": "pdu", "agent": kind, "targetCheck": "Disabled"}]


def any_target(world):
    """The devices say nothing of the machines behind them."""

    async def target():
        return FenceTarget()

    for name in NAMES:
        world.fences[name].read_target = target


async def change_policy(world, **spec):
    from lastcall.adapters.kube.failover_cluster import POLICIES

    await world.cluster.patch(POLICIES, "p", {"spec": spec}, namespace="")


async def show(world, **info):
    for name, said in info.items():
        await world.cluster.patch(NODES, name, {"status": {"nodeInfo": said}}, subresource="status", namespace="")


@pytest.mark.parametrize("alike", ["plug", "boot", "machine"])
def test_the_machine_of_a_node_that_was_left_behind_is_not_switched_off(alike):
    """Node ``gone`` is silent for good; its machine is registered as ``other``, which is well."""

    @failing_over
    async def run(world):
        gone = world.place()
        other = next(name for name in NAMES if name not in (gone, world.place("web")))
        unset = {"systemUUID": UNSET}
        shown = {name: dict(unset) for name in NAMES}
        if alike == "plug":
            await change_policy(world, fencers=shared_plug(gone, other))
        else:
            await change_policy(world, fencers=[{"name": "bmc", "manual": {}, "targetCheck": "Disabled"}])
            for name in (gone, other):
                shown[name] |= {"bootID": "one"} if alike == "boot" else {"machineID": "4711"}
        await show(world, **shown)
        any_target(world)
        world.start()
        await world.cluster.settle(30)
        world.nodes.silent.add(gone)
        await world.cluster.settle(120)
        assert world.verbs("off") == []
        assert not world.mark(gone), "it takes no place among the limits"
        assert f"node {other}, which is heard of," in world.candidates[0].controller.reconcilers[0].sentence
        if alike == "machine":
            await change_policy(world, machineIDCheck="Disabled")
            await world.until(lambda: world.verbs("off"), 60)

    run()


@failing_over
async def test_a_node_of_which_the_watch_tells_nothing_is_looked_at_right_before_the_order(world):
    """By a controller that does not lead, so that nothing else looks at nodes."""
    world.start("a")
    await world.cluster.settle(10)
    gone = world.place()
    other = next(name for name in NAMES if name not in (gone, world.place("web")))
    await change_policy(world, fencers=shared_plug(gone, other))
    controller = world.start("b").controller
    await world.cluster.settle(30)
    observing, gathering, hear = controller.observing, controller._gathering, controller.observing.handle_change
    observing.handle_change = lambda heard, now: None if heard.name == other else hear(heard, now)
    await world.cluster.settle(40)
    policy = observing.tracked_nodes[gone].choice.policy
    node, fencer = await controller._cluster.read_node(gone), policy.spec.fencers[0]
    assert observing.tracked_nodes[other].is_silent(world.now)
    assert gathering.fencer_refusal(gone, node, fencer) == ""
    assert f"node {other}, which is heard of," in await gathering.verify_rivals_live(gone, node, fencer)
    world.nodes.silent.add(other)
    await world.cluster.settle(40)
    assert await gathering.verify_rivals_live(gone, node, fencer) == ""


@failing_over
async def test_an_order_is_given_up_when_a_node_registers_that_shows_the_same_system_uuid(world):
    """The machine was installed anew under another name, and boots while its BMC takes its time."""
    gone, struck = world.place(), []
    other = next(name for name in NAMES if name not in (gone, world.place("web")))

    async def off(within):
        await show(world, **{other: {"bootID": "new", "systemUUID": uuid(gone)}})
        await world.cluster.clock.sleep(5)
        struck.append(gone)

    world.fences[gone].switch_off = off
    world.start()
    world.nodes.silent.add(gone)
    await world.until(lambda: world.verbs("off"), 60)
    await world.cluster.settle(60)
    assert not struck
