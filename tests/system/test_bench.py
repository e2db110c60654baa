"""The bench runs and its table comes out; no figure is judged here."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from lastcall.lab.private_logind import PrivateLogind

ROOT = Path(__file__).parents[2]


async def output(*command):
    """What it prints; told by SIGINT to clean up and end if it takes too long."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT, stdout=pipe, stderr=pipe)
    reading = asyncio.ensure_future(process.communicate())
    try:
        printed, told = await asyncio.wait_for(asyncio.shield(reading), 300)
    except TimeoutError:
        process.send_signal(signal.SIGINT)
        _, told = await reading
        raise AssertionError(f"not done after 300 s:\n{told.decode()}") from None
    assert process.returncode == 0, told.decode()
    return printed.decode()


@pytest.mark.timeout(360)
async def test_a_quick_run_over_processes_prints_the_table():
    if reason := await asyncio.to_thread(PrivateLogind.why_not):
        pytest.skip(reason)
    printed = await output("bench/run.py", "--quick", "processes")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines() if line[:1] == "|"]
    head, rows = lines[0], {(row[0], row[1]): dict(zip(lines[0], row, strict=True)) for row in lines[2:]}
    assert head == ["what", "pods", "lastcall", "floor", "over the floor", "at most", "verdict", "a kubelet"]
    first = rows["processes: first SIGTERM", "3"]
    assert all(first[column].endswith("ms") for column in head[2:6])
    assert first["verdict"] in ("met", "MISSED")
    assert rows["processes: last pod gone to StartUnit", "3"]["at most"] == "10.0 ms"
    assert rows["processes: 10 + 3 pods, StartUnit", "13"]["a kubelet"] == "780 to 890 ms"
    assert printed.splitlines()[-1].endswith("of 2 targets met.")


async def test_an_unknown_part_is_refused():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "bench/run.py", "disk", cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    _, told = await process.communicate()
    assert process.returncode == 2
    assert b"no such part: disk" in told
