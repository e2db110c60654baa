"""A connection to the system's message bus whose failures are lastcall's errors."""

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, InvalidAddressError

from lastcall.aio import timeout
from lastcall.errors import LastcallError, NotPermitted, ShutdownUnderWay, Unavailable

DEFAULT_ADDRESS = "unix:path=/run/dbus/system_bus_socket"
"""Where the D-Bus specification puts the system bus (/var/run is /run)."""

BOOTED = Path("/run/systemd/system")
"""Exists if systemd runs the host (sd_booted(3))."""

ANSWER_SECONDS = 5.0
"""Seconds after which a service without an answer counts as gone."""

_LAST_TURNS = 3
"""Rounds of the event loop in which an answer that arrived while this process was suspended is read and delivered."""

DRIVER = "org.freedesktop.DBus"

_REFUSALS = frozenset(
    {
        f"{DRIVER}.Error.AccessDenied",
        f"{DRIVER}.Error.AuthFailed",
        f"{DRIVER}.Error.InteractiveAuthorizationRequired",
    }
)
_UNDER_WAY = "org.freedesktop.login1.OperationInProgress"
_NO_PROPERTY = f"{DRIVER}.Error.UnknownProperty"
_NOBODY = frozenset({f"{DRIVER}.Error.ServiceUnknown", f"{DRIVER}.Error.NameHasNoOwner"})


class NoSuchProperty(LastcallError):
    """The service lacks this property; a newer version may have it."""


