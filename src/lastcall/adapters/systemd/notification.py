"""A service's notifications to systemd (sd_notify(3)): datagrams to the socket in $NOTIFY_SOCKET."""

import array
import asyncio
import os
import socket
from collections.abc import Mapping, Sequence

from lastcall.aio import timeout
from lastcall.errors import Unavailable
from lastcall.model.foreign_text import plain_text

_ENOUGH_SECONDS = 5.0
"""Seconds to wait: systemd answers at once, but PID 1 may be busy."""


def send_notification(message: str, fds: Sequence[int] = (), *, environ: Mapping[str, str] = os.environ) -> bool:
    """Sends a message with descriptors; False without a listener (no service, or a full queue). Never blocks.

    ``message`` has one assignment on each line, such as ``READY=1``.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    attachments = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        try:
            sender.sendmsg([message.encode()], attachments, 0, address)
        except OSError:
            return False
    return True


def notify_ready(status: str = "") -> bool:
    """The service has started, or has read its configuration again."""
    return send_notification(f"READY=1\nSTATUS={plain_text(status)}" if status else "READY=1")


def notify_status(text: str) -> bool:
    """What ``systemctl status`` shows."""
    return send_notification(f"STATUS={plain_text(text)}")


def notify_stopping() -> bool:
    """The service is about to end."""
    return send_notification("STOPPING=1")


def notify_reloading(monotonic_usec: int) -> bool:
    """Reports that the configuration is being read again; ``notify_ready`` must follow.

    The time is CLOCK_MONOTONIC in microseconds. Type=notify-reload demands it (systemd 253 and later).
    """
    return send_notification(f"RELOADING=1\nMONOTONIC_USEC={monotonic_usec}")


def notify_watchdog() -> bool:
    """Reports that the service lives; due at least every ``watchdog_seconds``."""
    return send_notification("WATCHDOG=1")


def watchdog_seconds(environ: Mapping[str, str] = os.environ) -> float | None:
    """Seconds of silence after which systemd counts this process as hung; None if it does not watch it."""
    microseconds, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(os.getpid()))
    if not microseconds.isdecimal() or pid != str(os.getpid()):
        return None
    return int(microseconds) / 1_000_000


async def wait_for_systemd(environ: Mapping[str, str] = os.environ) -> None:
    """Waits until systemd has processed all earlier messages. Raises Unavailable if it does not answer in time."""
    loop = asyncio.get_running_loop()
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    done = asyncio.Event()
    try:
        delivered = send_notification("BARRIER=1", [writer], environ=environ)
        os.close(writer)
        if not delivered:
            raise Unavailable("systemd cannot be notified: no process listens at $NOTIFY_SOCKET")
        loop.add_reader(reader, done.set)
        async with timeout(_ENOUGH_SECONDS):
            await done.wait()
    except TimeoutError:
        raise Unavailable(f"systemd does not answer at $NOTIFY_SOCKET within {_ENOUGH_SECONDS:g} s") from None
    finally:
        loop.remove_reader(reader)
        os.close(reader)
