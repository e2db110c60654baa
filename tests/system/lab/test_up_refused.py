"""What ``lastcall lab up`` refuses: files of others, wrong usage, damage, and data that another lab uses."""

import pytest
import yaml
from support.lab.up_process import labs_of_a_test, run  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(270)


def test_another_labs_kubeconfig(labs, tmp_path):
    lab = labs()
    lab.start()
    out, said, code = run("up", "--nodes=0", f"--kubeconfig={lab.kubeconfig}", temporary=tmp_path)
    assert (out, code) == ("", 3)
    assert said.startswith(f"lastcall: {lab.kubeconfig} belongs to a lab that runs at https://127.0.0.1:")
    lab.kill()
    again = labs("again", kubeconfig=lab.kubeconfig)
    again.start()
    assert again.stop() == 0, "what a killed one has left is overwritten"


@pytest.mark.parametrize("content", ["apiVersion: v1\nkind: Config\nclusters: []\n", "not yaml: [", "just text"])
def test_somebody_elses_kubeconfig_is_left_alone(tmp_path, content):
    path = tmp_path / "config"
    path.write_text(content)
    out, said, code = run("up", "--nodes=0", f"--kubeconfig={path}", temporary=tmp_path)
    assert (out, code) == ("", 3)
    assert said == (
        f"lastcall: {path} is not a lab's kubeconfig and would be overwritten: name another file by --kubeconfig\n"
    )
    assert path.read_text() == content
    assert [*tmp_path.iterdir()] == [path], "nothing is left behind"


def test_an_empty_file_and_a_new_directory_will_do(labs, tmp_path):
    (tmp_path / "empty").touch()
    lab = labs("one", kubeconfig=tmp_path / "empty")
    lab.start()
    other = labs("two", kubeconfig=tmp_path / "new" / "directory" / "config")
    other.start()
    assert other.kubeconfig.exists()


def test_a_port_that_is_taken(labs, tmp_path):
    lab = labs()
    lab.start()
    port = yaml.safe_load(lab.kubeconfig.read_text())["clusters"][0]["cluster"]["server"].rpartition(":")[2]
    other = tmp_path / "other"
    out, said, code = run("up", "--nodes=0", f"--port={port}", f"--kubeconfig={other}", temporary=tmp_path)
    assert (out, code) == ("", 2)
    assert said == f"lastcall: 127.0.0.1:{port}: cannot listen: Address already in use\n"
    assert not other.exists()


WRONG = {
    "kubeconfig": (["--kubeconfig=/proc/none/x"], "lastcall: --kubeconfig: /proc/none/x cannot be written: "),
    "data": (["--data=/proc/none/x"], "lastcall: --data: /proc/none/x cannot be made: "),
    "audit": (["--audit-log=/proc/none/x"], "lastcall: --audit-log: /proc/none/x cannot be written: "),
    "without": (["--without=nobody"], 'lastcall: --without: "nobody" is no controller; there are '),
    "nodes": (["--nodes=1000"], "1000 is not in the range 0<=x<=100"),
    "shutdown-manager": (["--shutdown-manager=nobody"], "'nobody' is not one of 'lastcall', 'kubelet'"),
    "propagation-delay": (["--propagation-delay=5"], ': missing unit in duration "5"; expected a duration such as'),
    "negative": (["--propagation-delay=-1s"], "-1s must not be negative"),
    "runtime": (["--runtime=docker"], "'docker' is not one of 'processes', 'containerd'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_usage(tmp_path, what):
    arguments, words = WRONG[what]
    out, said, code = run("up", "--nodes=0", f"--kubeconfig={tmp_path / 'k'}", *arguments, temporary=tmp_path)
    assert (out, code) == ("", 2)
    assert words in said
    assert "Traceback" not in said
    assert [*tmp_path.iterdir()] == [], "nothing is left behind"


def test_a_damaged_file(tmp_path):
    (tmp_path / "data").mkdir()
    damaged = tmp_path / "data" / "lab.db"
    damaged.write_bytes(b"\x01\x02" * 10_000)
    out, said, code = run("up", "--nodes=0", f"--kubeconfig={tmp_path / 'k'}", f"--data={tmp_path / 'data'}")
    assert (out, code) == ("", 2)
    assert said.startswith(f"lastcall: {damaged}: is damaged, or no database at all (")
    assert damaged.read_bytes() == b"\x01\x02" * 10_000


GARBAGE = {
    "admin.token": (b"", "is empty: remove the file, and a new one is made"),
    "bmc.password": (b"\n", "is empty: remove the file, and a new one is made"),
    "service-account.key": (b"", "is empty: remove the file, and a new one is made"),
    "ca.pem": (b"garbage", "is not a certificate in PEM: remove ca.pem and ca.key, and new ones are made"),
    "port": (b"garbage", "is not a port number from 1 to 65535: remove the file, and a new one is made"),
}


def test_garbage_in_the_files_of_the_control_plane(labs, tmp_path):
    data = tmp_path / "data"
    lab = labs("lab", f"--data={data}")
    lab.start()
    assert lab.stop() == 0
    for name, (content, why) in GARBAGE.items():
        path = data / "control-plane" / name
        before = path.read_bytes()
        path.write_bytes(content)
        out, said, code = run("up", "--nodes=0", f"--kubeconfig={tmp_path / 'k'}", f"--data={data}")
        assert (out, code) == ("", 2)
        assert said == f"lastcall: {path}: {why}\n"
        path.write_bytes(before)


def test_data_that_another_lab_uses(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    lab.start()
    out, said, code = run("up", "--nodes=0", f"--kubeconfig={tmp_path / 'k'}", f"--data={tmp_path / 'data'}")
    assert (out, code) == ("", 1)
    assert said == f"lastcall: {tmp_path / 'data' / 'lab.db'} is in use by another lab\n"
