"""Beside a kubelet that is not stopped, as that of k3s: what docs/how-to/beside-a-kubelet.md says of it.

The lab's kubelet runs on while `lastcall agent --kubelet-unit=` ends the pods; all else as in test_beside_a_kubelet.py.
"""

import asyncio

import pytest
from support.beside.shared_unit import play_shared_unit, readiness
from support.beside.workloads import NODE, OTHER
from support.host import service_manager
from support.runtimes import containerd_world

from lastcall.model.shutdown import PhaseEnd, ShutdownOutcome
from lastcall_lab.private_logind import PrivateLogind

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-beside")]


@pytest.fixture(scope="module")
def shutdown(tmp_path_factory):
    if reason := containerd_world.why_not() or service_manager.why_not() or PrivateLogind.why_not():
        pytest.skip(reason)
    return asyncio.run(play_shared_unit(tmp_path_factory.mktemp("shared")))


def test_phases_are_kept(shutdown):
    critical = [shutdown.wrote(pod, "TERM")[0] for pod in ("critical", "static")]
    others = [shutdown.wrote(pod, "exit")[0] for pod in ("db", "hooked", "plain", "bare")]
    assert min(critical) >= max(others)
    assert shutdown.record.outcome is ShutdownOutcome.COMPLETED
    assert [phase.end for phase in shutdown.record.phases] == [PhaseEnd.DONE] * 2


def test_what_the_kubelet_restarts_is_ended_again(shutdown):
    terms, [start, *_] = shutdown.wrote("plain", "TERM"), shutdown.wrote("plain", "start")
    assert terms[0] < start < terms[1] <= shutdown.wrote("plain", "exit")[1]


def test_a_new_pod_starts_and_is_ended_too(shutdown):
    assert shutdown.wrote("late", "start")[0] < shutdown.wrote("late", "TERM")[0]


def test_hooks_of_deleted_pods_run_twice(shutdown):
    """The kubelet ends a deleted pod too, and waits for no Service."""
    assert len(shutdown.wrote("hooked", "hook")) == 2
    [term] = shutdown.wrote("hooked", "TERM")
    assert term >= min(shutdown.wrote("hooked", "hook-over"))


def test_deleted_pods_are_gone_and_their_volumes_elsewhere_before_the_release(shutdown):
    for name in ("db", "hooked"):
        assert any(v.gone and v.obj["spec"].get("nodeName") == NODE for v in shutdown.versions("pods", name))
    [ended] = shutdown.wrote("db", "exit")
    [started, *_] = shutdown.node.workloads.times("db", "start", node=OTHER, since=ended)
    assert started < shutdown.span.released


def test_the_node_is_ready_in_between_and_stays_cordoned(shutdown):
    versions = shutdown.versions("nodes", NODE)
    assert readiness(versions)[:3] == ["False", "True", "False"]
    assert versions[-1].obj["spec"]["unschedulable"]
