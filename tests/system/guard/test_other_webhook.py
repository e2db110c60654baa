"""A pod that the guard lets go and another program's webhook denies: by the real kubectl, and what it is told."""

import time

import pytest
from support.guard.guarded_jobs import cluster_of_a_test, wait  # noqa: F401  (a fixture)
from support.guard.other_webhook import OtherWebhook

from lastcall.guard.controller.allowance_memory import SAME_REQUEST

pytestmark = pytest.mark.timeout(240)


def entry(cluster):
    return cluster.read("guardpolicy jobs")["status"]["pods"][0]


def test_the_preparation_is_kept_for_the_retry_and_a_person_is_told(cluster, tmp_path):
    line = "delete pod jobs-0 --wait=false"
    with OtherWebhook(tmp_path).serving() as other:
        other.denies = False
        assert "created" in cluster.kubectl("create -f -", other.configuration)
        assert "is held by GuardPolicy jobs" in cluster.kubectl(line)
        (cluster.books / "ready").touch()
        wait(lambda: entry(cluster)["state"] == "Ready", "readiness")
        other.denies = True
        denied = 'admission webhook "backup.example.com" denied the request: a backup runs'
        wait(lambda: denied in cluster.kubectl(line), "denial")
        time.sleep(SAME_REQUEST.total_seconds())
        said = cluster.kubectl(line)
        assert denied in said, said
        assert "Warning: pod default/jobs-0 was allowed to go at " in said, said
        assert "another admission webhook, a PodDisruptionBudget or a precondition has refused it" in said
        assert entry(cluster)["state"] == "Ready"
        assert entry(cluster)["allowedAt"]
        other.denies = False
        assert 'pod "jobs-0" deleted' in cluster.kubectl(line)
        assert other.asked
    assert cluster.calls().count("prepare") == 1
    assert "cancel" not in cluster.calls()
