"""The agents of one cluster ask each other whether they, too, have lost the API server.

An agent asks only while it has lost the API server; otherwise it sends nothing. An agent that has the API server
records who asks, and reports that to the controller. Questions and answers are limited to ``MOST`` datagrams a second;
the rest wait in the socket until the kernel drops them. Two kinds of datagrams are dropped before their signature is
computed and do not count: those that cannot be messages, and those of a sender above its rate limit (``rate_limits``).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from lastcall.aio import cancel_and_wait, timeout
from lastcall.errors import LastcallError
from lastcall.model.watchdog_peer_reports import PeerReport
from lastcall.model.watchdog_peers import PeerTerms, fingerprint
from lastcall.ports.node import Clock
from lastcall.ports.watchdog import DatagramSocket, Members, Membership
from lastcall.watchdog import messages, received_questions
from lastcall.watchdog.messages import NONCE, PeerAnswer, PeerQuestion
from lastcall.watchdog.rate_limits import SenderRateLimiter

REFRESH_SECONDS = 300.0
"""Seconds between two reads of all nodes: each read sends every node's object to every agent."""
RETRY_SECONDS = 30.0
"""The same after a failed read or a change of the set of nodes, because more changes may follow."""
MOST = 4000
"""Messages that are handled in one second."""

_AT_ONCE = 32
"""Messages that are handled, or sent, before other tasks of the process may run and answers may come in."""

_WAITING = 256
"""Datagrams read from the socket before other tasks may run: as many as a kernel queues, so that none is lost."""

_OTHERS_PAUSE = 0.1
"""Seconds between two reads of datagrams from unknown senders: limits a flood to about 2,500 of them a second."""

log = logging.getLogger(__name__)

Opens = Callable[[str, int], DatagramSocket]
"""Binds an address and a port; raises LastcallError."""


