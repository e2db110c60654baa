"""What the runner of controllers does when one of them is wrong."""

import pytest
from support.lab_cluster import on_cluster

from lastcall.adapters.kube.resources import NODES
from lastcall.lab.controllers.actions import Decision
from lastcall.lab.controllers.view import ref


class Broken:
    """Fails at every node but the first."""

    name = "broken"
    resources = ("nodes",)

    def keys(self, resource, obj, view):
        return [ref("nodes", obj)]

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
