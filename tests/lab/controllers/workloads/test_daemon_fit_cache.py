"""Whether a node is one for a DaemonSet is asked again when the node or the pods' spec is another, and then only."""

from lastcall_lab.controllers.framework.findings_cache import NodeFindings
from lastcall_lab.controllers.framework.view import ObjectRef, View
from lastcall_lab.controllers.workloads.daemon_pods import NodeFit, NodeFitCache

KEY = ObjectRef("daemonsets.apps", "default", "logs")
RUNS, GONE = NodeFit(run=True, stay=True), NodeFit(run=False, stay=False)


def daemon(**selector):
    return {"spec": {"template": {"spec": {"nodeSelector": selector, "containers": []}}}}


def node(name, **labels):
    return {"metadata": {"name": name, "labels": labels}, "spec": {}}


class Nodes:
    """A view of nodes alone."""

    def __init__(self, *found):
        self.view = View()
        self.has(*found)

    def has(self, *found):
        for one in found:
            self.view.apply("nodes", one, self.view.get("nodes", "", one["metadata"]["name"]))

    def loses(self, name):
        self.view.apply("nodes", None, self.view.get("nodes", "", name))


def test_a_node_that_has_changed_is_looked_at_again():
    fits, nodes = NodeFitCache(), Nodes(node("n1"), node("n2", disk="ssd"))
    assert fits.fits_by_node(KEY, daemon(disk="ssd"), nodes.view) == {"n1": GONE, "n2": RUNS}
    nodes.has(node("n1", disk="ssd"))
    assert fits.fits_by_node(KEY, daemon(disk="ssd"), nodes.view) == {"n1": RUNS, "n2": RUNS}


def test_one_that_has_not_is_not_asked_again():
    asked = []
    kept, nodes = NodeFindings(lambda one: asked.append(one["metadata"]["name"])), Nodes(node("n1"), node("n2"))
    kept.find_by_node(nodes.view)
    nodes.has(node("n2", disk="ssd"))
    kept.find_by_node(nodes.view)
    kept.find_by_node(nodes.view)
    assert asked == ["n2", "n1", "n2"]


def test_another_cluster_is_another_matter():
    fits, one = NodeFitCache(), Nodes(node("n1"), node("n2"), node("n3"))
    assert list(fits.fits_by_node(KEY, daemon(), one.view)) == ["n1", "n2", "n3"]
    assert list(fits.fits_by_node(KEY, daemon(), Nodes(node("n2"), node("n0")).view)) == ["n0", "n2"]


def test_another_spec_asks_all_again():
    fits, nodes = NodeFitCache(), Nodes(node("n1"), node("n2", disk="ssd"))
    fits.fits_by_node(KEY, daemon(disk="ssd"), nodes.view)
    assert fits.fits_by_node(KEY, daemon(), nodes.view) == {"n1": RUNS, "n2": RUNS}


def test_a_node_that_is_gone_is_forgotten_and_the_order_is_that_of_the_nodes():
    fits, nodes = NodeFitCache(), Nodes(node("n2"), node("n1"))
    assert list(fits.fits_by_node(KEY, daemon(), nodes.view)) == ["n1", "n2"]
    nodes.loses("n1")
    nodes.has(node("n0"))
    assert list(fits.fits_by_node(KEY, daemon(), nodes.view)) == ["n0", "n2"]
    nodes.loses("n0")
    assert list(fits.fits_by_node(KEY, daemon(), nodes.view)) == ["n2"]


def test_two_of_them_know_nothing_of_each_other():
    fits, nodes = NodeFitCache(), Nodes(node("n1"))
    other = ObjectRef("daemonsets.apps", "default", "disks")
    assert fits.fits_by_node(KEY, daemon(), nodes.view) == {"n1": RUNS}
    assert fits.fits_by_node(other, daemon(disk="ssd"), nodes.view) == {"n1": GONE}
    fits.forget(other)
    assert fits.fits_by_node(KEY, daemon(), nodes.view) == {"n1": RUNS}
