"""The same seed gives the same run, step by step: in another process, with other hashes, and on another Python.

``LASTCALL_OTHER_PYTHON`` names an interpreter that has lastcall's dependencies; without it those on PATH are tried.
"""

import os
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = "import httptools, msgspec, yaml"


def play(python, seed, hashes):
    """What the scenario tells: every step of the loop, every request, every piece of a watch."""
    path = os.pathsep.join(str(ROOT / one) for one in ("src", "tests"))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONHASHSEED": str(hashes)}
    command = [python, "-m", "support.repeatable", str(seed), "steps"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check_same(one, other):
    """The first difference says more than two long lists."""
    pairs = enumerate(zip_longest(one, other), 1)
    apart = next((f"line {number}\n{a}\n{b}" for number, (a, b) in pairs if a != b), None)
    assert apart is None, apart
    assert one[-1].startswith("trace ")


def other_python():
    """An interpreter of another version that could run it, or why there is none."""
    named = os.environ.get("LASTCALL_OTHER_PYTHON")
    found = [named] if named else [shutil.which(f"python3.{minor}") for minor in range(11, 16)]
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    probe = f"{NEEDED}; import sys; sys.exit({this!r} == '%d.%d' % sys.version_info[:2])"
    for python in filter(None, found):
        if subprocess.run([python, "-c", probe], capture_output=True, check=False, timeout=60).returncode == 0:
            return python, ""
    tried = ", ".join(filter(None, found)) or "none"
    return None, f"no other Python with lastcall's dependencies (tried: {tried}); LASTCALL_OTHER_PYTHON names one"


@pytest.mark.timeout(180)
def test_neither_the_process_nor_its_hashes_matter():
    one = play(sys.executable, 23, hashes=1)
    check_same(one, play(sys.executable, 23, hashes=2))
    requests = [line for line in one if " is answered " in line]
    assert len(requests) > 300
    assert len(one) > 5000


@pytest.mark.timeout(180)
def test_another_python_does_the_same():
    python, why = other_python()
    if not python:
        pytest.skip(why)
    check_same(play(sys.executable, 49, hashes=1), play(python, 49, hashes=2))


@pytest.mark.timeout(120)
def test_neither_do_earlier_runs_in_the_same_process():
    """Names with counters of the whole process would show here; another seed shows that the trace sees anything."""
    from support.repeatable import scenario

    from lastcall.lab import virtual

    first, again, other = (virtual.run(scenario(seed), steps=True)[0] for seed in (7, 7, 8))
    assert first == again
    assert first != other
