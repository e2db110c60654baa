"""What docs/how-to/lab.md shows, with real processes: a Deployment on three nodes, one of which is taken away."""

import re
import time
from pathlib import Path

import pytest
from support.kube.kubectl import Kubectl
from support.lab.up_process import LabProcess, run

pytestmark = pytest.mark.timeout(360)

PAGE = Path(__file__).parents[3] / "docs/how-to/lab.md"


@pytest.fixture
def lab(tmp_path):
    lab = LabProcess(tmp_path / "lab", "--nodes=3")
    lab.start()
    yield lab
    lab.end()


@pytest.fixture
def kubectl(lab, tmp_path):
    (tmp_path / "home").mkdir()
    return Kubectl(lab.kubeconfig, tmp_path / "home")


def nodes(kubectl, *, phase="Running"):
    """Where the pods of the Deployment run that are not on their way out."""
    found = kubectl.json(f"get pods -l app=web --field-selector=status.phase={phase}")["items"]
    return [one["spec"]["nodeName"] for one in found if "deletionTimestamp" not in one["metadata"]]


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_the_page(lab, kubectl):
    [manifest] = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert kubectl("get nodes -o name") == "node/lab-1\nnode/lab-2\nnode/lab-3\n"
    kubectl("apply -f -", given=manifest)
    assert kubectl("rollout status deployment web --timeout=60s").endswith("successfully rolled out\n")
    assert sorted(nodes(kubectl)) == ["lab-1", "lab-2", "lab-3"]
    assert re.search(r"\d{4}\n$", kubectl("exec deployment/web -- date"))
    where = f"--kubeconfig={lab.kubeconfig}"
    assert re.search(r"^lab-1 +on", run("status", where)[0], re.MULTILINE)

    assert run("power", "lab-1", "button", where)[2] == 0
    kubectl("wait node/lab-1 --for=condition=Ready=False --timeout=60s")
    until(lambda: sorted(set(nodes(kubectl))) == ["lab-2", "lab-3"] and len(nodes(kubectl)) == 3)
    assert run("power", "lab-1", "on", where)[2] == 0
    kubectl("wait node/lab-1 --for=condition=Ready --timeout=60s")

    said = kubectl("drain lab-2 --ignore-daemonsets --delete-emptydir-data --timeout=60s")
    assert said.endswith("node/lab-2 drained\n")
    until(lambda: len(nodes(kubectl)) == 3 and "lab-2" not in nodes(kubectl))
    assert kubectl("uncordon lab-2") == "node/lab-2 uncordoned\n"
    started = descendants(lab.process.pid)
    assert len(started) >= 3
    assert lab.stop() == 0
    assert [pid for pid in started if Path(f"/proc/{pid}/cwd").exists()] == []
    assert [*lab.temporary.iterdir()] == []


def descendants(pid):
    """All processes that a process, or one of these, has started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []  # it has ended meanwhile
    return [one for child in children for one in (int(child), *descendants(child))]
