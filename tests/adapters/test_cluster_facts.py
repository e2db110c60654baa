"""What the doctor finds in a cluster, over TLS."""

import subprocess
import sys

import pytest
from support.lab_client import client_of
from support.lab_process import LabProcess

from lastcall.adapters import cluster_facts
from lastcall.adapters.kube.resources import PODS
from lastcall.errors import InvalidInput
from lastcall.host import Unknown


@pytest.fixture
def lab(tmp_path):
    process = LabProcess(tmp_path)
    process.start()
    yield process
    process.kill()


async def create(lab, name, *command):
    spec = {"nodeName": "control-1", "containers": [{"name": "c", "image": "i", "command": [*command]}]}
    with client_of(lab) as client:
        await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="kube-system")


async def test_the_controller_managers_among_the_pods_of_kube_system(lab):
    path = str(lab.kubeconfig)
    assert await cluster_facts.controllers(path) == ()
    await create(lab, "kube-controller-manager-control-1", "kube-controller-manager", "--v=2")
    await create(lab, "etcd-control-1", "etcd")
    [found] = await cluster_facts.controllers(path)
    assert (found.where, found.detaches_on_timeout) == ("pod kube-system/kube-controller-manager-control-1", True)
    lab.kill()
    assert isinstance(await cluster_facts.controllers(path), Unknown)


async def test_a_kubeconfig_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInput, match="nowhere"):
        await cluster_facts.controllers(str(tmp_path / "nowhere"))


def test_that_is_wrong_usage(tmp_path):
    line = [sys.executable, "-m", "lastcall", "doctor", f"--kubeconfig={tmp_path / 'nowhere'}"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=25)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere" in done.stderr
