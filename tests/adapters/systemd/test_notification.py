"""What systemd is told, word for word, on a real datagram socket."""

import os
import socket

import pytest

from lastcall.adapters.systemd import notification
from lastcall.errors import Unavailable


@pytest.fixture(params=["path", "abstract"])
def systemd(request, tmp_path, monkeypatch):
    name = f"@lastcall-notify-{os.getpid()}" if request.param == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(name.replace("@", "\0"))
        server.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        yield server


@pytest.mark.parametrize(
    ("tell", "said"),
    [
        (notification.notify_ready, "READY=1"),
        (lambda: notification.notify_ready("armed\nwith 30 s"), "READY=1\nSTATUS=armed with 30 s"),
        (lambda: notification.notify_status("armed\nREADY=1"), "STATUS=armed READY=1"),
        (notification.notify_stopping, "STOPPING=1"),
        (lambda: notification.notify_reloading(123), "RELOADING=1\nMONOTONIC_USEC=123"),
        (notification.notify_watchdog, "WATCHDOG=1"),
    ],
)
def test_each_message(systemd, tell, said):
    assert tell()
    assert systemd.recv(1000).decode() == said


def test_descriptors_come_along(systemd):
    reader, writer = os.pipe()
    assert notification.send_notification("FDSTORE=1", [writer])
    data, [copy], _, _ = socket.recv_fds(systemd, 100, 4)
    assert data == b"FDSTORE=1"
    os.close(writer)
    os.write(copy, b"x")
    assert os.read(reader, 1) == b"x"
    os.close(copy)
    os.close(reader)


@pytest.mark.parametrize("address", [None, "", "nonsense", "/nonexistent/notify"])
def test_nobody_listens(monkeypatch, address):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert not notification.notify_ready()


def test_a_full_queue_does_not_block(systemd):
    for _ in range(10_000):
        if not notification.notify_watchdog():
            break
    else:
        pytest.fail("the queue of a socket that nobody reads never fills up")


async def test_a_barrier_needs_an_answer(systemd, monkeypatch):
    monkeypatch.setattr(notification, "_ENOUGH_SECONDS", 0.2)
    with pytest.raises(Unavailable, match="does not answer at"):
        await notification.wait_for_systemd()
    monkeypatch.delenv("NOTIFY_SOCKET")
    with pytest.raises(Unavailable, match="no process listens"):
        await notification.wait_for_systemd()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog(environ, seconds):
    assert notification.watchdog_seconds(environ) == seconds
