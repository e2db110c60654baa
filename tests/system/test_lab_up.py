"""``lastcall lab up`` as people use it: up, used by kubectl, down; wrong usage; killed and started again."""

import asyncio
import contextlib
import json
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
import yaml
from support.kubectl import Kubectl, config_map
from support.lab_process import LabProcess, run

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.resources import CONFIG_MAPS
from lastcall.adapters.kube.watching import Watching
from lastcall.aio import cancel

pytestmark = pytest.mark.timeout(270)


@pytest.fixture
def labs(tmp_path):
    """Makes labs, which all end with the test."""
    made = []

    def make(name="lab", *arguments, **options):
        made.append(LabProcess(tmp_path / name, *arguments, **options))
        return made[-1]

    yield make
    for lab in made:
        lab.end()


def kubectl(lab, home):
    home.mkdir(exist_ok=True)
    return Kubectl(lab.kubeconfig, home)


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
    kubectl(lab, tmp_path / "home")("create cm a --as=jane")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    [made] = [one for one in records if one["verb"] == "create" and one["user"] == "jane"]
    assert (made["resource"], made["namespace"], made["code"]) == ("configmaps", "default", 201)


def test_a_controller_can_be_left_out(labs, tmp_path):
    lab = labs("lab", "--without=serviceaccount")
    lab.start()
    use = kubectl(lab, tmp_path / "home")
    assert "error looking up service account default/default" in use.fails("run p --image=web:1")


# -- what is refused ---------------------------------------------------------------------------------------------------


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
    assert said == f"lastcall: 127.0.0.1:{port}: cannot be listened on: Address already in use\n"
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


def test_data_that_another_lab_uses(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    lab.start()
    out, said, code = run("up", "--nodes=0", f"--kubeconfig={tmp_path / 'k'}", f"--data={tmp_path / 'data'}")
    assert (out, code) == ("", 1)
    assert said == f"lastcall: {tmp_path / 'data' / 'lab.db'} is in use by another lab\n"


# -- data that is kept -------------------------------------------------------------------------------------------------


def test_it_is_the_same_lab_again(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    lab.start()
    use = kubectl(lab, tmp_path / "home")
    config = lab.kubeconfig.read_text()
    use("create -f -", given=config_map("a", color="red"))
    token = use("create token default").strip()
    assert lab.stop() == 0
    assert not lab.kubeconfig.exists()
    lab.start()
    assert lab.kubeconfig.read_text() == config, "the same authority and token, and the port was free"
    assert use("get cm a -o jsonpath={.data.color}") == "red"
    assert "system:serviceaccount:default:default" in use("auth whoami --token", token)


def test_the_port_of_last_time_is_taken(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    lab.start()
    port = (tmp_path / "data/control-plane/port").read_text()
    assert lab.stop() == 0
    other = labs("other", f"--port={port}")
    other.start()
    lab.start()
    assert (tmp_path / "data/control-plane/port").read_text() != port
    assert kubectl(lab, tmp_path / "home")("get ns default -o name") == "namespace/default\n"


async def test_killed_while_kubectl_writes(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    await asyncio.to_thread(lab.start)
    use = kubectl(lab, tmp_path / "home")
    access = await asyncio.to_thread(kubeconfig.load, [lab.kubeconfig], SystemClock())
    http = Http(access.endpoint, access.credentials)
    seen = {}
    watching = asyncio.create_task(_watch(Client(http), seen))
    acknowledged = {}
    try:
        for life in range(3):
            writers = [
                asyncio.create_task(asyncio.to_thread(_write, use, f"w{life}-{n}", acknowledged)) for n in range(3)
            ]
            enough = len(acknowledged) + 6
            while len(acknowledged) < enough:
                await asyncio.sleep(0.01)
            lab.process.kill()
            await asyncio.to_thread(lab.process.wait)
            await asyncio.gather(*writers)
            await asyncio.to_thread(lab.start)
            there = {
                one["metadata"]["name"]: one for one in (await asyncio.to_thread(use.json, "get cm -l w"))["items"]
            }
            assert (
                acknowledged.items()
                <= {name: one["metadata"]["resourceVersion"] for name, one in there.items()}.items()
            )
            last = await asyncio.to_thread(use.json, "create cm", f"last-{life}")
            assert int(last["metadata"]["resourceVersion"]) > max(map(int, acknowledged.values())), "revisions go on"
        async with asyncio.timeout(60):
            while not (acknowledged.keys() | {"last-2"}) <= seen.keys():
                await asyncio.sleep(0.05)
    finally:
        await cancel(watching)
        http.close()


def _write(use, name, acknowledged):
    """Creates objects until the lab is gone; what kubectl has seen acknowledged is noted."""
    for number in range(200):
        made = config_map(f"{name}-{number}", labels={"w": "yes"})
        said = use.run("create -o json -f -", given=made)
        if said.code:
            return
        obj = json.loads(said.out)
        acknowledged[obj["metadata"]["name"]] = obj["metadata"]["resourceVersion"]


async def _watch(client, seen):
    """One watch over all lives of the lab."""
    watching = Watching(client, CONFIG_MAPS, clock=SystemClock(), random=Random(1), namespace="default")
    async for change in watching.changes():
        if change.new:
            seen[change.key.name] = change.new


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_what_only_some_labs_need_is_not_loaded_at_the_start():
    """gRPC and protobuf for containers and kubectl's bodies, D-Bus for a real logind: loading is what a start costs."""
    program = (
        "import sys, lastcall.lab.up; print(sorted({'grpc', 'google.protobuf', 'dbus_fast'} & sys.modules.keys()))"
    )
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
