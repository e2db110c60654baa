"""``lastcall`` where its output goes to a full disk, or nobody reads on."""

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
