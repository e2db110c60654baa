"""``lastcall`` where its output goes to a full disk, nobody reads on, or not all of it is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

LASTCALL = [sys.executable, "-m", "lastcall"]


@pytest.mark.parametrize("arguments", [["manifests", "controller"], ["simulate", "--list"], ["--help"]])
def test_a_full_disk_is_told_in_a_sentence(arguments):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*LASTCALL, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=90
        )
    assert (done.returncode, done.stderr) == (1, "lastcall: No space left on device\n")


def test_who_reads_no_further_ends_it_quietly():
    line = f"{sys.executable} -m lastcall manifests controller | head -n 1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=90)
    assert (done.stdout, done.stderr) == ("---\n", "")


def test_a_directory_is_no_configuration(tmp_path):
    done = subprocess.run(
        [*LASTCALL, "doctor", "--config", str(tmp_path)], capture_output=True, text=True, check=False, timeout=90
    )
    assert (done.returncode, done.stderr) == (2, f"lastcall: --config: {tmp_path}: Is a directory\n")


@pytest.mark.parametrize(
    ("module", "verb"),
    [
        ("cryptography", ["lab", "up", "--nodes=0"]),
        ("cryptography", ["demo"]),
        ("sushy", ["demo"]),
        ("sushy", ["lab", "up", "--nodes=0", "--failover"]),
        ("cel", ["simulate", "power-cut-fenced"]),
    ],
)
def test_without_the_extra_it_is_named(module, verb, tmp_path):
    program = f"import sys; sys.modules[{module!r}] = None; from lastcall.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *verb],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"lastcall: the Python package {module} is missing: install lastcall with its extra lab, "
        "by pip install 'lastcall[lab]', or '.[lab]' in a checkout\n"
    )