class Bus:
    """One connection, made by ``open``; it does not reconnect."""

    def __init__(self, connection: MessageBus, address: str, patience: float | None = None) -> None:
        self._connection = connection
        self._address = address
        self._patience = patience
        self._awaited: dict[int, list[int]] = {}
        """The serials of calls that wait for a reply, with the descriptors of the reply."""
        self._lost = asyncio.ensure_future(connection.wait_for_disconnect())  # type: ignore[no-untyped-call]  # it has no annotations
        self._lost.add_done_callback(_retrieve_exception)
        connection.add_message_handler(self._guard_descriptors)

    @classmethod
    async def open(cls, address: str | None = None, *, patience: float | None = None) -> "Bus":
        """Connects to ``address``, $DBUS_SYSTEM_BUS_ADDRESS or the system bus; Unavailable says what is missing.

        ``patience`` is the longest wait for an answer in seconds; None for ANSWER_SECONDS.
        """
        limit = _answer_limit(patience)
        where = address or os.environ.get("DBUS_SYSTEM_BUS_ADDRESS") or DEFAULT_ADDRESS
        try:
            connection = MessageBus(bus_address=where, negotiate_unix_fd=True)
        except (OSError, InvalidAddressError) as error:
            raise Unavailable(_no_bus(where, error)) from error
        try:
            async with timeout(limit):
                await connection.connect()
        except BaseException as error:
            if connection._stream is not None:  # noqa: SLF001  (the socket was opened and nobody else closes it)
                connection._finalize()  # noqa: SLF001
            if isinstance(error, TimeoutError):
                raise Unavailable(f"the message bus at {where} does not answer within {limit:g} s") from None
            if isinstance(error, OSError | EOFError | AuthError):
                raise Unavailable(_no_bus(where, error)) from error
            raise
        return cls(connection, where, patience)

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._connection.connected and not self._lost.done()

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Sets ``callback``, which is called when the connection has ended for any reason."""
        self._lost.add_done_callback(lambda _: callback())

    def on_signal(self, handler: Callable[[Message], None]) -> None:
        """Sets ``handler``, which gets every signal. Any client of the bus can send one: check the sender."""

        def only_signals(message: Message) -> None:
            if message.message_type is MessageType.SIGNAL:
                handler(message)

        self._connection.add_message_handler(only_signals)

    async def subscribe(self, rule: str) -> None:
        """Subscribes to the broadcast signals that match the rule; they arrive from the moment this returns."""
        await self.call(DRIVER, "/org/freedesktop/DBus", DRIVER, "AddMatch", "s", rule)

    async def name_owner(self, name: str) -> str:
        """The unique name of the current owner of ``name``; Unavailable if it has none."""
        reply = await self.call(DRIVER, "/org/freedesktop/DBus", DRIVER, "GetNameOwner", "s", name)
        return str(reply.body[0])

    async def call(
        self,
        service: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        *body: Any,
        descriptors: Sequence[int] = (),
    ) -> Message:
        """Calls a method; an ``h`` in ``body`` is an index into ``descriptors``, of which the service gets duplicates.

        Descriptors in the reply are close-on-exec and belong to the caller.
        """
        if not self.is_connected:
            raise Unavailable(f"the connection to the message bus at {self._address} is lost")
        limit = _answer_limit(self._patience)
        serial = self._connection.next_serial()
        request = Message(
            service,
            path,
            interface,
            member,
            serial=serial,
            signature=signature,
            body=list(body),
            unix_fds=list(descriptors),
        )
        self._awaited[serial] = []
        try:
            reply = await _await_reply(self._connection.call(request), limit)
        except BaseException as error:
            for descriptor in self._awaited[serial]:  # the reply came at the moment the wait ended
                os.close(descriptor)
            if isinstance(error, TimeoutError):
                raise Unavailable(f"{service} does not answer {member} within {limit:g} s") from None
            if isinstance(error, OSError | EOFError):
                raise Unavailable(
                    f"the connection to the message bus at {self._address} was lost in {member}"
                ) from error
            raise
        finally:
            del self._awaited[serial]
        if reply.message_type is MessageType.ERROR:
            raise _translate_error(reply, service, member)
        return reply

    def close(self) -> None:
        """Leaves the bus. May be called twice."""
        if self._connection.connected:
            self._connection.disconnect()
            self._connection._finalize()  # noqa: SLF001  (closes the socket now, not in the loop's next round, if any)

    def _guard_descriptors(self, message: Message) -> None:
        """Runs before any other handler of the message, so that no child can inherit its descriptors.

        Unclaimed descriptors (of a late reply, or of a foreign message) are closed: a leaked delay lock would delay
        every shutdown.
        """
        for descriptor in message.unix_fds:
            if message.reply_serial in self._awaited:
                os.set_inheritable(descriptor, False)
                self._awaited[message.reply_serial].append(descriptor)
            else:
                os.close(descriptor)


def _answer_limit(patience: float | None) -> float:
    return ANSWER_SECONDS if patience is None else patience


async def _await_reply(call: Coroutine[Any, Any, Message], limit: float) -> Message:
    """The answer; TimeoutError if none comes within so many seconds.

    After a suspension of this process, both the answer and the timeout may be due: then the answer counts.
    """
    task = asyncio.create_task(call, name="a call over the bus")
    task.add_done_callback(_retrieve_exception)
    try:
        async with timeout(limit):
            return await asyncio.shield(task)
    except TimeoutError:
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)
        if not task.done():
            raise
        return task.result()
    finally:
        task.cancel()


def _retrieve_exception(future: "asyncio.Future[Any]") -> None:
    """Retrieves the exception of an abandoned call, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()


def _translate_error(reply: Message, service: str, member: str) -> LastcallError:
    name = reply.error_name or "an error without a name"
    said = f"{reply.body[0]} ({name})" if reply.body else name
    if name == _UNDER_WAY:
        return ShutdownUnderWay(f"logind refuses {member}, since a shutdown is being prepared: {said}")
    if name in _REFUSALS:
        return NotPermitted(f"{service} refuses {member}: {said}; root may, others need a polkit rule")
    if name == _NO_PROPERTY:
        return NoSuchProperty(f"{service} has no such property: {said}")
    if name in _NOBODY:
        return Unavailable(f"{service} is not on the bus: {said}")
    return Unavailable(f"{service} fails at {member}: {said}")


def _no_bus(address: str, error: BaseException) -> str:
    if not isinstance(error, OSError):
        return f"no connection to the message bus at {address}: {error}"
    if address == DEFAULT_ADDRESS and not BOOTED.is_dir():
        return (
            "systemd does not run on this host (there is no /run/systemd/system), so that there is no systemd-logind"
            " to hear of shutdowns from; in a container, mount the host's /run/dbus and /run/systemd"
        )
    if error.errno == errno.ENOENT:
        return f"there is no message bus at {address}: is dbus installed, and running?"
    if error.errno == errno.ECONNREFUSED:
        return f"no process listens at {address}: dbus has stopped"
    return f"no connection to the message bus at {address}: {error.strerror or error}"
