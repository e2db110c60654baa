"""What only a real bus shows: strangers' signals, descriptors, rights, and the words for what is missing."""

import asyncio
import fcntl
import os
import select
import shutil
import stat
import subprocess
import sys
import time

import pytest
from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from support.host.logind import eventually, private_logind  # noqa: F401  (a fixture)

from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.systemd import bus
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.errors import NotPermitted, Unavailable
from lastcall.ports.node import LogindChange
from lastcall.ports.units import UnitState
from lastcall_lab.private_logind import PrivateLogind, SystemdResponse

MANAGER = "org.freedesktop.login1.Manager"


def signal_to(destination, member="PrepareForShutdown", signature="b", body=(True,)):
    return Message(
        destination=destination,
        path="/org/freedesktop/login1",
        interface=MANAGER,
        member=member,
        message_type=MessageType.SIGNAL,
        signature=signature,
        body=list(body),
    )


async def test_a_strangers_signal_is_not_heard(private_logind):  # noqa: F811
    session = await SystemLogind(private_logind.address).open()
    stranger = await MessageBus(bus_address=private_logind.address).connect()
    ours = session._bus._connection.unique_name
    await stranger.send(signal_to(None))
    await stranger.send(signal_to(ours))
    owner_changed = signal_to(ours, "NameOwnerChanged", "sss", ["org.freedesktop.login1", ":1.1", stranger.unique_name])
    await stranger.send(owner_changed)
    await stranger.send(signal_to(ours))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.next_change(), 0.3)
    await private_logind.power_off()
    assert await asyncio.wait_for(session.next_change(), 60) is LogindChange.PREPARING
    stranger.disconnect()
    await stranger.wait_for_disconnect()
    session.close()


async def test_a_new_owner_is_heard_and_the_old_one_no_more(private_logind):  # noqa: F811
    session = await SystemLogind(private_logind.address).open()
    await asyncio.to_thread(private_logind.stop_logind)
    impostor = await MessageBus(bus_address=private_logind.address).connect()
    await impostor.request_name("org.freedesktop.login1")  # as the next logind would; this bus lets everybody
    assert await asyncio.wait_for(session.next_change(), 60) is LogindChange.RESTARTED
    await impostor.send(signal_to(None))
    assert await asyncio.wait_for(session.next_change(), 60) is LogindChange.PREPARING
    await impostor.release_name("org.freedesktop.login1")
    await impostor.send(signal_to(session._bus._connection.unique_name))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.next_change(), 0.3)
    impostor.disconnect()
    await impostor.wait_for_disconnect()
    session.close()


@pytest.mark.parametrize(("signature", "body"), [("", ()), ("s", ("true",)), ("bb", (True, True))])
async def test_a_signal_of_another_shape_is_passed_over(private_logind, signature, body):  # noqa: F811
    session = await SystemLogind(private_logind.address).open()
    await asyncio.to_thread(private_logind.stop_logind)
    impostor = await MessageBus(bus_address=private_logind.address).connect()
    await impostor.request_name("org.freedesktop.login1")
    assert await asyncio.wait_for(session.next_change(), 60) is LogindChange.RESTARTED
    await impostor.send(signal_to(None, signature=signature, body=body))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.next_change(), 0.3)
    impostor.disconnect()
    await impostor.wait_for_disconnect()
    session.close()


