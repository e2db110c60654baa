"""What the Node shows of the sources of deadlines: conditions, and a cordon that is undone."""

import asyncio

import msgspec
import pytest
from support.agents.face_cluster import in_cluster

from lastcall import names
from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.graceful.cluster.source_changes import SourceStanding, standing_patch, warning_cordon_patch
from lastcall.graceful.cluster.source_reporter import SourceReporter
from lastcall.model.shutdown_node import NodeFieldOwner, ShutdownNode, ShutdownNodeMetadata, ShutdownNodeSpec
from lastcall_lab import virtual


def node(*, cordoned=False, ours=False, owner=""):
    """``owner`` is the field manager that owns the cordon."""
    annotations = {names.WARNING_CORDON: "true"} if ours else None
    cordon = NodeFieldOwner(manager=owner, fields_v1=msgspec.Raw(b'{"f:spec":{"f:unschedulable":{}}}'))
    return ShutdownNode(
        metadata=ShutdownNodeMetadata(
            name="n1",
            resource_version="7",
            annotations=annotations,
            managed_fields=(cordon,) if owner else None,
        ),
        spec=ShutdownNodeSpec(unschedulable=cordoned),
    )


@pytest.mark.parametrize(
    ("before", "wanted", "spec"),
    [
        (node(), True, {"unschedulable": True}),
        (node(cordoned=True), True, None),
        (node(cordoned=True, ours=True), True, None),
        (node(cordoned=True, ours=True), False, {"unschedulable": None}),
        (node(cordoned=True), False, None),
        (node(), False, None),
    ],
    ids=["free", "cordoned by others", "cordoned by us", "undone", "not ours to undo", "nothing to undo"],
)
def test_only_our_own_cordon_is_undone(before, wanted, spec):
    patch = warning_cordon_patch(before, wanted=wanted)
    assert (patch and patch["spec"]) == spec
    if patch:
        assert patch["metadata"]["resourceVersion"] == "7", "a cordon by somebody else in between is a conflict"
        assert patch["metadata"]["annotations"] == {names.WARNING_CORDON: "true" if wanted else None}


@pytest.mark.parametrize(("owner", "is_undone"), [("lastcall-agent", True), ("kubectl-cordon", False)])
def test_a_cordon_that_somebody_else_has_set_meanwhile_stays_and_is_no_longer_ours(owner, is_undone):
    patch = warning_cordon_patch(node(cordoned=True, ours=True, owner=owner), wanted=False)
    assert ("spec" in patch) is is_undone
    assert patch["metadata"] == {"resourceVersion": "7", "annotations": {names.WARNING_CORDON: None}}


def test_the_conditions_say_which_source_and_why():
    standing = SourceStanding(failures=(("NUT", "refused"),))
    failing, likely = standing_patch(standing, 0.0)["status"]["conditions"]
    assert (failing["type"], failing["status"], failing["message"]) == (names.SOURCES_FAIL, "True", "NUT: refused")
    assert (likely["type"], likely["status"], likely["message"]) == (names.INTERRUPTION_LIKELY, "False", "")


class Objects:
    """The part of ports.cluster.NodeObjects that is used."""

    def __init__(self):
        self.connected, self.fails, self.written, self.node = True, False, [], node()

    def is_connected(self):
        return self.connected

    async def get_node(self):
        return self.node

    async def patch_node_status(self, patch):
        if self.fails:
            raise Unavailable("the API server is away")
        self.written.append([one["status"] for one in patch["status"]["conditions"]])

    async def patch_node(self, patch):
        self.written.append(patch["spec"])
        self.node = node(cordoned=bool(patch["spec"]["unschedulable"]), ours=bool(patch["spec"]["unschedulable"]))


def with_reporter(test):
    def wrapped():
        async def main():
            clock, objects = virtual.VirtualClock(), Objects()
            reporter = SourceReporter(objects, clock, cordons=frozenset({"EC2"}))
            running = asyncio.create_task(reporter.run())
            await test(clock, objects, reporter)
            await cancel_and_wait(running)

        virtual.run(main())

    return wrapped


@with_reporter
async def test_a_source_that_fails_for_a_minute_is_shown_and_then_no_more(clock, objects, reporter):
    reporter.record_look("NUT", "", "refused")
    await clock.sleep(50)
    assert objects.written == [["False", "False"]]
    await clock.sleep(20)
    assert objects.written[1:] == [["True", "False"]]
    reporter.record_look("NUT", "", "")
    await clock.sleep(20)
    assert objects.written[2:] == [["False", "False"]]


@with_reporter
async def test_a_warning_cordons_only_where_that_is_wanted_and_the_cordon_goes_with_it(clock, objects, reporter):
    reporter.record_look("NUT", "on battery", "")
    await clock.sleep(10)
    assert objects.written == [["False", "True"]]
    reporter.record_look("EC2", "rebalance", "")
    await clock.sleep(10)
    assert objects.written[1:] == [["False", "True"], {"unschedulable": True}]
    reporter.record_look("EC2", "", "")
    await clock.sleep(10)
    assert objects.written[3:] == [["False", "True"], {"unschedulable": None}]


@with_reporter
async def test_a_cordon_of_an_earlier_life_is_undone(clock, objects, reporter):
    objects.node = node(cordoned=True, ours=True)
    reporter.record_look("EC2", "", "")
    await clock.sleep(10)
    assert objects.written == [["False", "False"], {"unschedulable": None}]


@with_reporter
async def test_an_api_server_that_is_away_is_tried_again(clock, objects, reporter):
    objects.fails = True
    await clock.sleep(30)
    objects.fails, objects.connected = False, False
    await clock.sleep(30)
    assert objects.written == []
    objects.connected = True
    await clock.sleep(10)
    assert objects.written == [["False", "False"]]


@in_cluster
async def test_at_an_api_server_as_the_kubelet_a_shutdown_in_between_leaves_the_cordon(cluster):
    reporter = SourceReporter(cluster._objects, cluster.clock, cordons=frozenset({"EC2"}))
    running = asyncio.create_task(reporter.run())
    reporter.record_look("EC2", "rebalance", "")
    await cluster.clock.sleep(10)
    assert (await cluster.conditions())[names.INTERRUPTION_LIKELY] == ("True", "SourcesWarn")
    assert (await cluster.node())["spec"]["unschedulable"] is True
    await cluster.face.begin_shutdown(cluster.clock.boottime() + 100)
    await cluster.clock.sleep(2)
    await cluster.face.mark_ready()
    assert (await cluster.node())["spec"]["unschedulable"] is True, "EC2 still recommends to move work away"
    assert names.INTERRUPTION_LIKELY in await cluster.conditions()
    reporter.record_look("EC2", "", "")
    await cluster.clock.sleep(10)
    assert "unschedulable" not in (await cluster.node())["spec"]
    assert names.WARNING_CORDON not in (await cluster.node())["metadata"].get("annotations", {})
    await cancel_and_wait(running)
