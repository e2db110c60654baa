"""The bench runs and its table comes out; no figure is judged here."""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from support.host import service_manager
from support.runtimes import containerd_world

from lastcall_lab.private_logind import PrivateLogind

ROOT = Path(__file__).parents[2]


PROGRAMS = {"ETCD": "etcd", "KUBE_APISERVER": "kube-apiserver", "KUBE_CONTROLLER_MANAGER": "kube-controller-manager"}
"""Of a real control plane: the variables by which the bench finds them, and their names in PATH."""


async def output(*command, seconds=300, **variables):
    """What it prints; told by SIGINT to clean up and end if it takes too long."""
    pipe, environment = asyncio.subprocess.PIPE, {**os.environ, **variables}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, cwd=ROOT, stdout=pipe, stderr=pipe, env=environment
    )
    reading = asyncio.ensure_future(process.communicate())
    try:
        printed, told = await asyncio.wait_for(asyncio.shield(reading), seconds)
    except TimeoutError:
        process.send_signal(signal.SIGINT)
        _, told = await reading
        raise AssertionError(f"not done after {seconds} s:\n{told.decode()}") from None
    assert process.returncode == 0, told.decode()
    return printed.decode()


def table(printed):
    """Its head, and its rows by their first two cells; each is a dict by the head."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line[:1] == "|"]
    return lines[0], {(row[0], row[1]): dict(zip(lines[0], row, strict=True)) for row in lines[2:]}


@pytest.mark.timeout(360)
async def test_a_quick_run_over_processes_prints_the_table():
    if reason := await asyncio.to_thread(PrivateLogind.why_not):
        pytest.skip(reason)
    printed = await output("bench/run.py", "--quick", "processes")
    head, rows = table(printed)
    assert head == ["what", "pods", "lastcall", "floor", "over the floor", "at most", "verdict", "a kubelet"]
    first = rows["processes: first SIGTERM", "3"]
    assert all(first[column].endswith("ms") for column in head[2:6])
    assert first["verdict"] in ("met", "MISSED")
    assert rows["processes: last pod gone to StartUnit", "3"]["at most"] == "10.0 ms"
    assert rows["processes: 10 + 3 pods, StartUnit", "13"]["a kubelet"] == "780 to 890 ms"
    assert printed.splitlines()[-1].endswith("of 2 targets met.")


@pytest.mark.timeout(360)
@pytest.mark.xdist_group("containerd-bench")
async def test_a_quick_run_beside_a_kubelet_needs_no_kubelet(tmp_path):
    if reason := await asyncio.to_thread(lambda: containerd_world.why_not() or service_manager.why_not()):
        pytest.skip(reason)
    missing, etcd = tmp_path / "kubelet", shutil.which("true")
    files = Path(tempfile.mkdtemp(prefix="lc-", dir="/tmp"))  # short: a unix socket's path has 107 bytes
    printed = await output(
        "bench/run.py", "--quick", "beside", TMPDIR=str(files), ETCD=etcd, KUBE_APISERVER=etcd, KUBELET=str(missing)
    )
    _, rows = table(printed)
    rows = {what.removeprefix("beside a kubelet: "): row for (what, _), row in rows.items()}
    assert rows["RSS of the agent, pods watched"]["at most"] == "60 MiB"
    assert rows["2 + 1 pods, first SIGTERM"]["at most"] == "30.0 ms"
    assert rows["2 + 1 pods, lock released"]["verdict"] in ("met", "MISSED")
    assert float(rows["API requests for each pod of a shutdown"]["lastcall"].split()[0]) >= 3
    assert rows["last SIGTERM"]["over the floor"].endswith("%")
    assert f"Not measured: beside a real kubelet: KUBELET={missing} is no program." in printed.splitlines()
    files.rmdir()  # nothing is left in it


HEAD = ["what", "by", "lastcall", "bare calls", "kube-controller-manager"]
HEAD += ["kube-controller-manager, 500 requests a second", "target", "verdict"]


@pytest.mark.timeout(660)
async def test_a_failover_without_a_real_control_plane_says_why(tmp_path):
    missing = tmp_path / "kube-apiserver"
    etcd = shutil.which("true")
    printed = await output("bench/run.py", "--quick", "failover", seconds=600, ETCD=etcd, KUBE_APISERVER=str(missing))
    head, rows = table(printed)
    assert head == HEAD
    assert {by for _, by in rows} == {"lab", "fleet"}
    for what in ("50 pods of 5 nodes gone", "50 terminating pods of 5 nodes gone", "100 pods of 10 of 50 nodes gone"):
        row = rows[what, "lab"]
        assert [bool(row[one]) for one in HEAD[2:6]] == [True, True, False, False]
    why = f"failover at kube-apiserver, and by kube-controller-manager: KUBE_APISERVER={missing} is no program"
    assert f"Not measured: {why}." in printed.splitlines()


@pytest.mark.timeout(960)
async def test_a_failover_at_a_real_control_plane_has_all_four_in_one_table(tmp_path):
    programs = {variable: os.environ.get(variable) or name for variable, name in PROGRAMS.items()}
    if absent := sorted(variable for variable, program in programs.items() if not shutil.which(program)):
        pytest.skip(f"no real control plane: {', '.join(absent)} must name the program, or PATH must have it")
    printed = await output("bench/run.py", "--quick", "failover", seconds=900, TMPDIR=str(tmp_path))
    head, rows = table(printed)
    assert head == HEAD
    assert "Not measured" not in printed
    real = {what: row for (what, by), row in rows.items() if by.startswith("kube-apiserver 1.")}
    gone = real["50 pods of 5 nodes gone"]
    assert all(gone[who].endswith(" s") for who in HEAD[2:6])
    assert all(real["their 5 attachments gone"][who] for who in HEAD[2:4])
    assert real["answers 429"]["verdict"]
    assert real["100 pods of 10 of 50 nodes gone"]["lastcall"]
    assert ("50 pods of 5 nodes gone", "lab") in rows
    assert list(tmp_path.iterdir()) == []


GUARD_HEAD = ["what", "by", "guard", "Go net/http", "the load", "target", "verdict"]


@pytest.mark.timeout(360)
async def test_a_guard_without_go_says_why(tmp_path):
    missing, files = tmp_path / "go", tmp_path / "files"
    files.mkdir()
    printed = await output("bench/run.py", "--quick", "guard", TMPDIR=str(files), GO=str(missing))
    head, rows = table(printed)
    assert head == GUARD_HEAD
    held = rows["a held pod: answered", "20/s"]
    assert (held["guard"].split()[1], held["Go net/http"], held["target"]) == ("/s", "", "at least 19.8 /s")
    assert "unanswered" not in held["the load"]
    for what in ("a pod with a bypass", "a pod that no policy guards"):
        assert rows[f"{what}, live: p99", "10/s"]["guard"].endswith("ms")
    assert rows["RSS after all", ""]["target"] == "at most 60 MiB"
    assert f"Not measured: guard beside Go: GO={missing} is no program." in printed.splitlines()
    assert list(files.iterdir()) == []


@pytest.mark.timeout(360)
async def test_a_guard_beside_go_has_both_in_one_table(tmp_path):
    if not shutil.which(os.environ.get("GO") or "go"):
        pytest.skip("no Go toolchain: GO must name the program, or PATH must have it")
    head, rows = table(await output("bench/run.py", "--quick", "guard", XDG_CACHE_HOME=str(tmp_path)))
    assert head == GUARD_HEAD
    assert rows["a held pod: CPU of a review", "20/s"]["Go net/http"].endswith("us")
    assert rows["a held pod: CPU, of Go's", "20/s"]["target"] == "at most 100 %"
    assert rows["RSS after the held pod's", ""]["Go net/http"].endswith("MiB")


@pytest.mark.timeout(360)
async def test_a_roll_that_is_held_at_a_real_control_plane_goes_on(tmp_path):
    programs = {variable: os.environ.get(variable) or name for variable, name in PROGRAMS.items()}
    if absent := sorted(variable for variable, program in programs.items() if not shutil.which(program)):
        pytest.skip(f"no real control plane: {', '.join(absent)} must name the program, or PATH must have it")
    printed = await output("bench/run.py", "--quick", "guard-backoff", TMPDIR=str(tmp_path))
    assert "the pod is deleted after its application is ready" in printed
    assert "Not measured" not in printed
    assert list(tmp_path.iterdir()) == []


async def test_an_unknown_part_is_refused():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "bench/run.py", "disk", cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    _, told = await process.communicate()
    assert process.returncode == 2
    assert b"no such part: disk" in told


@pytest.mark.timeout(360)
async def test_the_table_beside_a_kubelet_needs_its_programs(tmp_path):
    missing = dict.fromkeys([*PROGRAMS, "KUBE_SCHEDULER", "KUBELET"], str(tmp_path / "missing"))
    printed = await output("bench/run.py", "--quick", "beside-table", **missing)
    assert "Not measured: beside-table: " in printed
