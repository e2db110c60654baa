"""The real Helm uninstalls the guard while it holds a pod: what is prepared is undone first, and nothing blocks Helm."""

import pytest
from support.guard.chart_guard import ChartGuard
from support.guard.guarded_jobs import wait

pytest.importorskip("helm_python", reason="Helm as a library exists for Linux on x86-64 alone")
pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("helm")]

KEPT = {
    f"customresourcedefinition.apiextensions.k8s.io/{kind}.lastcall.dev"
    for kind in ("fencepolicies", "nodeshutdowns", "guardpolicies")
}
MADE = {"guardpolicy.lastcall.dev/jobs", "statefulset.apps/jobs", "pod/jobs-0"}


@pytest.fixture
def cluster(tmp_path):
    made = ChartGuard(tmp_path)
    try:
        yield made.start()
    finally:
        (made.books / "hangs").unlink(missing_ok=True)
        made.lab.end()


def check_nothing_is_left(cluster):
    """But for definitions, which the chart keeps, and what others have made."""

    def left():
        return {
            one for one in cluster.everything() - cluster.before - KEPT - MADE if "controllerrevision" not in one
        } - {f"rolebinding.rbac.authorization.k8s.io/lastcall-guard-{one}" for one in ("access", "releaser")}

    wait(lambda: not left(), "end of the guard's objects")
    wait(lambda: cluster.read("statefulset jobs")["status"].get("readyReplicas") == 1, "pod")
    assert "deleted" in cluster("delete pod jobs-0 --wait=false")


def test_what_is_prepared_is_undone_first(cluster):
    cluster.helm("uninstall", "lastcall")
    assert cluster.calls().count("cancel") == 1
    assert cluster.entry()["state"] == "Released", "the policy is kept"
    assert cluster.entry()["message"] == "the guard is uninstalled"
    check_nothing_is_left(cluster)


def test_an_application_that_hangs_does_not_block_it(cluster):
    (cluster.books / "hangs").touch()
    cluster.helm("uninstall", "lastcall")
    assert "cancel" in cluster.calls()
    assert cluster.entry()["state"] != "Released"
    assert cluster.entry()["undoRequestedAt"], "a guard that is installed again undoes it"
    check_nothing_is_left(cluster)


def test_a_guard_that_is_dead_does_not_block_it(cluster):
    cluster.kill_guard()
    cluster.helm("uninstall", "lastcall")
    assert "cancel" not in cluster.calls()
    check_nothing_is_left(cluster)


def test_an_upgrade_that_switches_the_guard_off_undoes_first_too(cluster):
    off = {"enabled": False}
    cluster.helm("upgrade", cluster.chart, "lastcall", {**cluster.values, "guard": off})
    assert cluster.calls().count("cancel") == 1
    assert cluster.entry()["state"] == "Released"
    wait(
        lambda: not [one for one in cluster.everything() if "lastcall-guard" in one and "rolebinding" not in one], "end"
    )
    cluster.helm("upgrade", cluster.chart, "lastcall", {**cluster.values, "guard": off})
    cluster.helm("uninstall", "lastcall")
    check_nothing_is_left(cluster)


def test_it_may_be_asked_for_by_hand_and_taken_back(cluster):
    assert "created" in cluster("create configmap lastcall-guard-uninstall -n lastcall-system")
    assert cluster.calls().count("cancel") == 1
    assert not cluster.is_held()
    cluster.helm("upgrade", cluster.chart, "lastcall", cluster.values)
    wait(cluster.is_held, "hold")
    cluster.helm("uninstall", "lastcall")
    check_nothing_is_left(cluster)