async def test_a_lock_is_a_fifo_that_no_child_inherits(private_logind):  # noqa: F811
    session = await SystemLogind(private_logind.address).open()
    lock = await session.take_lock("because")
    assert stat.S_ISFIFO(os.fstat(lock).st_mode)
    assert fcntl.fcntl(lock, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    os.close(lock)
    session.close()


async def test_a_lock_that_comes_too_late_is_closed(private_logind, monkeypatch):  # noqa: F811
    session = await SystemLogind(private_logind.address).open()
    watcher = await SystemLogind(private_logind.address).open()
    monkeypatch.setattr(bus, "ANSWER_SECONDS", 0.2)
    has_come = asyncio.Event()
    session._bus._connection.add_message_handler(lambda message: has_come.set() if message.unix_fds else None)
    pid = await asyncio.to_thread(lambda: private_logind.logind_pid)
    os.kill(pid, 19)
    try:
        with pytest.raises(Unavailable, match="does not answer Inhibit within"):
            await session.take_lock("because")
    finally:
        os.kill(pid, 18)
    monkeypatch.undo()
    await asyncio.wait_for(has_come.wait(), 60)
    assert await eventually(watcher.list_inhibitors, []) == []
    session.close()
    watcher.close()


async def test_a_logind_that_hangs_is_unavailable(private_logind, monkeypatch):  # noqa: F811
    session = await SystemLogind(private_logind.address).open()
    monkeypatch.setattr(bus, "ANSWER_SECONDS", 0.2)
    pid = await asyncio.to_thread(lambda: private_logind.logind_pid)
    os.kill(pid, 19)
    try:
        with pytest.raises(Unavailable, match="org.freedesktop.login1 does not answer Get within 0.2 s"):
            await session.is_preparing()
        with pytest.raises(Unavailable, match="does not answer"):
            await SystemLogind(private_logind.address).open()
    finally:
        os.kill(pid, 18)
    session.close()


async def test_an_answer_that_came_while_this_process_stood_still_counts(private_logind, monkeypatch):  # noqa: F811
    session = await SystemLogind(private_logind.address).open()
    monkeypatch.setattr(bus, "ANSWER_SECONDS", 1.0)
    pid = await asyncio.to_thread(lambda: private_logind.logind_pid)
    os.kill(pid, 19)
    try:
        asked = asyncio.create_task(session.take_lock("because"))
        for _ in range(10):
            await asyncio.sleep(0)  # it asks; what is answered from now on, it does not hear
    finally:
        os.kill(pid, 18)
    assert select.select([session._bus._connection._sock], [], [], 60)[0], "the answer is in the socket"
    time.sleep(1.1)
    os.close(await asked)
    session.close()


async def test_an_answer_that_is_read_just_after_the_limit_was_noticed_counts():
    """As where this process stood still between its look at the sockets and its look at the clock."""
    loop = asyncio.get_running_loop()
    said = loop.create_future()

    async def call():
        return await said

    asked = asyncio.create_task(bus._await_reply(call(), 1.0))
    for _ in range(3):
        await asyncio.sleep(0)
    time.sleep(1.1)
    loop.call_later(0, said.set_result, "here")
    assert await asked == "here"


def in_a_child_as(uid, verb):
    """Runs the coroutine function in a forked child with this uid; the class name of what it raised, or "nothing"."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(uid, uid, uid)
            asyncio.run(verb())
            said = "nothing"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as file:
        return file.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_others_than_root_may_not(private_logind):  # noqa: F811
    async def take():
        session = await SystemLogind(private_logind.address).open()
        await session.take_lock("because")

    said = in_a_child_as(65534, take)
    assert said.startswith(NotPermitted.__name__)
    assert "refuses Inhibit" in said


async def test_what_is_missing_is_said(tmp_path):
    for address, said in {
        f"unix:path={tmp_path}/none": "there is no message bus at",
        "unix:path=/" + "x" * 200: "no connection to the message bus",
        "nonsense": "no connection to the message bus at nonsense",
    }.items():
        with pytest.raises(Unavailable, match=said):
            await SystemLogind(address).open()


async def test_a_host_without_systemd_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("DBUS_SYSTEM_BUS_ADDRESS", raising=False)
    monkeypatch.setattr(bus, "DEFAULT_ADDRESS", f"unix:path={tmp_path}/none")
    monkeypatch.setattr(bus, "BOOTED", tmp_path / "run-systemd-system")
    with pytest.raises(Unavailable, match="systemd does not run on this host"):
        await SystemLogind().open()


async def test_the_bus_of_the_environment_is_taken(private_logind, monkeypatch):  # noqa: F811
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", private_logind.address)
    session = await SystemLogind().open()
    assert await session.is_preparing() is False
    session.close()


async def test_units_are_started_and_stopped(private_logind):  # noqa: F811
    async with SystemdUnits.open(private_logind.address) as units:
        await units.stop_unit("kubelet.service")
        await units.start_unit("kubelet.service")
        calls = [(call.member, call.arguments) for call in await private_logind.calls() if "Unit" in call.member]
        assert calls == [("StopUnit", ["kubelet.service", "replace"]), ("StartUnit", ["kubelet.service", "replace"])]
        assert await private_logind.starts() == [], "only a target that is started means that the machine goes down"
        names = ("kubelet.service", "lastcall-agent.service")
        assert await units.unit_states(*names) == [UnitState("loaded", "active"), UnitState("not-found", "inactive")]
        await private_logind.set_mode(SystemdResponse.FAIL)
        with pytest.raises(Unavailable, match="TransactionIsDestructive"):
            await units.stop_unit("kubelet.service")


def test_the_private_logind_cannot_reboot(private_logind):  # noqa: F811
    """reboot(2) with wrong magic numbers does nothing: EINVAL says that it was allowed, EPERM that it was not."""
    status = private_logind.run_caged("grep", "^CapBnd", "/proc/self/status").stdout
    assert not int(status.split()[1], 16) >> 22 & 1, "CAP_SYS_BOOT"


PARENT = """
import sys, time
from lastcall_lab.private_logind import PrivateLogind
with PrivateLogind() as private:
    print(private.root, private.logind_pid, private._processes["dbus-daemon"].pid, flush=True)
    time.sleep(60)
"""


def test_the_recorder_ends_everything_when_its_parent_is_gone():
    if reason := PrivateLogind.why_not():
        pytest.skip(reason)
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        root, *pids = parent.stdout.readline().split()
        descriptors = [os.pidfd_open(int(pid)) for pid in pids]
        parent.kill()
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 10)[0], "it lives on"
        os.close(descriptor)
    shutil.rmtree(root)


# -- the kind of a shutdown --------------------------------------------------------------------------------------------


class LoginOf257:
    """What logind 257 answers, as measured with the real one: the kind is in a property that 252 lacks."""

    def __init__(self, kind, scheduled=""):
        self.kind, self.scheduled, self.asked = kind, scheduled, []

    def answer(self, message):
        if message.member != "Get":
            return None
        name = message.body[1]
        self.asked.append(name)
        preparing = {"preparing": Variant("b", bool(self.kind))}
        kind = {"type": Variant("s", self.kind)} if self.kind else {}
        values = {
            "PreparingForShutdown": Variant("b", bool(self.kind)),
            "PreparingForShutdownWithMetadata": Variant("a{sv}", preparing | kind),
            "ScheduledShutdown": Variant("(st)", [self.scheduled, 2**64 - 1]),
        }
        return Message.new_method_return(message, "v", [values[name]])


async def kind_said_by(private, login):
    await asyncio.to_thread(private.stop_logind)
    owner = await MessageBus(bus_address=private.address).connect()
    owner.add_message_handler(login.answer)
    await owner.request_name("org.freedesktop.login1")
    session = await SystemLogind(private.address).open()
    try:
        return await session.scheduled_shutdown()
    finally:
        session.close()
        owner.disconnect()
        await owner.wait_for_disconnect()


@pytest.mark.parametrize("kind", ["poweroff", "reboot", "halt", "kexec", "soft-reboot"])
async def test_the_kind_that_logind_257_tells_counts_before_the_schedule(private_logind, kind):  # noqa: F811
    assert await kind_said_by(private_logind, LoginOf257(kind, scheduled="poweroff")) == kind


async def test_a_scheduled_shutdown_is_told_by_257_too(private_logind):  # noqa: F811
    assert await kind_said_by(private_logind, LoginOf257("", scheduled="reboot")) == "reboot"


async def test_a_logind_without_that_property_is_asked_for_it_once(private_logind):  # noqa: F811
    if await asyncio.to_thread(lambda: private_logind.version) >= 257:
        pytest.skip("this machine's logind has the property")
    session = await SystemLogind(private_logind.address).open()
    asked, read = [], session._read_property

    async def noting(name):
        asked.append(name)
        return await read(name)

    session._read_property = noting
    lock = await session.take_lock("because")
    await private_logind.reboot()
    assert [await session.scheduled_shutdown() for _ in range(2)] == ["reboot", "reboot"]
    assert asked == ["PreparingForShutdownWithMetadata", "ScheduledShutdown", "ScheduledShutdown"]
    os.close(lock)
    session.close()
