"""The manifests of static pods: what of a directory is read, as a kubelet reads it, and what is passed over."""

import logging
import os
from pathlib import Path

import pytest

from lastcall.adapters.pods import static_pods
from lastcall.adapters.pods.static_pods import StaticPods

ETCD = ("kube-system", "etcd")
SERVER = ("kube-system", "server")


def manifest(name, priority=7):
    spec = f"{{priority: {priority}, containers: [{{name: main, image: x}}]}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: kube-system}}\nspec: {spec}\n"


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "etcd.yaml").write_text(manifest("etcd"))
    return tmp_path


@pytest.fixture
def failing(monkeypatch):
    """Names of files that the operating system does not give."""
    names = set()
    really = Path.open

    def opened(path, *arguments, **options):
        if path.name in names:
            raise OSError(5, "Input/output error", str(path))
        return really(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", opened)
    return names


@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to(path.parent),
        os.mkfifo,
    ],
    ids=["a directory", "a link to nothing", "a link to itself", "a link to a directory", "a pipe that nobody writes"],
)
def test_what_is_no_file_is_told_once_and_keeps_nothing_else_from_being_read(directory, caplog, make):
    make(directory / "backup.yaml")
    pods = StaticPods(directory, "n1")
    assert [*pods()] == [*pods()] == [ETCD]
    assert [record.message for record in caplog.records] == ["backup.yaml: is no file: passed over"]


@pytest.mark.parametrize("name", ["server.yaml", "server.manifest", "server", "-server"])
def test_every_file_is_a_manifest_whatever_the_end_of_its_name(directory, name):
    (directory / name).write_text(manifest("server"))
    assert set(StaticPods(directory, "n1")()) == {ETCD, SERVER}


def test_hidden_files_are_none(directory, caplog):
    (directory / ".server.yaml").write_text(manifest("server"))
    assert [*StaticPods(directory, "n1")()] == [ETCD]
    assert caplog.records == []


def test_a_link_to_a_manifest_is_one_and_followed_when_that_changes(directory, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "server.yaml"
    (directory / "link.yaml").symlink_to(elsewhere)
    pods = StaticPods(directory, "n1")
    assert set(pods()) == {ETCD}
    elsewhere.write_text(manifest("server"))
    assert set(pods()) == {ETCD, SERVER}


def test_what_is_longer_than_a_kubelet_reads_is_told(directory, caplog, monkeypatch):
    monkeypatch.setattr(static_pods, "_LONGEST", 1000)
    (directory / "dump.yaml").write_bytes(b"#" * 1001)
    assert [*StaticPods(directory, "n1")()] == [ETCD]
    assert [record.message for record in caplog.records] == ["dump.yaml: must not have more than 1000 bytes"]


def test_a_file_that_cannot_be_read_now_keeps_its_pod_and_is_tried_again(directory, caplog, failing):
    (directory / "server.yaml").write_text(manifest("server"))
    pods = StaticPods(directory, "n1")
    pods()
    failing.add("server.yaml")
    (directory / "etcd.yaml").write_text(manifest("etcd", priority=8))
    os.utime(directory / "etcd.yaml", ns=(1, 1))
    for _ in range(2):
        assert {key: pod.spec.priority for key, pod in pods().items()} == {ETCD: 8, SERVER: 7}
    assert [record.message for record in caplog.records] == ["server.yaml: cannot be read: Input/output error"]


def test_a_file_that_could_not_be_read_at_first_is_read_as_soon_as_it_can_be(directory, caplog, failing):
    caplog.set_level(logging.CRITICAL)
    failing.add("etcd.yaml")
    pods = StaticPods(directory, "n1")
    assert pods() == {}
    failing.clear()  # nothing else has changed
    assert [*pods()] == [ETCD]


def test_the_pods_stay_while_the_directory_is_away_and_that_is_told_once(directory, caplog):
    pods = StaticPods(directory, "n1")
    pods()
    directory.rename(directory.with_name("aside"))
    assert [*pods()] == [*pods()] == [ETCD]
    assert len(caplog.records) == 1
    directory.with_name("aside").rename(directory)
    (directory / "etcd.yaml").unlink()
    assert pods() == {}
