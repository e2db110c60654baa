"""`lastcall demo`, as a newcomer runs it."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from support.runtimes import containerd_world

from lastcall_lab.private_logind import PrivateLogind

pytestmark = pytest.mark.timeout(400)


async def begin(tmp_path, *arguments):
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lastcall", "demo", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=_hears_hangup,
    )


def _hears_hangup():
    """Who runs the tests by nohup has them ignore it, and all that they start."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


async def demo(tmp_path, *arguments):
    process = await begin(tmp_path, *arguments)
    output, _ = await asyncio.wait_for(process.communicate(), 380)
    assert process.returncode == 0, output.decode()
    return output.decode()


def check(output, tmp_path):
    assert "12 pods run on demo-node" in output
    order = ["shop/mailer has ended", "phase 1 is over", "shop/database has ended", "phase 2 is over"]
    order += ["kube-system/log-shipper has ended", "phase 3 is over", "the lock is released"]
    places = [output.index(words) for words in order]
    assert places == sorted(places)
    for pod, outcome in (
        ("shop/queue-worker", "Graceful"),
        ("shop/database", "Graceful"),
        ("legacy/stubborn", "Killed"),
        ("shop/search", "Killed"),
        ("kube-system/log-shipper", "Graceful"),
    ):
        assert f"{pod} has ended: {outcome}" in output
    assert re.search(r"Pods +1[12]: .*\d of them cut short", output), output
    page = Path(re.findall(r"open it in a browser:\n  file://(\S+)", output)[0])
    assert tmp_path in page.parents
    text = page.read_text()
    assert "<svg" in text
    assert "shop/database" in text


def second_act(output):
    """A plug is pulled; the database runs elsewhere, and the storage has seen nothing that it should not."""
    pulled = re.findall(r"the plug of (lab-[13]) is pulled", output)[0]
    order = [f"FailoverBegun {pulled}", f"FenceOff {pulled}", f"NodeDead {pulled}", "RemovedByForce database-0"]
    places = [output.index(words) for words in order]
    assert places == sorted(places)
    where = re.findall(r"database-0 runs on (lab-\d), with its volume", output)[0]
    assert where != pulled
    assert re.search(r"rows that were written before: [1-9]\d*, none of them lost", output)
    assert "moments at which two nodes could write one volume: 0\n" in output


def third_act(output):
    """A leader that goes at once costs acknowledged orders; with the guard its eviction waits, and costs none."""
    assert re.search(r"without a guard: [1-9]\d* of \d+ acknowledged orders are lost\n", output)
    assert re.search(r"denied the request: pod orders/orders-\d is held by GuardPolicy orders", output)
    assert re.search(r"with the guard: none of [1-9]\d* acknowledged orders are lost\n", output)


async def test_a_shop_on_three_nodes(tmp_path):
    """As ``make demo`` shows it: what runs on the node that goes down ends in order, and comes up elsewhere."""
    output = await demo(tmp_path)
    assert "pods run on three nodes" in output
    order = ["phase 1 begins", "the lock is released", "lab-2 is off", "everything runs again", "requests answered"]
    places = [output.index(words) for words in order]
    assert places == sorted(places)
    assert len(re.findall(r"^ +database-[01] +runs on lab-[13]$", output, re.MULTILINE)) == 2
    assert len(re.findall(r"^ +web-\w+-\w+ +runs on lab-[13]$", output, re.MULTILINE)) == 4
    assert "node lab-2: Ready=False, node is shutting down" in output
    good, lost = re.findall(r"requests answered: (\d+), lost: (none|\d+)", output)[0]
    assert int(good) > 200
    assert lost == "none" or int(lost) < int(good) / 10
    page = Path(re.findall(r"open it in a browser:\n  file://(\S+)", output)[0])
    second_act(output)
    third_act(output)
    text = page.read_text()
    assert "<svg" in text
    assert re.search(r"<h2>Failover of lab-[13], whose plug was pulled</h2>", text)
    words = ["FailoverBegun", "FenceOff", "NodeDead", "RemovedByForce", "with its volume", "two nodes could write"]
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [page], "nothing else stays"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_who_ends_it_early_is_left_nothing(tmp_path, number):
    process = await begin(tmp_path)
    while b"pods run on three nodes" not in (line := await asyncio.wait_for(process.stdout.readline(), 200)):
        assert line, "it has ended by itself"
    assert running(tmp_path)
    process.send_signal(number)
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 1
    assert output.endswith(b"Aborted!\n")
    assert not list(tmp_path.iterdir())
    assert not running(tmp_path)


def running(directory):
    """The command lines of the pods whose files are there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return [line for line in found if str(directory).encode() in line]


@pytest.mark.xdist_group("containerd-lab-up")
async def test_with_real_containers_and_the_real_logind(tmp_path):
    if reason := containerd_world.why_not() or await asyncio.to_thread(PrivateLogind.why_not):
        pytest.skip(reason)
    check(await demo(tmp_path, "--runtime", "containerd", "--logind", "private"), tmp_path)
