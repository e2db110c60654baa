"""Files of volumes while their pod runs: what changes in them, when, and what does not."""

import base64
import json
import os
import stat
from pathlib import Path

import pytest
from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import CONFIG_MAPS, PODS
from lastcall_lab.kubelet.cluster.config_sources import SECRETS
from lastcall_lab.kubelet.spec.projections import files_below
from lastcall_lab.kubelet.volumes import atomic_files


async def config_map(node, **data):
    await node.client.create(CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": data}, namespace="default")


async def change(node, **data):
    await node.client.patch(CONFIG_MAPS, "conf", {"data": data}, namespace="default")


CONF = {"name": "conf", "configMap": {"name": "conf"}}
MOUNTED = {"name": "main", "volumeMounts": [{"name": "conf", "mountPath": "/conf"}]}


@on_node()
async def test_files_follow_their_config_map_within_a_minute_and_a_half(node):
    await config_map(node, a="1", gone="x")
    await node.started("web", MOUNTED, volumes=[CONF])
    await change(node, a="2", gone=None, new="y")
    await node.clock.sleep(5)
    assert node.files("web") == {"conf/a": "1", "conf/gone": "x"}
    await node.clock.sleep(90)
    assert node.files("web") == {"conf/a": "2", "conf/new": "y"}
    assert node.container("web")["restartCount"] == 0


@on_node()
async def test_secrets_and_projected_volumes_too(node):
    await config_map(node, a="1")
    secret = {"metadata": {"name": "key"}, "stringData": {"token": "old"}}
    await node.client.create(SECRETS, secret, namespace="default")
    both = {"sources": [{"configMap": {"name": "conf"}}, {"secret": {"name": "key"}}]}
    volumes = [{"name": "key", "secret": {"secretName": "key"}}, {"name": "both", "projected": both}]
    await node.started("web", volumes=volumes)
    new = base64.b64encode(b"new").decode()
    await node.client.patch(SECRETS, "key", {"data": {"token": new}}, namespace="default")
    await change(node, a="2")
    await node.clock.sleep(95)
    assert node.files("web") == {"key/token": "new", "both/a": "2", "both/token": "new"}


@on_node()
async def test_labels_and_annotations_are_there_at_once(node):
    items = [{"path": one, "fieldRef": {"fieldPath": f"metadata.{one}"}} for one in ("labels", "annotations")]
    volume = {"name": "down", "downwardAPI": {"items": items}}
    await node.started("web", volumes=[volume], metadata={"labels": {"app": "x"}, "annotations": {"n": "1"}})
    await node.client.patch(PODS, "web", {"metadata": {"labels": {"tier": "y"}}}, namespace="default")
    await node.until(lambda: node.files("web")["down/labels"] == 'app="x"\ntier="y"', 2)
    await node.client.patch(PODS, "web", {"metadata": {"annotations": {"n": "2"}}}, namespace="default")
    await node.until(lambda: node.files("web")["down/annotations"] == 'n="2"', 2)


@on_node()
async def test_what_is_missing_leaves_the_files_and_is_told(node):
    await config_map(node, a="1")
    optional = {"name": "maybe", "configMap": {"name": "conf", "optional": True}}
    await node.started("web", MOUNTED, volumes=[CONF, optional])
    assert node.files("web") == {"conf/a": "1", "maybe/a": "1"}
    await node.client.delete(CONFIG_MAPS, "conf", namespace="default")
    await node.clock.sleep(95)
    assert node.files("web") == {"conf/a": "1"}
    said = 'MountVolume.SetUp failed for volume "conf" : configmap "conf" not found'
    assert ("FailedMount", said) in node.events("web")
    assert node.ready("web")
    await config_map(node, a="3")
    await node.clock.sleep(95)
    assert node.files("web") == {"conf/a": "3", "maybe/a": "3"}


@on_node()
async def test_while_the_api_server_is_away_the_files_stay(node):
    await config_map(node, a="1")
    await node.started("web", MOUNTED, volumes=[CONF])
    node.line.cut = True
    await change(node, a="2")
    await node.clock.sleep(300)
    assert node.files("web") == {"conf/a": "1"}
    node.line.cut = False
    await node.clock.sleep(95)
    assert node.files("web") == {"conf/a": "2"}


@on_node()
async def test_a_new_kubelet_goes_on_with_it(node):
    await config_map(node, a="1")
    await node.started("web", MOUNTED, volumes=[CONF])
    await node.stop()
    await change(node, a="2")
    node.boot()
    await node.until(lambda: node.files("web") == {"conf/a": "2"}, 10)
    await change(node, a="3")
    await node.clock.sleep(95)
    assert node.files("web") == {"conf/a": "3"}


def claims(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@on_node()
async def test_a_token_is_renewed_when_four_fifths_of_its_time_are_over(node):
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 1000}}
    await node.started("web", volumes=[{"name": "own", "projected": {"sources": [source]}}])
    first = node.files("web")["own/token"]
    await node.clock.sleep(700)
    assert node.files("web")["own/token"] == first
    await node.clock.sleep(200)
    second = node.files("web")["own/token"]
    assert claims(first)["exp"] + 600 < claims(second)["exp"] < claims(first)["exp"] + 1000
    node.line.cut = True
    await node.clock.sleep(850)
    assert node.files("web")["own/token"] == second, "it is good for a while yet"


