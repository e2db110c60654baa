"""Whether a node is one for a DaemonSet is asked again when the node or the pods' spec is another, and then only."""

from lastcall.lab.controllers.daemon_pods import Fit, Fits
from lastcall.lab.controllers.view import Ref

KEY = Ref("daemonsets.apps", "default", "logs")
RUNS, GONE = Fit(run=True, stay=True), Fit(run=False, stay=False)


def daemon(**selector):
    return {"spec": {"template": {"spec": {"nodeSelector": selector, "containers": []}}}}


def node(name, **labels):
    return {"metadata": {"name": name, "labels": labels}, "spec": {}}


def test_a_node_that_has_changed_is_looked_at_again():
    fits, rest = Fits(), node("n2", disk="ssd")
    assert fits.of(KEY, daemon(disk="ssd"), {"n1": node("n1"), "n2": rest}) == {"n1": GONE, "n2": RUNS}
    assert fits.of(KEY, daemon(disk="ssd"), {"n1": node("n1", disk="ssd"), "n2": rest}) == {"n1": RUNS, "n2": RUNS}


def test_another_spec_asks_all_again():
    fits, nodes = Fits(), {"n1": node("n1"), "n2": node("n2", disk="ssd")}
    fits.of(KEY, daemon(disk="ssd"), nodes)
    assert fits.of(KEY, daemon(), nodes) == {"n1": RUNS, "n2": RUNS}


def test_a_node_that_is_gone_is_forgotten_and_its_order_is_that_of_the_nodes():
    fits, one, two = Fits(), node("n1"), node("n2")
    fits.of(KEY, daemon(), {"n1": one, "n2": two})
    assert list(fits.of(KEY, daemon(), {"n2": two, "n0": one})) == ["n2", "n0"]


def test_two_of_them_know_nothing_of_each_other():
    fits, nodes = Fits(), {"n1": node("n1")}
    other = Ref("daemonsets.apps", "default", "disks")
    assert fits.of(KEY, daemon(), nodes) == {"n1": RUNS}
    assert fits.of(other, daemon(disk="ssd"), nodes) == {"n1": GONE}
    fits.forget(other)
    assert fits.of(KEY, daemon(), nodes) == {"n1": RUNS}
