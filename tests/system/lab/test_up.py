"""``lastcall lab up`` as people use it: up, used by kubectl, and down."""

import asyncio
import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.common.libraries import need_library
from support.lab.up_process import kubectl, labs_of_a_test, run  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(270)


# -- up and down -------------------------------------------------------------------------------------------------------


def test_up_and_used(labs, tmp_path):
    lab = labs()
    lab.start()
    assert f"  export KUBECONFIG={lab.kubeconfig}\n  kubectl get nodes\n" in lab.said
    assert "never for production" in lab.said
    assert stat.S_IMODE(lab.kubeconfig.stat().st_mode) == 0o600
    use = kubectl(lab, tmp_path / "home")
    assert use("auth whoami -o jsonpath={.status.userInfo.username}") == "lab-admin"
    assert use("create cm a") == "configmap/a created\n"


@pytest.mark.parametrize("named", [True, False], ids=["two words", "default"])
def test_the_lines_that_it_prints_work_when_they_are_copied(labs, tmp_path, monkeypatch, named):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    default = tmp_path / "state" / "lastcall" / "lab.kubeconfig"
    need_library("sushy", "the extra redfish is not installed")
    lab = labs("two words", "--nodes=2", "--failover", kubeconfig=None if named else default)
    lab.start()
    lines = [line for line in lab.said.splitlines() if line.startswith("  ")]
    assert len(lines) == 4
    assert all(("--kubeconfig" in line) == named for line in lines[2:]), "the default needs no name"
    said = subprocess.run(
        ["bash", "-e"],
        input="\n".join(lines),
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path / "state"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    out = run("status", f"--kubeconfig={lab.kubeconfig}", "-o", "json")[0]
    switches = {one["name"]: one["power"] for one in json.loads(out)["nodes"]}
    assert switches["lab-2"] == "off"
    assert switches["lab-1"] != "on"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(labs, tmp_path, number):
    lab = labs()
    lab.start()
    assert [*lab.temporary.iterdir()] != []
    use = kubectl(lab, tmp_path / "home")
    with use.running("get namespaces --watch") as watch:
        watch.until("kube-system")
        before = lab.said
        assert lab.stop(number) == 0
        assert lab.said == before, "nothing has gone wrong"
        watch.process.wait(60)
    assert [*lab.temporary.iterdir()] == []
    assert not lab.kubeconfig.exists()


def test_a_signal_before_it_is_up(labs):
    lab = labs()
    code = asyncio.run(_begun(lab, lambda lab: [*lab.temporary.iterdir()], signal.SIGTERM))  # it has begun to work
    assert code == 0, lab.said
    assert "Traceback" not in lab.said
    assert not lab.kubeconfig.exists()


async def _begun(lab, condition, number):
    """Its exit code when it gets a signal as soon as the condition holds, before it is up."""
    start = asyncio.create_task(asyncio.to_thread(lab.start))
    while not condition(lab):
        await asyncio.sleep(0.005)
    code = await asyncio.to_thread(lab.stop, number)
    with contextlib.suppress(AssertionError):
        await start
    return code


def test_ctrl_c_before_it_does_anything(labs):
    lab = labs()
    code = asyncio.run(_begun(lab, catches(signal.SIGTERM), signal.SIGINT))
    assert code == 0, lab.said
    assert lab.said == "", "not a word of an abort"
    assert [*lab.temporary.iterdir()] == []
    assert not lab.kubeconfig.exists()


def catches(number):
    """Whether a lab's process does something of its own at a signal (proc(5), SigCgt)."""

    def check(lab):
        if lab.process is None:
            return False
        status = Path(f"/proc/{lab.process.pid}/status").read_text()
        [mask] = re.findall(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)
        return bool(int(mask, 16) >> (number - 1) & 1)

    return check


def test_down_and_status(labs):
    lab = labs()
    lab.start()
    where = f"--kubeconfig={lab.kubeconfig}"
    assert run("status", where) == ("The lab has no machines.\n", "", 0)
    assert json.loads(run("status", where, "-o", "json")[0]) == {"nodes": []}
    out, said, code = run("power", "lab-1", "off", where)
    assert (out, code) == ("", 1)
    assert '"lab-1" is no machine of this lab' in said
    for verb in ("power", "bmc"):
        out, said, code = run(verb, "lab/1 x", "off", where)
        assert (out, code) == ("", 2)
        assert '"lab/1 x" is no name of a machine' in said
    assert run("down", where) == ("", "", 0)
    assert lab.process.wait(60) == 0
    assert not lab.kubeconfig.exists()
    out, said, code = run("status", where)
    assert (out, code) == ("", 2)
    assert "start a lab by lastcall lab up" in said


def test_down_when_it_was_killed(labs):
    lab = labs()
    lab.start()
    lab.kill()
    out, said, code = run("down", f"--kubeconfig={lab.kubeconfig}")
    assert (out, code) == ("", 1)
    assert "Traceback" not in said


def test_a_bmc_and_its_faults(labs):
    lab = labs("lab", "--nodes=2")
    lab.start()
    where = f"--kubeconfig={lab.kubeconfig}"

    def bmc(*arguments):
        out, said, code = run("bmc", *arguments, where, "-o", "json")
        assert (said, code) == ("", 0)
        return json.loads(out)["nodes"]

    def status():
        return [(one["power"], one["bmcFaults"]) for one in json.loads(run("status", where, "-o", "json")[0])["nodes"]]

    assert bmc("lab-1") == [{"name": "lab-1", "answers": "on", "bmcFaults": []}]
    assert bmc("lab-1", "--says=off", "--late=300ms") == [{"name": "lab-1", "bmcFaults": ["says off", "late 300ms"]}]
    assert bmc("lab-1")[0]["answers"] == "off"
    assert status() == [("on", ["says off", "late 300ms"]), ("on", [])]
    bmc("lab-1", "--says=truth", "--late=0s", "--stuck")
    bmc("lab-1", "off")
    assert bmc("lab-1") == [{"name": "lab-1", "answers": "on", "bmcFaults": ["stuck"]}]
    bmc("lab-1", "--works")
    bmc("lab-1", "off")
    assert status()[0] == ("off", [])
    assert run("bmc", "lab-1", where)[0].split() == ["NAME", "ANSWERS", "BMC-FAULTS", "lab-1", "off"]
    bmc("lab-2", "--deaf")
    assert run("bmc", "lab-2", where) == ("", "lastcall: the BMC of lab-2 does not answer\n", 4)
    assert status()[1] == ("on", ["deaf"]), "the others still know"
    bmc("lab-2", "--answers")
    assert bmc("lab-2")[0]["answers"] == "on"
    out, said, code = run("bmc", "lab-9", where)
    assert (out, code) == ("", 1)
    assert '"lab-9" is no machine of this lab; there are lab-1, lab-2' in said
    assert run("bmc", "lab-1", "on", "--deaf", where)[2] == 2


def test_how_its_nodes_go_down_and_how_late_they_hear(labs, tmp_path):
    lab = labs("lab", "--nodes=1", "--shutdown-manager=kubelet", "--propagation-delay=2s")
    lab.start()
    use = kubectl(lab, tmp_path / "home")

    def status(output="json"):
        return run("status", f"--kubeconfig={lab.kubeconfig}", "-o", output)[0]

    [node] = json.loads(status())["nodes"]
    assert (node["shutdownManager"], node["propagationDelay"]) == ("kubelet", "2s")
    titles = ["NAME", "POWER", "BMC-FAULTS", "SHUTDOWN-MANAGER", "PROPAGATION-DELAY", "SERVICES"]
    assert status("text").splitlines()[0].split() == titles
    began = time.monotonic()
    use("create service clusterip web --tcp=8080")
    while not any("default/web at " in one for one in json.loads(status())["nodes"][0]["services"]):
        assert time.monotonic() - began < 90
    assert time.monotonic() - began >= 2
    assert run("power", "lab-1", "button", f"--kubeconfig={lab.kubeconfig}")[2] == 0
    while json.loads(status())["nodes"][0]["power"] != "off":
        assert time.monotonic() - began < 120


def test_two_side_by_side(labs, tmp_path):
    one, two = labs("one", "--nodes=1"), labs("two", "--nodes=1")
    one.start()
    two.start()
    first, second = kubectl(one, tmp_path / "home-one"), kubectl(two, tmp_path / "home-two")
    first("create cm of-one")
    second("create cm of-two")
    assert "of-two" not in first("get cm -o name")
    assert {lab.said.count("ERROR") for lab in (one, two)} == {0}, "their nodes have addresses of their own"
    assert one.stop() == 0
    assert "configmap/of-two" in second("get cm -o name")


def test_the_audit_log(labs, tmp_path):
    log = tmp_path / "audit"
    lab = labs("lab", f"--audit-log={log}")
    lab.start()
    use = kubectl(lab, tmp_path / "home")
    use("create rolebinding jane --clusterrole=edit --user=jane")
    use("create cm a --as=jane")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    [made] = [one for one in records if one["verb"] == "create" and one["user"] == "jane"]
    assert (made["resource"], made["namespace"], made["code"]) == ("configmaps", "default", 201)


def test_who_has_no_rights_is_refused_unless_everything_is_allowed(labs, tmp_path):
    strict, open_lab = labs("strict", "--nodes=1"), labs("open", "--nodes=0", "--authorization=AlwaysAllow")
    strict.start()
    open_lab.start()
    use = kubectl(strict, tmp_path / "home-strict")
    token = use("create token default").strip()
    refused = use.fails(f"get secrets -A --token={token}")
    assert 'User "system:serviceaccount:default:default" cannot list resource "secrets"' in refused
    assert use.run("auth can-i list pods --as=jane").out == "no\n"
    own = use.fails("get pods -A --as=system:node:lab-1 --as-group=system:nodes")
    assert "can only list/watch pods with spec.nodeName field selector" in own
    other = kubectl(open_lab, tmp_path / "home-open")
    token = other("create token default").strip()
    assert other(f"get secrets -A --token={token} -o name") == ""


def test_a_controller_can_be_left_out(labs, tmp_path):
    lab = labs("lab", "--without=serviceaccount")
    lab.start()
    use = kubectl(lab, tmp_path / "home")
    assert "error looking up service account default/default" in use.fails("run p --image=web:1")


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_what_only_some_labs_need_is_not_loaded_at_the_start():
    """gRPC and protobuf for containers and kubectl's bodies, D-Bus for a real logind: loading is what a start costs."""
    program = "import sys, lastcall_lab.up.lab_process; print(sorted({'grpc', 'google.protobuf', 'dbus_fast'} & sys.modules.keys()))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=90)
    assert said.stdout == "[]\n"


def test_a_lab_at_rest_is_no_burden(labs):
    lab = labs()
    lab.start()
    assert any(_three_seconds(lab.process) < 0.5 for _ in range(10)), (
        "seconds of CPU in three, once it has come to rest"
    )
    status = Path(f"/proc/{lab.process.pid}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0])
    assert resident < 150_000, "kB"


def _three_seconds(process):
    """The seconds of CPU that it takes in three."""
    before = _cpu(process.pid)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(3)
    return _cpu(process.pid) - before


def _cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