class WatchdogPeers:
    """The peers of node ``me`` in boot ``boot_id``.

    ``lost`` returns whether this node has lost the API server. The keeper sets it; until then it returns False.

    Questions are sent every ``pet`` seconds; answers expire ``report`` seconds after their question. ``draw`` returns
    that many cryptographically secure random bytes.
    """

    def __init__(
        self,
        me: str,
        *,
        boot_id: str,
        port: int,
        members: Members,
        opens: Opens,
        clock: Clock,
        pet: float,
        report: float,
        draw: Callable[[int], bytes],
    ) -> None:
        self.me = me
        self.lost: Callable[[], bool] = lambda: False
        self._complaint = "the nodes have not been read yet"
        self._boot_id = boot_id
        self._port = port
        self._members = members
        self._opens = opens
        self._clock = clock
        self._pet = pet
        self._report = report
        self._draw = draw
        self._membership: Membership | None = None
        self._nodes: frozenset[str] = frozenset()
        self._fingerprint = ""
        self._address = ""
        self._socket: DatagramSocket | None = None
        self._listening: asyncio.Task[None] | None = None
        self._listening_to_others: asyncio.Task[None] | None = None
        self._asked: dict[bytes, float] = {}
        self._reports: dict[str, float] = {}
        self._notes: dict[str, received_questions.ReceivedQuestion] = {}
        self._calm = draw(NONCE).hex()
        self._rations = SenderRateLimiter(port)

    # -- for the keeper ------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> frozenset[str] | None:
        """The names of all nodes at the last read; None while this node can neither ask nor answer."""
        return self._nodes if self._socket else None

    @property
    def problem(self) -> str:
        """Why peers are not counted; empty if they are."""
        return "" if self._socket else self._complaint

    @property
    def terms(self) -> PeerTerms | None:
        """The terms for the Lease to publish; None as for ``nodes``."""
        return PeerTerms(nodes=self._fingerprint, calm=self._calm) if self._socket else None

    @property
    def report_token(self) -> str:
        """The current report token; see ``PeerTerms``."""
        return self._calm

    @property
    def reports(self) -> Mapping[str, float]:
        """Per peer that reports losing the API server, when its last answered question was asked (boottime)."""
        return self._reports

    def heard_reports(self) -> Mapping[str, PeerReport]:
        """The nodes that reported losing the API server within the last minute, and how long ago."""
        return received_questions.reports_to_publish(self._notes, self._clock.boottime())

    async def run(self) -> None:
        """Reads the nodes, asks and answers until cancelled."""
        asking = asyncio.create_task(self._ask_repeatedly(), name="asking peers")
        try:
            while True:
                try:
                    pause = REFRESH_SECONDS if await self._refresh_and_compare() else RETRY_SECONDS
                except Exception:
                    log.exception("the watchdog's peers could not be read")
                    pause = RETRY_SECONDS
                await self._clock.sleep(pause * (0.75 + self._draw(1)[0] / 512))
        finally:
            await cancel_and_wait(asking)
            await self._close_sockets()

    # -- membership ----------------------------------------------------------------------------------------------------

    async def _refresh_and_compare(self) -> bool:
        """Reads the nodes; True if that succeeded and the set of nodes is unchanged."""
        before = self._nodes
        return await self._refresh_nodes() and self._nodes == before

    async def _refresh_nodes(self) -> bool:
        """Reads the nodes; False on failure, which keeps the last known nodes."""
        try:
            async with timeout(RETRY_SECONDS):
                membership = await self._members.read_membership()
                messages.validate_keys(membership.keys)
                await self._listen_at(membership.addresses.get(self.me, ""))
        except (LastcallError, TimeoutError) as error:
            why = str(error) or "the nodes could not be read in time"
            log.log(logging.DEBUG if why == self._complaint else logging.WARNING, "the watchdog's peers: %s", why)
            self._complaint = why
            return False
        self._membership = membership
        self._nodes = frozenset(membership.addresses)
        self._fingerprint = fingerprint(self._nodes)
        self._separate_peers(frozenset(filter(None, membership.addresses.values())))
        self._notes = {name: note for name, note in self._notes.items() if name in self._nodes}
        self._complaint = ""
        return True

    async def _listen_at(self, address: str) -> None:
        if self._socket and address == self._address:
            return
        await self._close_sockets()
        if not address:
            raise LastcallError(f"Node {self.me} does not exist, or has no internal address")
        self._socket, self._address = self._opens(address, self._port), address
        self._listening = asyncio.create_task(self._listen_to_peers(self._socket), name="hearing peers")

    def _separate_peers(self, peers: frozenset[str]) -> None:
        """Moves known peers to a socket of their own, if the kernel supports it: floods from others cannot fill it."""
        self._rations.peers = peers
        others = self._socket.split_off_peers(peers) if self._socket else None
        if others and not self._listening_to_others:
            listening = self._listen_to_others(others)
            self._listening_to_others = asyncio.create_task(listening, name="hearing others than peers")

    async def _close_sockets(self) -> None:
        if self._socket and self._listening:
            await cancel_and_wait(*filter(None, [self._listening, self._listening_to_others]))
            self._socket.close()
        self._socket = self._listening = self._listening_to_others = None

    # -- asking --------------------------------------------------------------------------------------------------------

    async def _ask_repeatedly(self) -> None:
        while True:
            begun = self._clock.boottime()
            try:
                await self._ask_peers()
            except Exception:
                log.exception("peers could not be asked")
            await self._clock.sleep(begun + self._pet - self._clock.boottime())

    async def _ask_peers(self) -> None:
        """Sends one round of questions. Its answers count from before the first question is sent."""
        if self._socket is None or self._membership is None or not self.lost():
            return
        nonce, now = self._draw(NONCE), self._clock.boottime()
        self._asked = {old: asked for old, asked in self._asked.items() if now - asked < self._report}
        self._asked[nonce] = now
        question = PeerQuestion(nonce, self.me, self._boot_id, int(now * 1000))
        data = messages.encode_message(question, self._membership.keys)
        others = [address for name, address in self._membership.addresses.items() if address and name != self.me]
        for index, address in enumerate(others):
            self._socket.send(data, (address, self._port))
            if index % _AT_ONCE == _AT_ONCE - 1:
                await self._clock.sleep(0.01)

    # -- receiving -----------------------------------------------------------------------------------------------------

    async def _listen_to_peers(self, socket: DatagramSocket) -> None:
        begun, heard = self._clock.boottime(), 0
        while True:
            datagrams = [await socket.receive(), *socket.receive_waiting(_WAITING)]
            now = self._clock.boottime()
            if now - begun >= 1:
                begun, heard = now, 0
            for data, sender in datagrams:
                if messages.is_plausible(data) and self._rations.allow(sender, now):
                    self._try_to_handle(socket, data, sender)
                    heard += 1
                    if heard % _AT_ONCE == 0:
                        await self._clock.sleep(0)
            if heard >= MOST:
                await self._clock.sleep(begun + 1 - self._clock.boottime())
            else:
                await self._clock.sleep(0)

    async def _listen_to_others(self, socket: DatagramSocket) -> None:
        """Handles datagrams of unknown senders (new nodes, or a flood) slowly, on a socket of their own."""
        while True:
            for data, sender in [await socket.receive(), *socket.receive_waiting(_WAITING)]:
                if messages.is_plausible(data) and self._rations.allow(sender, self._clock.boottime()):
                    self._try_to_handle(socket, data, sender)
            await self._clock.sleep(_OTHERS_PAUSE)

    def _try_to_handle(self, socket: DatagramSocket, data: bytes, sender: tuple[str, int]) -> None:
        try:
            self._handle_message(socket, data, sender)
        except Exception:
            log.exception("a message of a peer could not be answered")

    def _handle_message(self, socket: DatagramSocket, data: bytes, sender: tuple[str, int]) -> None:
        if self._membership is None:
            return
        match messages.decode_message(data, self._membership.keys):
            case PeerQuestion(nonce=nonce) if self.lost():
                self._calm = self._draw(NONCE).hex()  # before the answer: no observer may miss it
                socket.send(messages.encode_message(PeerAnswer(nonce, self.me), self._membership.keys), sender)
            case PeerQuestion(name=name) as question if name != self.me and self._comes_from(name, sender):
                self._notes[name] = received_questions.record_question(
                    self._notes.get(name), question, self._clock.boottime()
                )
            case PeerAnswer(nonce=nonce, name=name) if nonce in self._asked and self._comes_from(name, sender):
                self._reports[name] = max(self._asked[nonce], self._reports.get(name, 0.0))
            case _:
                pass

    def _comes_from(self, name: str, sender: tuple[str, int]) -> bool:
        """Whether the datagram came from that node's address; the key does not tell, because all nodes share it."""
        return self._membership is not None and self._membership.addresses.get(name) == sender[0]
