"""NoExecute taints end pods, in virtual time; what tolerates them, as a table."""

import pytest
from support.lab.controller_cluster import on_cluster

from lastcall.adapters.kube.resources import EVENTS, NODES, PODS
from lastcall.model.tolerations import FOR_EVER, Taint, Toleration, first_untolerated, seconds_tolerated, tolerates
from lastcall_lab.controllers.nodes.taint_eviction import TaintEvictionController
from lastcall_lab.controllers.objects.pods import condition_of

KEY = "example.com/broken"


def taint(key=KEY, effect="NoExecute", value=""):
    return {"key": key, "effect": effect, "value": value}


def pod(name, *tolerations):
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1", "tolerations": list(tolerations)}
    return {"metadata": {"name": name}, "spec": spec}


def exists(seconds=None, key=KEY):
    found = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


async def set_taints(cluster, *taints):
    await cluster.patch(NODES, "n1", {"spec": {"taints": list(taints)}}, namespace="")


def going(cluster):
    return [one["metadata"]["name"] for one in cluster.all(PODS) if one["metadata"].get("deletionTimestamp")]


def events(cluster):
    return [one["message"] for one in cluster.all(EVENTS) if one["reason"] == "TaintManagerEviction"]


@on_cluster(TaintEvictionController())
async def test_who_tolerates_nothing_goes_at_once_and_others_when_their_time_is_over(cluster):
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    for one in (pod("none"), pod("short", exists(60)), pod("ever", exists()), pod("zero", exists(0))):
        await cluster.create(PODS, one)
    await set_taints(cluster, taint(effect="NoSchedule"))
    await cluster.settle()
    assert going(cluster) == []
    await set_taints(cluster, taint())
    await cluster.settle()
    assert going(cluster) == ["none", "zero"]
    said = condition_of(cluster.get(PODS, "none"), "DisruptionTarget")
    assert (said["status"], said["reason"]) == ("True", "DeletionByTaintManager")
    assert said["message"] == "Taint manager: deleting due to NoExecute taint"
    assert cluster.get(PODS, "none")["metadata"]["deletionGracePeriodSeconds"] == 30
    assert events(cluster) == ["Marking for deletion Pod default/none", "Marking for deletion Pod default/zero"]
    await cluster.settle(57)
    assert going(cluster) == ["none", "zero"]
    await cluster.settle(4)
    assert going(cluster) == ["none", "short", "zero"]


@on_cluster(TaintEvictionController())
async def test_a_taint_that_is_taken_off_in_time_does_nothing(cluster):
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    await cluster.create(PODS, pod("web", exists(60)))
    await set_taints(cluster, taint())
    await cluster.settle(30)
    await set_taints(cluster)
    await cluster.settle(60)
    assert going(cluster) == []
    assert events(cluster) == ["Cancelling deletion of Pod default/web"]
    await set_taints(cluster, taint())
    await cluster.settle(50)
    assert going(cluster) == [], "its time begins anew"
    await cluster.settle(12)
    assert going(cluster) == ["web"]


@on_cluster(TaintEvictionController())
async def test_a_time_that_runs_is_not_moved_by_another_taint(cluster):
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    await cluster.create(PODS, pod("web", exists(60), exists(5, key="example.com/other")))
    await set_taints(cluster, taint())
    await cluster.settle(10)
    await set_taints(cluster, taint(), taint("example.com/other"))
    await cluster.settle(20)
    assert going(cluster) == []
    await set_taints(cluster, taint(), taint("example.com/third"))
    await cluster.settle()
    assert going(cluster) == ["web"], "but a taint that is not tolerated ends it"


@on_cluster(TaintEvictionController())
async def test_a_pod_that_comes_later_is_looked_at_too_and_one_that_is_going_is_marked(cluster):
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    await cluster.create(PODS, pod("old"))
    await cluster.delete(PODS, "old")
    await set_taints(cluster, taint())
    await cluster.create(PODS, pod("late"))
    await cluster.settle()
    assert going(cluster) == ["late", "old"]
    assert condition_of(cluster.get(PODS, "old"), "DisruptionTarget")["status"] == "True"
    await cluster.settle(100)
    assert len(events(cluster)) == 2, "each once"


TAINT = Taint(key="k", value="v", effect="NoExecute")


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="v"), True),
        (Toleration(key="k", operator="Equal", value="w"), False),
        (Toleration(key="k"), False),
        (Toleration(key="l", operator="Exists"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), True),
        (Toleration(key="k", operator="Exists", effect="NoSchedule"), False),
        (Toleration(key="k", operator="Gt", value="1"), False),
        (Toleration(key="k", operator="Near", value="v"), False),
    ],
)
def test_what_a_toleration_matches(toleration, matches):
    assert tolerates(toleration, TAINT) is matches


def test_how_long_taints_are_tolerated():
    def seconds(*tolerations, taints=(TAINT,)):
        return seconds_tolerated(taints, tolerations)

    assert seconds() == 0
    assert seconds(taints=()) == FOR_EVER
    assert seconds(taints=[Taint(key="k", effect="NoSchedule")]) == FOR_EVER
    assert seconds(Toleration(operator="Exists")) == FOR_EVER
    assert seconds(Toleration(operator="Exists", toleration_seconds=-1)) == 0
    first_of_two = (Toleration(key="k", value="v", toleration_seconds=9), Toleration(operator="Exists"))
    assert seconds(*first_of_two) == 9
    assert seconds(*reversed(first_of_two)) == FOR_EVER
    two = (TAINT, Taint(key="l", effect="NoExecute"))
    each = (
        Toleration(key="k", operator="Exists", toleration_seconds=9),
        Toleration(key="l", operator="Exists", toleration_seconds=4),
    )
    assert seconds(*each, taints=two) == 4
    assert seconds(each[0], taints=two) == 0


def test_what_keeps_a_pod_from_being_scheduled():
    taints = [Taint(key="a", effect="PreferNoSchedule"), Taint(key="b", effect="NoSchedule"), TAINT]
    assert first_untolerated(taints, []) == taints[1]
    assert first_untolerated(taints, [Toleration(key="b", operator="Exists")]) == TAINT
    assert first_untolerated(taints, [Toleration(operator="Exists")]) is None
    assert first_untolerated(taints, [], effects=["PreferNoSchedule"]) == taints[0]