# -- all at once -------------------------------------------------------------------------------------------------------


def files(directory):
    """What programs see."""
    found = {}
    for place, _, names in os.walk(directory, followlinks=True):
        for name in names:
            file = Path(place, name)
            path = str(file.relative_to(directory))
            if not path.startswith(".."):
                found[path] = (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
    return found


def hidden(directory):
    return sorted(one.name for one in directory.iterdir() if one.name.startswith("..") and one.name != "..data")


STATES = [
    {"a": (b"1", 0o644), "deep/b": (b"2", 0o400), "deep/er/c": (b"", 0o755)},
    {"a": (b"2", 0o644), "deep/b": (b"2", 0o400)},
    {"a": (b"2", 0o600), "deep": (b"a file now", 0o644)},
    {},
    {"deep/b": (b"3", 0o644), ".hidden": (b"4", 0o644)},
]


def test_a_directory_becomes_what_is_wanted(tmp_path):
    volume = tmp_path / "volume"
    for state in [*STATES, *reversed(STATES)]:
        atomic_files.write_directory(volume, state)
        assert files(volume) == state
        [only] = hidden(volume)
        atomic_files.write_directory(volume, state)
        assert hidden(volume) == [only], "nothing is written that is there already"


def test_one_link_changes_all_of_them(tmp_path):
    atomic_files.write_directory(tmp_path, {"a": (b"1", 0o644), "b": (b"1", 0o644)})
    before = os.open(tmp_path / "..data" / "a", os.O_RDONLY)
    link, target = str((tmp_path / "a").readlink()), str((tmp_path / "..data").readlink())
    assert link == "..data/a"
    atomic_files.write_directory(tmp_path, {"a": (b"2", 0o644), "b": (b"2", 0o644)})
    assert str((tmp_path / "a").readlink()) == link
    assert str((tmp_path / "..data").readlink()) != target
    assert os.read(before, 10) == b"1", "who has it open reads the old one to its end"
    os.close(before)


def test_what_a_crash_has_left_is_taken_away(tmp_path):
    atomic_files.write_directory(tmp_path, STATES[0])
    (tmp_path / "..half").mkdir()
    (tmp_path / "..half" / "x").write_text("x")
    (tmp_path / "..data_tmp").symlink_to("..half")
    atomic_files.write_directory(tmp_path, STATES[1])
    assert files(tmp_path) == STATES[1]
    assert len(hidden(tmp_path)) == 1


@pytest.mark.parametrize(("path", "found"), [("deep", ["deep/b", "deep/er/c"]), ("./a", ["a"]), ("de", [])])
def test_parts_of_a_volume(path, found):
    assert list(files_below(STATES[0], path)) == found
