"""What the runner of controllers does when one of them is wrong."""

import pytest
from support.lab.controller_cluster import on_cluster

from lastcall.adapters.kube.resources import NODES, dict_resource
from lastcall_lab.controllers.framework.actions import Decision, PatchObject
from lastcall_lab.controllers.framework.view import ObjectRef, ref_of
from lastcall_lab.controllers.runner.work_queue import WorkQueue


class Broken:
    """Fails at every node but the first."""

    name = "broken"
    resources = ("nodes",)

    def affected_keys(self, resource, obj, view):
        return [ref_of("nodes", obj)]

    def decide(self, key, view, now):
        if key.name != "n1":
            raise KeyError(key.name)
        return Decision()


def test_a_controller_that_fails_ends_all_and_says_why():
    @on_cluster(Broken())
    async def scenario(cluster):
        await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
        await cluster.settle()
        await cluster.create(NODES, {"metadata": {"name": "n2"}}, namespace="")
        await cluster.settle()

    with pytest.raises(KeyError, match="n2"):
        scenario()


class Stubborn:
    """Writes of every node what it says already."""

    name = "stubborn"
    resources = ("nodes",)

    def __init__(self):
        self.looks = []
        self.label = "same"

    def affected_keys(self, resource, obj, view):
        return [ref_of("nodes", obj)]

    def decide(self, key, view, now):
        self.looks.append(now)
        return Decision((PatchObject(key, {"metadata": {"labels": {"is": self.label}}}),))


def test_what_changes_nothing_is_decided_again_later_each_time(caplog):
    stubborn = Stubborn()

    @on_cluster(stubborn)
    async def scenario(cluster):
        group = "rbac.authorization.k8s.io"
        admin = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
        account = {"kind": "ServiceAccount", "namespace": "kube-system", "name": "stubborn"}
        binding = {"metadata": {"name": "stubborn"}, "roleRef": admin, "subjects": [account]}
        await cluster.create(dict_resource(group, "v1", "clusterrolebindings"), binding, namespace="")
        await cluster.create(NODES, {"metadata": {"name": "n1", "labels": {"is": "same"}}}, namespace="")
        await cluster.settle(60)
        assert 8 <= len(stubborn.looks) <= 16, "pauses of up to ten seconds"
        assert stubborn.looks[-1] - stubborn.looks[-2] >= 5
        before = len(stubborn.looks)
        await cluster.patch(NODES, "n1", {"metadata": {"labels": {"other": "one"}}}, namespace="")
        await cluster.settle(0.01)
        assert len(stubborn.looks) > before, "a change is heeded at once"
        stubborn.label = "new"
        await cluster.until(lambda: cluster.get(NODES, "n1")["metadata"]["labels"]["is"] == "new", 12)

    scenario()
    said = [record.getMessage() for record in caplog.records if "without any effect" in record.getMessage()]
    assert said[0] == "stubborn: nodes//n1: the same decision again, without any effect"
    assert len(said) <= 3, "once for each time that it begins"


def test_nobody_waits_for_what_was_written_to_a_resource_that_is_not_followed_any_more():
    queue, key = WorkQueue(Stubborn()), ObjectRef("nodes", "", "n1")
    queue.blocked[key] = {"nodes": 3, "widgets.x.example.com": 5}
    queue.forget("widgets.x.example.com")
    assert queue.blocked == {key: {"nodes": 3}}
