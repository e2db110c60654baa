"""The same program on the same seed elsewhere: in another process, with other hashes, and on another Python.

``LASTCALL_OTHER_PYTHON`` names an interpreter that has lastcall's dependencies; without it those on PATH are tried.
"""

import os
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[3]
NEEDED = "import httptools, msgspec, yaml"


def told_by(python, module, *arguments, hashes):
    """The lines that ``python -m MODULE`` prints, with that PYTHONHASHSEED."""
    path = os.pathsep.join(str(ROOT / one) for one in ("src", "tests"))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONHASHSEED": str(hashes)}
    command = [python, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)
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
