"""The machine's watchdog: ``/dev/watchdog*`` of Linux (``Documentation/watchdog/watchdog-api.rst``).

The core of the kernel's drivers (``drivers/watchdog/watchdog_dev.c``) has these rules. Opening starts the device, and
one program at a time may have it open. SETTIMEOUT also pets it. Closing stops it only after a written ``V``, and never
if it is set to ``nowayout``. If closing does not stop it, the kernel pets it once more.
"""

import errno
import fcntl
import os
import struct
from typing import Protocol

from lastcall.errors import LastcallError, NotPermitted, Unavailable
from lastcall.model.watchdog import sysfs_name
from lastcall.ports.watchdog import WatchdogInfo

# linux/watchdog.h, for all architectures but mips, powerpc and sparc, which number ioctls differently.
GETSUPPORT = 0x80285700
KEEPALIVE = 0x80045705
SETTIMEOUT = 0xC0045706
GETTIMEOUT = 0x80045707
CAN_SETTIMEOUT = 0x0080
CAN_MAGICCLOSE = 0x0100
ONLY_ALARM = 0x0400
CAN_KEEPALIVE = 0x8000

SUPPORT = struct.Struct("=II32s")
"""struct watchdog_info: options, firmware_version, identity."""
NUMBER = struct.Struct("=i")

SYSFS = "/sys/class/watchdog"


class WatchdogCalls(Protocol):
    """The system calls on the device; all raise OSError."""

    def open(self, path: str) -> int:
        """Opens for writing; the descriptor is close-on-exec."""
        ...

    def ioctl(self, descriptor: int, request: int, argument: bytes) -> bytes:
        """Returns the argument as the kernel has changed it."""
        ...

    def write(self, descriptor: int, data: bytes) -> None:
        """Writes all of the data."""
        ...

    def close(self, descriptor: int) -> None:
        """Closes the descriptor, as the kernel does when the process dies."""
        ...

    def read(self, path: str) -> str:
        """Reads a small file of sysfs, without its trailing line end."""
        ...


class LinuxWatchdogCalls:
    """``WatchdogCalls`` on the real device."""

    def open(self, path: str) -> int:
        """``WatchdogCalls.open``."""
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def ioctl(self, descriptor: int, request: int, argument: bytes) -> bytes:
        """``WatchdogCalls.ioctl``."""
        return fcntl.ioctl(descriptor, request, argument)

    def write(self, descriptor: int, data: bytes) -> None:
        """``WatchdogCalls.write``."""
        os.write(descriptor, data)

    def close(self, descriptor: int) -> None:
        """``WatchdogCalls.close``."""
        os.close(descriptor)

    def read(self, path: str) -> str:
        """``WatchdogCalls.read``."""
        with open(path, encoding="ascii") as file:  # noqa: PTH123  (a path of sysfs as text)
            return file.read().strip()


class WatchdogDeviceFile:
    """``ports.watchdog.WatchdogDevice`` at ``path``. Only ``arm`` opens the device, because opening starts it."""

    def __init__(self, path: str, kernel: WatchdogCalls | None = None) -> None:
        self._path = path
        self._kernel = kernel or LinuxWatchdogCalls()
        self._descriptor: int | None = None
        self._options = 0
        self._nowayout = False

    @property
    def is_open(self) -> bool:
        """Whether this process holds the device open."""
        return self._descriptor is not None

    def arm(self, timeout: int) -> WatchdogInfo:
        """``ports.watchdog.WatchdogDevice.arm``."""
        try:
            self._descriptor = self._kernel.open(self._path)
        except OSError as error:
            raise _explain_error(error, self._path) from error
        self._options, identity = self._driver_support()
        self._nowayout = self._never_stops()
        real = self._set_timeout(timeout)
        return WatchdogInfo(
            identity=identity or self._path,
            timeout=real,
            survives_close=self._nowayout or bool(self._options & CAN_MAGICCLOSE),
            resets=not self._options & ONLY_ALARM,
        )

    def pet(self) -> None:
        """``ports.watchdog.WatchdogDevice.pet``."""
        assert self._descriptor is not None
        try:
            if self._options & CAN_KEEPALIVE:
                self._kernel.ioctl(self._descriptor, KEEPALIVE, NUMBER.pack(0))
            else:
                self._kernel.write(self._descriptor, b"\0")
        except OSError as error:
            raise _explain_error(error, self._path) from error

    def disarm(self) -> bool:
        """``ports.watchdog.WatchdogDevice.disarm``."""
        if self._descriptor is None:
            return True
        if self._nowayout:
            return False
        descriptor, self._descriptor = self._descriptor, None
        try:
            self._kernel.write(descriptor, b"V")
        except OSError as error:
            raise _explain_error(error, self._path) from error
        finally:
            self._kernel.close(descriptor)
        return True

    # -- within --------------------------------------------------------------------------------------------------------

    def _driver_support(self) -> tuple[int, str]:
        """Options and identity; a driver that reports none counts as supporting nothing."""
        try:
            raw = self._query_device(GETSUPPORT, bytes(SUPPORT.size))
        except OSError:
            return 0, ""
        options, _, identity = SUPPORT.unpack(raw)
        return options, identity.split(b"\0", 1)[0].decode("ascii", "replace")

    def _set_timeout(self, wanted: int) -> float:
        """Sets the timeout and returns the effective one: a driver may round it, refuse it, or not support changes."""
        if self._options & CAN_SETTIMEOUT:
            try:
                self._query_device(SETTIMEOUT, NUMBER.pack(wanted))
            except OSError:  # out of its range: the effective value is read below
                pass
        try:
            real = NUMBER.unpack(self._query_device(GETTIMEOUT, NUMBER.pack(0)))[0]
        except OSError:
            return float("inf")
        return float(real) if real > 0 else float("inf")

    def _query_device(self, request: int, argument: bytes) -> bytes:
        assert self._descriptor is not None
        return self._kernel.ioctl(self._descriptor, request, argument)

    def _never_stops(self) -> bool:
        try:
            return self._kernel.read(f"{SYSFS}/{sysfs_name(self._path)}/nowayout") == "1"
        except OSError:
            return False  # then the result of closing decides


def _explain_error(error: OSError, path: str) -> LastcallError:
    if error.errno in (errno.EACCES, errno.EPERM):
        return NotPermitted(f"{path}: {error.strerror}")
    if error.errno == errno.EBUSY:
        return Unavailable(f"{path}: another program holds it, as systemd does with RuntimeWatchdogSec=")
    return Unavailable(f"{path}: {error.strerror or error}")
