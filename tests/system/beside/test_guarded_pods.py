"""Guarded pods of a node that shuts down, with guard, kubelet and agent as programs of their own.

One shutdown is played: the application of one pod becomes ready in its midst, that of another one never does.
"""

import asyncio

import pytest
from support.beside.guarded_night import PLAIN, READY, STUCK, play_guarded_night
from support.host import service_manager
from support.runtimes import containerd_world

from lastcall.model.shutdown import PodOutcome, ShutdownOutcome
from lastcall_lab.private_logind import PrivateLogind

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-beside")]


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    if reason := containerd_world.why_not() or service_manager.why_not() or PrivateLogind.why_not():
        pytest.skip(reason)
    return asyncio.run(play_guarded_night(tmp_path_factory.mktemp("guarded")))


def term(night, name):
    [at] = night.node.workloads.times(name, "TERM", since=night.span.began)
    return at


def record_of(night, name):
    [found] = [pod for pod in night.record.pods if pod.name.startswith(name)]
    return found


def test_a_pod_gets_sigterm_when_its_application_is_ready(night):
    application = night.applications[READY]
    assert night.span.began < application.prepared < application.ready < term(night, READY)
    waited = record_of(night, READY).application
    assert waited.is_ready
    assert waited.seconds > 0


def test_the_deadline_wins_and_is_recorded(night):
    assert night.applications[STUCK].prepared
    assert term(night, READY) < term(night, STUCK) < night.span.released
    found = record_of(night, STUCK)
    assert not found.application.is_ready
    assert "its replica does not follow" in found.application.message
    assert found.outcome is PodOutcome.GRACEFUL, "its own time was left to it"


def test_the_report_says_which_application_was_not_ready(night):
    assert night.report.count("its application was not ready after") == 1
    [line] = [line for line in night.report.splitlines() if "its application was not ready after" in line]
    assert "its replica does not follow" in line
    assert "for its application" in night.report


def test_other_pods_wait_for_nobody(night):
    assert term(night, PLAIN) < term(night, READY)
    assert record_of(night, PLAIN).application is None


def test_both_are_deleted_whatever_the_guard_says(night):
    """A terminated pod whose deletion is refused would stay for ever."""
    assert night.record.outcome is ShutdownOutcome.COMPLETED
    for name in (READY, STUCK):
        began = [v for v in night.node.history.of("pods", f"{name}-0") if v.at < night.span.began]
        [uid] = {v.obj["metadata"]["uid"] for v in began}
        gone = [v for v in night.node.history.of("pods", f"{name}-0") if v.gone and v.obj["metadata"]["uid"] == uid]
        assert gone, f"{name} stays"
