"""The signals that end a program of the lab."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, weakref
from lastcall_lab.up.signals import exit_at_signals

class Module:
    pass

exit_at_signals()
module = Module()
lock = weakref.ref(module, lambda _: os.kill(os.getpid(), int(sys.argv[1])))
del module
sys.exit(3)
"""


@pytest.mark.parametrize("number", [1, 2, 15])
def test_a_signal_within_the_callback_of_a_weak_reference_is_not_lost(number):
    """The end of each import has such a callback, in which Python ignores exceptions."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(number)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
