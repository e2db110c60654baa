"""kubectl rollout: status, history, undo, pause, resume and restart, of Deployments and StatefulSets; in its own words."""

import re

import pytest
from support.kube.kubectl import kubectl, lab, rows, workload  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def web(kubectl):  # noqa: F811
    """kubectl in a namespace with a Deployment ``web`` of two pods, rolled out."""
    kubectl("create -f -", given=workload("Deployment", "web", replicas=2, pod_spec={"nodeName": "n1"}))
    kubectl("rollout status deploy web --timeout=60s")
    return kubectl


def rolled_out(kubectl, name="deploy/web"):  # noqa: F811
    """Waits until it is; the image of each pod then."""
    kubectl(f"rollout status {name} --timeout=60s")
    line = f"get pods -l app={name.split('/')[1]} -o jsonpath='{{.items[*].spec.containers[0].image}}'"
    return kubectl.until(line, lambda said: len(said.split()) == 2).split()


def history(kubectl, name="deploy/web"):  # noqa: F811
    """Revisions with their causes."""
    return [tuple(row) for row in rows(kubectl(f"rollout history {name}"))[2:] if row != [""]]


def test_status(web):
    assert web("rollout status deploy web") == 'deployment "web" successfully rolled out\n'
    heading, row = rows(web("get deploy web"))
    assert heading == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:4] == ["web", "2/2", "2", "2"]
    assert web("wait deploy/web --for=condition=Available --timeout=60s") == "deployment.apps/web condition met\n"
    assert (
        web.fails("rollout status deploy none") == 'Error from server (NotFound): deployments.apps "none" not found\n'
    )


def test_status_while_it_rolls_out(kubectl):  # noqa: F811
    kubectl("create -f -", given=workload("Deployment", "web", replicas=1, pod_spec={"nodeSelector": {"no": "such"}}))
    said = kubectl.run("rollout status deploy web --timeout=5s")
    assert said.code == 1
    assert said.out.endswith(
        'Waiting for deployment "web" rollout to finish: 0 of 1 updated replicas are available...\n'
    )
    assert said.err.endswith("error: timed out waiting for the condition\n")
    assert kubectl("rollout status deploy web --watch=false").startswith("Waiting for deployment")


def test_history_and_undo(web):
    web("annotate deploy web kubernetes.io/change-cause=first")
    web("set image deploy/web main=web:2")
    web("annotate deploy web kubernetes.io/change-cause=second")
    assert rolled_out(web) == ["web:2", "web:2"]
    web.until("rollout history deploy/web", lambda said: "second" in said)
    assert history(web) == [("1", "first"), ("2", "second")]
    assert "Image:\tweb:2" in re.sub(r" +", "", web("rollout history deploy web --revision=2"))
    assert web("rollout undo deploy web --dry-run=server") == "deployment.apps/web rolled back (server dry run)\n"
    assert web("rollout undo deploy web") == "deployment.apps/web rolled back\n"
    assert rolled_out(web) == ["web:1", "web:1"]
    assert history(web) == [("2", "second"), ("3", "first")]
    assert web("rollout undo deploy web --to-revision=2") == "deployment.apps/web rolled back\n"
    assert rolled_out(web) == ["web:2", "web:2"]
    assert (
        web.fails("rollout undo deploy web --to-revision=9")
        == "error: unable to find specified revision 9 in history\n"
    )


def test_restart(web):
    before = web("get pods -o name")
    assert web("rollout restart deploy web") == "deployment.apps/web restarted\n"
    assert rolled_out(web) == ["web:1", "web:1"]
    web.until("get pods -o name", lambda said: not {*said.split()} & {*before.split()})
    assert "kubectl.kubernetes.io/restartedAt" in web(
        "get deploy web -o jsonpath={.spec.template.metadata.annotations}"
    )


def test_pause_and_resume(web):
    assert web("rollout pause deploy web") == "deployment.apps/web paused\n"
    assert web.fails("rollout pause deploy web") == 'error: deployments.apps "web" is already paused\n'
    web("set image deploy/web main=web:2")
    said = web.fails("rollout restart deploy web")
    assert said == 'error: deployments.apps "web" can\'t restart paused deployment (run rollout resume first)\n'
    assert "web:2" not in web("get rs -o wide")
    assert web("rollout resume deploy web") == "deployment.apps/web resumed\n"
    assert rolled_out(web) == ["web:2", "web:2"]
    assert web.fails("rollout resume deploy web") == 'error: deployments.apps "web" is not paused\n'


def test_what_is_told_of_a_rollout(web):
    web("scale deploy web --replicas=1")
    web.until("get deploy web", lambda said: "1/1" in said)
    said = web("describe deploy web")
    assert re.search(r"NewReplicaSet: +web-\w+ \(1/1 replicas created\)", said)
    assert re.search(r"Available +True +MinimumReplicasAvailable", said)
    assert re.search(r"ScalingReplicaSet +\S+ +deployment-controller +Scaled up replica set web-\w+ from 0 to 2", said)
    assert re.search(
        r"ScalingReplicaSet +\S+ +deployment-controller +Scaled down replica set web-\w+ from 2 to 1", said
    )


def test_a_stateful_set(kubectl):  # noqa: F811
    kubectl(
        "create -f -", given=workload("StatefulSet", "db", replicas=2, serviceName="db", pod_spec={"nodeName": "n1"})
    )
    assert rolled_out(kubectl, "sts/db") == ["web:1", "web:1"]
    assert kubectl("get pods -o name") == "pod/db-0\npod/db-1\n"
    kubectl("set image sts/db main=web:2")
    assert rolled_out(kubectl, "sts/db") == ["web:2", "web:2"]
    assert [revision for revision, _ in history(kubectl, "sts/db")] == ["1", "2"]
    assert kubectl("rollout undo sts db") == "statefulset.apps/db rolled back\n"
    kubectl("rollout status sts db --timeout=60s")
    kubectl.until("get pods -o jsonpath='{.items[*].spec.containers[0].image}'", lambda said: said == "web:1 web:1")
    assert kubectl("rollout restart sts db") == "statefulset.apps/db restarted\n"
    kubectl("scale sts db --replicas=1")
    kubectl.until("get pods -o name", lambda said: said == "pod/db-0\n")


def test_deleting_it_deletes_everything(web):
    web("delete deploy web")
    web.until("get rs,pods -o name", lambda said: said == "")
