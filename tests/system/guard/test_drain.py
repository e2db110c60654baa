"""``lastcall drain`` and the real ``kubectl drain --disable-eviction`` of a node with a guarded pod.

It is held, never forced, and goes when its application is ready.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.guard.guarded_jobs import cluster_of_a_test, wait  # noqa: F401  (a fixture)

pytestmark = pytest.mark.timeout(240)


def drain(cluster, *options):
    """The program, under way."""
    command = [str(Path(sys.executable).parent / "lastcall"), "drain", "lab-1", "--ignore-daemonsets", "--force"]
    environment = os.environ | {"KUBECONFIG": str(cluster.lab.kubeconfig)}
    log = cluster.books / "drain"
    with log.open("wb") as file:
        return subprocess.Popen([*command, *options], stdout=file, stderr=file, env=environment)


def test_a_guarded_pod_is_held_and_never_forced(cluster):
    pod = cluster.pod()
    said = cluster.books / "drain"
    run = drain(cluster, "--timeout=8s", "--on-timeout=force")
    assert run.wait(100) == 1
    assert "moves its jobs (40 % done" in said.read_text()
    assert "a guard holds it, so it is not forced" in said.read_text()
    assert "deletionTimestamp" not in cluster.pod()["metadata"]

    run = drain(cluster)
    try:
        wait(lambda: "will retry after 5s" in said.read_text(), "refusal")
        assert cluster.pod()["metadata"]["uid"] == pod["metadata"]["uid"]
        (cluster.books / "ready").touch()
        assert run.wait(100) == 0
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGTERM)
            run.wait(60)
    assert "pod/jobs-0 evicted" in said.read_text()
    assert "node/lab-1 drained" in said.read_text()


def test_kubectl_that_deletes_instead_of_evicting_is_refused_each_time_until_the_application_is_ready(cluster):
    """Its first refusal ends the command; a person reads why, and calls it again."""
    uid = cluster.pod()["metadata"]["uid"]
    line = "drain lab-1 --disable-eviction --ignore-daemonsets --timeout=60s"
    said = cluster.kubectl(line)
    assert "Error from server (TooManyRequests): admission webhook" in said, said
    assert "pod default/jobs-0 is held by GuardPolicy jobs: its application begins to prepare" in said
    wait(lambda: "moves its jobs" in cluster.kubectl("get guardpolicy jobs -o yaml"), "progress")
    for _ in range(3):
        said = cluster.kubectl(line)
        assert "moves its jobs (40 % done, since" in said, said
        assert "see: kubectl get guardpolicy jobs --namespace default -o yaml" in said
        assert "node/lab-1 drained" not in said
    assert cluster.pod()["metadata"]["uid"] == uid
    assert "deletionTimestamp" not in cluster.pod()["metadata"]
    assert cluster.read("node lab-1")["spec"]["unschedulable"], "no other pod comes meanwhile"

    (cluster.books / "ready").touch()
    wait(lambda: cluster.read("guardpolicy jobs")["status"]["pods"][0]["state"] == "Ready", "readiness")
    said = []

    def is_drained():
        """The other replica answers from what it has read at most two seconds ago: then a person calls again."""
        said.append(cluster.kubectl(line))
        return "node/lab-1 drained" in said[-1]

    wait(is_drained, "drained node")
    assert all("pod default/jobs-0 is held by GuardPolicy jobs" in one for one in said[:-1]), said
    assert cluster.calls().count("prepare") == 1
