"""``lastcall lab up --data`` with what an older version has left: all of it is there, and the rules of today hold.

The recording has the directory of a lab of commit 70cb4f9, which had no RBAC and left its database readable by all, with
objects of most kinds. It was ended by SIGKILL, so that everything is in SQLite's log of writes. Beside it are the
kubeconfig that it wrote, and a token of its service account ``shop/cart``, which is valid until 2036.
"""

import contextlib
import json
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest
import yaml
from support.common.file_modes import modes
from support.kube.kubectl import Kubectl
from support.lab.up_process import kubectl, labs_of_a_test  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(270)

RECORDED = Path(__file__).parents[2] / "recordings" / "lab-data-70cb4f9.tar.xz"
MOVED = {"events", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io"}
"""What the lab's own programs write all the time."""


def stored(data, copy):
    """All objects in a lab's database by resource, namespace and name; read in a copy, since a look changes the files."""
    shutil.copytree(data, copy)
    with contextlib.closing(sqlite3.connect(copy / "lab.db")) as connection:
        rows = connection.execute("SELECT resource, namespace, name, data FROM objects").fetchall()
    return {tuple(names): json.loads(content) for *names, content in rows}


@pytest.fixture
def data(tmp_path):
    """The directory as the old lab has left it."""
    with tarfile.open(RECORDED) as tar:
        tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        tar.extractall(tmp_path)  # noqa: S202  (a recording of ours)
    assert modes(tmp_path / "data") >= {0o644, 0o755}
    return tmp_path / "data"


def with_token(lab, home, token):
    """kubectl of whoever has that token."""
    config = yaml.safe_load(lab.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    home.mkdir()
    (home / "config").write_text(yaml.safe_dump(config))
    return Kubectl(home / "config", home, namespace="shop")


def test_the_data_of_an_older_version_opens(labs, data, tmp_path):
    before = stored(data, tmp_path / "before")
    assert len(before) > 80
    lab = labs("lab", f"--data={data}")
    lab.start()
    assert modes(data) == {0o600, 0o700}
    old, new = (yaml.safe_load(path.read_text())["users"] for path in (data.parent / "kubeconfig", lab.kubeconfig))
    assert old == new, "the administrator's token is the one of then"
    use = kubectl(lab, tmp_path / "home")
    assert use("get secret bmc -n shop -o jsonpath={.data.password}") == "bm90LWEtcmVhbC1vbmU="
    assert use("get bells.e.com big -n shop -o jsonpath={.size}") == "9"
    assert use("get fencepolicies workers -o name") == "fencepolicy.lastcall.dev/workers\n"
    assert use("get pods -n shop -l app=web -o name").count("pod/web-") == 2
    assert use("get clusterrole cluster-admin -o name"), "of upstream's bootstrap roles, which the old lab did not have"
    cart = with_token(lab, tmp_path / "cart", (data.parent / "cart.token").read_text())
    assert "system:serviceaccount:shop:cart" in cart("auth whoami")
    assert cart("get cm colours -o jsonpath={.data.front}") == "red"
    assert 'cannot get resource "secrets"' in cart.fails("get secret bmc")
    use("scale deployment web -n shop --replicas=3")
    use("wait deployment web -n shop --for=jsonpath={.status.replicas}=3 --timeout=60s")
    assert lab.stop() == 0
    after = stored(data, tmp_path / "after")
    changed = {
        key for key in before if before[key]["metadata"]["uid"] != after.get(key, {}).get("metadata", {}).get("uid")
    }
    assert [key for key in changed if key[0] not in MOVED] == []
