"""A fake watchdog: the kernel's behavior for ``/dev/watchdog0``, with a reset that is a function call."""

import asyncio
import contextvars
import errno
import os
from collections.abc import Callable

from lastcall.adapters.host.watchdog_device import (
    CAN_KEEPALIVE,
    CAN_MAGICCLOSE,
    CAN_SETTIMEOUT,
    GETSUPPORT,
    GETTIMEOUT,
    KEEPALIVE,
    NUMBER,
    SETTIMEOUT,
    SUPPORT,
    SYSFS,
)
from lastcall.model.watchdog import sysfs_name

USUAL = CAN_SETTIMEOUT | CAN_MAGICCLOSE | CAN_KEEPALIVE


class FakeWatchdog:
    """``watchdog_device.WatchdogCalls`` with one device, on the running loop's time.

    ``options`` are the driver's capabilities. ``rounded`` is the driver's result for a requested timeout (0: it refuses
    it). ``late``: each pet reaches the device so many seconds later, as if the program were suspended just before.
    ``reset`` is called when the device fires, once until it is started again.
    """

    def __init__(
        self,
        reset: Callable[[], object],
        *,
        path: str = "/dev/watchdog0",
        options: int = USUAL,
        nowayout: bool = False,
        timeout: int = 60,
        rounded: Callable[[int], int] = lambda seconds: seconds,
        identity: str = "fake",
    ) -> None:
        self._reset = reset
        self._path = path
        self._options = options
        self._nowayout = nowayout
        self._timeout = timeout
        self._rounded = rounded
        self._identity = identity
        self._descriptor: int | None = None
        self._numbers = 3
        self._may_stop = False
        self._context = contextvars.copy_context()  # the device survives every process
        self._timer: asyncio.TimerHandle | None = None
        self.late = 0.0
        self.pets = 0

    @property
    def running(self) -> bool:
        """Whether it will fire."""
        return self._timer is not None

    @property
    def is_open(self) -> bool:
        """Whether a program has it open."""
        return self._descriptor is not None

    def kill_holder(self) -> None:
        """The program that has it open has died: the kernel closes the device."""
        if self._descriptor is not None:
            self.close(self._descriptor)

    def cut_power(self) -> None:
        """The machine loses power, or boots: the device stops."""
        self._stop_timer()
        self._descriptor = None

    # -- what the kernel does ------------------------------------------------------------------------------------------

    def open(self, path: str) -> int:
        """Starts it; opening a running device does not pet it."""
        if path != self._path:
            raise _os_error(errno.ENOENT)
        if self._descriptor is not None:
            raise _os_error(errno.EBUSY)
        self._numbers += 1
        self._descriptor = self._numbers
        self._may_stop = False
        if not self.running:
            self._start_timer()
        return self._descriptor

    def ioctl(self, descriptor: int, request: int, argument: bytes) -> bytes:
        """The requests that the adapter uses."""
        self._ensure_open(descriptor)
        if request == GETSUPPORT:
            return SUPPORT.pack(self._options, 0, self._identity.encode())
        if request == KEEPALIVE and self._options & CAN_KEEPALIVE:
            self._pet_timer()
            return argument
        if request == SETTIMEOUT and self._options & CAN_SETTIMEOUT:
            return self._set_timeout(NUMBER.unpack(argument)[0])
        if request == GETTIMEOUT and self._timeout:
            return NUMBER.pack(self._timeout)
        raise _os_error(errno.EOPNOTSUPP)

    def write(self, descriptor: int, data: bytes) -> None:
        """Pets it; the magic character counts if it is in the last write before closing."""
        self._ensure_open(descriptor)
        self._may_stop = b"V" in data
        self._pet_timer()

    def close(self, descriptor: int) -> None:
        """Stops it if allowed; otherwise pets it once more."""
        self._ensure_open(descriptor)
        self._descriptor = None
        if (self._may_stop or not self._options & CAN_MAGICCLOSE) and not self._nowayout:
            self._stop_timer()
        else:
            self._pet_timer()

    def read(self, path: str) -> str:
        """The device's ``nowayout``."""
        if path != f"{SYSFS}/{sysfs_name(self._path)}/nowayout":
            raise _os_error(errno.ENOENT)
        return "1" if self._nowayout else "0"

    # -- the device ----------------------------------------------------------------------------------------------------

    def _set_timeout(self, seconds: int) -> bytes:
        real = self._rounded(seconds)
        if not real:
            raise _os_error(errno.EINVAL)
        self._timeout = real
        self._pet_timer()
        return NUMBER.pack(real)

    def _pet_timer(self) -> None:
        self.pets += 1
        if not self.running:
            return
        if self.late and self.is_open:
            asyncio.get_running_loop().call_later(self.late, self._restart_timer, context=self._context)
        else:
            self._start_timer()

    def _restart_timer(self) -> None:
        if self.running:
            self._start_timer()

    def _start_timer(self) -> None:
        self._stop_timer()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(loop.time() + self._timeout, self._fire_reset, context=self._context)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _fire_reset(self) -> None:
        self._timer = None
        self._reset()

    def _ensure_open(self, descriptor: int) -> None:
        if descriptor != self._descriptor:
            raise _os_error(errno.EBADF)


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
