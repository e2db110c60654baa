"""``lastcall lab up --runtime containerd``: its pods are containers, and nothing of them is left at the end."""

import tempfile
from pathlib import Path

import pytest
from support.kube.kubectl import Kubectl
from support.lab.up_process import LabProcess
from support.runtimes import containerd_world

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-lab-up")]

LOOP = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"


@pytest.fixture
def lab(tmp_path):
    if reason := containerd_world.why_not():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="lc-") as short:  # the paths of sockets are
        lab = LabProcess(tmp_path / "lab", "--nodes=1", "--runtime=containerd", temporary=Path(short))
        yield lab
        if lab.process and lab.process.poll() is None:
            lab.stop()
        lab.kill()


def test_up_used_and_gone(lab, tmp_path):
    lab.start()
    assert "The lab is up: 1 node; for trying and testing, never for production.\n" in lab.said
    use = Kubectl(lab.kubeconfig, tmp_path)
    version = "{.items[*].status.nodeInfo.containerRuntimeVersion}"
    assert use(f"get nodes -o jsonpath={version}").startswith("containerd://")
    use("run web --image=localhost/lastcall/busybox:lab --command --", "sh", "-c", LOOP)
    use("wait --for=condition=Ready pod/web --timeout=60s")
    assert use("exec web -- cat /proc/1/comm") == "sh\n", "it is the first process of a container"
    assert lab.stop() == 0
    assert not lab.kubeconfig.exists()
    assert [*lab.temporary.iterdir()] == []
