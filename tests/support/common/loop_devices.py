"""Tests of block devices use the machine's loop devices, which are shared."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., object])

_EXIST = pytest.mark.skipif(
    not Path("/dev/loop-control").exists(), reason="block devices of the tests are loop devices"
)
# ``losetup --find`` opens the device that another test detaches; the kernel then keeps it until it is closed.
_ALONE = pytest.mark.xdist_group("loop-devices")


def uses_loop_devices(test: Test) -> Test:
    """Marks a test that attaches or detaches loop devices: no two of them run at the same time."""
    return _ALONE(_EXIST(test))
