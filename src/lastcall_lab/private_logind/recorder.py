"""``python -m lastcall_lab.private_logind.recorder STATE [--polkit]``: plays PID 1 on a private bus.

It owns org.freedesktop.systemd1, records the calls and executes none. Services and timers change their state as if they
ran (``units``). One call has an effect: KillUnit with SIGHUP for systemd-logind.service reaches the private logind,
because that makes it read its drop-ins. With ``--polkit`` it also owns org.freedesktop.PolicyKit1 and permits
everything: a logind in a user namespace does not recognize its callers, and asks polkit.

The end of its standard input means that its parent has ended. Then it ends the private logind, the bus and itself.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from lastcall_lab.fakes.systemd_calls import SystemdCall, SystemdResponse
from lastcall_lab.private_logind import sandbox
from lastcall_lab.private_logind.programs import (
    BUS_PID,
    CONTROL,
    CONTROL_PATH,
    LOGIND_PID,
    SYSTEMD,
    SYSTEMD_PATH,
    kill_program,
)
from lastcall_lab.private_logind.units import FakeUnits, unit_path

_POLKIT = "org.freedesktop.PolicyKit1"
_DONE_SECONDS = 0.2
_ERROR = "org.freedesktop.DBus.Error"
_JOBS = ("StartUnit", "StopUnit", "StartTransientUnit")


class SystemdRecorder:
    """The calls so far, and the answers."""

    def __init__(self, state: Path, *, polkit: bool) -> None:
        self._state = state
        self._polkit = polkit
        self._mode = SystemdResponse.HANG
        self._version = str(sandbox.systemd_version())
        self._calls: list[SystemdCall] = []
        self._units = FakeUnits()
        self._jobs: list[str] = []
        self._bus: MessageBus | None = None

    async def serve(self) -> None:
        """Serves without end, also across restarts of the bus."""
        while True:
            try:
                self._bus = await MessageBus(
                    bus_address=f"unix:path={self._state}/bus", negotiate_unix_fd=True
                ).connect()
                self._bus.add_message_handler(self._answer_message)
                if self._polkit:
                    await self._bus.request_name(_POLKIT)
                await self._bus.request_name(SYSTEMD)
                sys.stdout.write("ready\n")
                sys.stdout.flush()
                await self._bus.wait_for_disconnect()  # type: ignore[no-untyped-call]  # it has no annotations
            except (OSError, EOFError):
                pass  # the bus is down; tests do that
            await asyncio.sleep(0.02)

    def _answer_message(self, message: Message) -> Message | None:
        if message.message_type is not MessageType.METHOD_CALL:
            return None
        if message.interface == f"{_POLKIT}.Authority":
            return Message.new_method_return(message, "(bba{ss})", [[True, False, {}]])
        if (message.path, message.interface) == (CONTROL_PATH, CONTROL):
            return self._answer_control(message)
        if message.interface == "org.freedesktop.DBus.Properties":
            return self._answer_property(message)
        return self._answer_manager(message)

    def _answer_control(self, message: Message) -> Message:
        if message.member == "Calls":
            return Message.new_method_return(message, "s", [msgspec.json.encode(self._calls).decode()])
        if message.member == "SetMode":
            self._mode = SystemdResponse[message.body[0]]
        elif message.member == "Run":
            self._units.start(message.body[0])
        elif message.member == "EndJob":
            self._end_job(message.body[0], message.body[1])
        else:
            return _error_reply(message, "UnknownMethod", f"no {message.member}")
        return Message.new_method_return(message)

    def _answer_property(self, message: Message) -> Message:
        values = {
            "Version": Variant("s", self._version),
            "LoadState": Variant("s", self._load_state(message.path or "")),
            "ActiveState": Variant("s", self._units.active_state(message.path or "")),
            "Job": Variant("(uo)", [0, "/"]),
        }
        name = message.body[1] if message.member == "Get" else ""
        if name not in values:
            return _error_reply(message, "UnknownProperty", f"the recorder knows no property {name!r}")
        return Message.new_method_return(message, "v", [values[name]])

    def _load_state(self, path: str) -> str:
        if not self._units.is_installed(path):
            return "not-found"
        return "masked" if self._mode is SystemdResponse.MASKED else "loaded"

    def _answer_manager(self, message: Message) -> Message:
        arguments = [part if isinstance(part, str | int) else repr(part) for part in message.body]
        member = message.member or ""
        self._calls.append(SystemdCall(at=time.clock_gettime(time.CLOCK_BOOTTIME), member=member, arguments=arguments))
        answers: dict[str, Callable[[Message], Message]] = {
            "Subscribe": Message.new_method_return,
            "Unsubscribe": Message.new_method_return,
            "StartUnit": self._start_unit,
            "StopUnit": self._stop_unit,
            "StartTransientUnit": self._start_transient_unit,
            "ListUnitsByNames": self._list_units,
            "GetUnit": _get_unit,
            "LoadUnit": _get_unit,
            "KillUnit": self._kill_unit,
        }
        if member in _JOBS and self._mode is SystemdResponse.FAIL:
            return Message.new_error(message, f"{SYSTEMD}.TransactionIsDestructive", "the recorder refuses every job")
        if member not in answers:
            return _error_reply(message, "UnknownMethod", f"the recorder does not do {member}")
        return answers[member](message)

    def _start_unit(self, message: Message) -> Message:
        """Starts a unit: the mode decides how a target's job ends; a service is started at once."""
        name = message.body[0]
        if name.endswith(".target"):
            return self._start_job(message, _DONE_SECONDS if self._mode is SystemdResponse.DONE else None)
        self._units.start(name)
        return self._start_job(message, 0.0)

    def _stop_unit(self, message: Message) -> Message:
        name = message.body[0]
        seconds = self._units.stop(name)
        asyncio.get_running_loop().call_later(seconds, self._units.finish_stop, name)
        return self._start_job(message, seconds)

    def _start_transient_unit(self, message: Message) -> Message:
        name, _, properties, _ = message.body
        if not self._units.create_transient(name, message.unix_fds):
            return Message.new_error(message, f"{SYSTEMD}.UnitExists", f"Unit {name} was already loaded.")
        limit = dict(properties).get("RuntimeMaxUSec")
        if limit is not None:
            asyncio.get_running_loop().call_later(limit.value / 1_000_000, self._units.stop, name)
        return self._start_job(message, 0.0)

    def _list_units(self, message: Message) -> Message:
        rows = []
        for name in message.body[0]:
            path = unit_path(name)
            active = self._units.active_state(path)
            sub = "stop-sigterm" if active == "deactivating" else ""
            rows.append([name, name, self._load_state(path), active, sub, "", path, 0, "", "/"])
        return Message.new_method_return(message, "a(ssssssouso)", [rows])

    def _start_job(self, message: Message, seconds: float | None) -> Message:
        """A job that ends after so many seconds; None: it does not end by itself."""
        self._jobs.append(message.body[0])
        number = len(self._jobs)
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, self._end_job, number, "done")
        return Message.new_method_return(message, "o", [_job_path(number)])

    def _end_job(self, number: int, result: str) -> None:
        body = [number, _job_path(number), self._jobs[number - 1], result]
        if self._bus:
            self._bus.send(Message.new_signal(SYSTEMD_PATH, f"{SYSTEMD}.Manager", "JobRemoved", "uoss", body))

    def _kill_unit(self, message: Message) -> Message:
        unit, _, number = message.body
        if unit != "systemd-logind.service":
            return Message.new_error(message, f"{SYSTEMD}.NoSuchUnit", f"Unit {unit} not loaded.")
        if number != signal.SIGHUP:
            return _error_reply(message, "InvalidArgs", "the recorder sends nothing but SIGHUP")
        if not kill_program(self._state, LOGIND_PID, "systemd-logind", number):
            return Message.new_error(message, f"{SYSTEMD}.NoSuchProcess", "the private logind does not run")
        return Message.new_method_return(message)


def _get_unit(message: Message) -> Message:
    return Message.new_method_return(message, "o", [unit_path(message.body[0])])


def _job_path(number: int) -> str:
    return f"{SYSTEMD_PATH}/job/{number}"


def _error_reply(message: Message, name: str, text: str) -> Message:
    return Message.new_error(message, f"{_ERROR}.{name}", text)


def _end_if_abandoned(state: Path) -> None:
    if not os.read(0, 1):
        kill_program(state, LOGIND_PID, "systemd-logind", signal.SIGKILL)
        kill_program(state, BUS_PID, "dbus-daemon", signal.SIGKILL)
        os._exit(0)


async def _main(state: Path, *, polkit: bool) -> None:
    asyncio.get_running_loop().add_reader(0, _end_if_abandoned, state)
    await SystemdRecorder(state, polkit=polkit).serve()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), polkit="--polkit" in sys.argv))
