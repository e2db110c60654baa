"""The database of the demo's third act: a program of its own, with the standard library alone.

One member leads, and acknowledges an order before the others have it: they follow some seconds later, as with any
asynchronous replication. A leader that goes loses what it has not passed on, unless it hands over first. The guard asks
for that by the provider ``http``. Each member writes its address into the directory ``PEERS``, which stands for DNS.
"""

import json
import os
import signal
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PORT = 18090
LAG_SECONDS = 2.0
"""Between two transfers to the followers."""
BATCH = 10
"""Orders in one transfer of a handover."""
LOOK_SECONDS = 0.3
PATIENCE = 1.0
"""Seconds of a leader's silence after which another member leads."""


class Member:
    """One member: its orders, and who leads. ``address`` is its own."""

    def __init__(self, address: str, peers: Path) -> None:
        self._address = address
        self._peers = peers
        self._lock = threading.Lock()
        self._handover: threading.Thread | None = None
        self.orders: list[int] = []
        self.leader = ""
        self.was_heard_at = time.monotonic()

    @property
    def leads(self) -> bool:
        """Whether it takes orders."""
        return self.leader == self._address

    @property
    def is_handing_over(self) -> bool:
        """Whether it passes the rest on, and takes no order meanwhile."""
        return self._handover is not None and self._handover.is_alive()

    def add_order(self, number: int) -> bool:
        """Takes an order, which counts as acknowledged; False if it does not lead now."""
        with self._lock:
            if not self.leads or self.is_handing_over:
                return False
            self.orders.append(number)
            return True

    def replicate(self, orders: list[int], leader: str) -> None:
        """Takes over the leader's orders."""
        with self._lock:
            self.orders, self.leader, self.was_heard_at = orders, leader, time.monotonic()

    def promote(self) -> None:
        """Leads from now on."""
        with self._lock:
            self.leader = self._address

    def prepare(self) -> None:
        """Begins to hand over, if it leads."""
        if self.leads and not self.is_handing_over:
            self._handover = threading.Thread(target=self._hand_over, daemon=True)
            self._handover.start()

    def describe_progress(self) -> dict[str, Any]:
        """The answer to the guard's question."""
        if self.is_handing_over:
            return {"state": "preparing", "message": "the last orders are passed on"}
        if self.leads:
            return {"state": "lost", "message": "it is the leader"}
        return {"state": "ready", "message": "another member leads"}

    def describe_health(self) -> dict[str, Any]:
        """Whether all three members answer, and one leads."""
        states = [state for address in self._addresses() if (state := _ask(address, "/state"))]
        leaders = sum(state["leads"] for state in states)
        healthy = len(states) == 3 and leaders == 1
        return {"healthy": healthy, "message": "" if healthy else f"{len(states)} members answer, {leaders} lead"}

    def run(self) -> None:
        """Follows or leads, without end."""
        (self._peers / self._address).touch()
        passed_on = 0.0
        while True:
            if self.leads:
                if not self.is_handing_over and time.monotonic() - passed_on >= LAG_SECONDS:
                    passed_on = time.monotonic()
                    self._pass_on(list(self.orders))
            else:
                self._look_for_leader()
            time.sleep(LOOK_SECONDS)

    def _addresses(self) -> list[str]:
        return sorted(one.name for one in self._peers.iterdir())

    def _others(self) -> dict[str, dict[str, Any]]:
        found = ((address, _ask(address, "/state")) for address in self._addresses() if address != self._address)
        return {address: state for address, state in found if state}

    def _pass_on(self, orders: list[int]) -> None:
        for address in self._others():
            _ask(address, "/replicate", {"orders": orders, "leader": self._address})

    def _look_for_leader(self) -> None:
        """Whoever has most orders leads if nobody does; of two that have the same, the lower address."""
        others = self._others()
        leaders = [address for address, state in others.items() if state["leads"]]
        if leaders:
            self.leader, self.was_heard_at = leaders[0], time.monotonic()
        elif time.monotonic() - self.was_heard_at > PATIENCE:
            mine = (-len(self.orders), self._address)
            if all(mine < (-state["orders"], address) for address, state in others.items()):
                self.promote()

    def _hand_over(self) -> None:
        """Passes the rest on in batches, then makes the member that has most the leader."""
        others = self._others()
        if not others:
            return
        chosen = max(others, key=lambda address: others[address]["orders"])
        orders = list(self.orders)
        for end in range(others[chosen]["orders"], len(orders) + BATCH, BATCH):
            _ask(chosen, "/replicate", {"orders": orders[:end], "leader": self._address})
            time.sleep(LOOK_SECONDS)
        state = _ask(chosen, "/state")
        if state and state["orders"] == len(orders) and _ask(chosen, "/promote", {}) is not None:
            self.leader = chosen


def _ask(address: str, path: str, value: Any = None) -> Any:
    """The answer of a member; None if it does not answer."""
    body = None if value is None else json.dumps(value).encode()
    try:
        with urllib.request.urlopen(f"http://{address}:{PORT}{path}", body, timeout=1) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return None


def handler_of(member: Member) -> type[BaseHTTPRequestHandler]:
    """The handler of requests to a member."""

    class Handler(BaseHTTPRequestHandler):
        """Answers clients, other members, and the guard."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Questions."""
            match self.path.partition("?")[0]:
                case "/state":
                    self._answer(200, {"leads": member.leads, "orders": len(member.orders)})
                case "/orders":
                    self._answer(200, member.orders)
                case "/guard/health":
                    self._answer(200, member.describe_health())
                case "/guard/progress":
                    self._answer(200, member.describe_progress())
                case _:
                    self._answer(404, {})

        def do_POST(self) -> None:
            """Orders, and what is asked of the member."""
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            match self.path:
                case "/order":
                    self._answer(200 if member.add_order(body["number"]) else 503, {})
                    return
                case "/replicate":
                    member.replicate(body["orders"], body["leader"])
                case "/promote":
                    member.promote()
                case "/guard/prepare":
                    member.prepare()
                case "/guard/cancel" | "/guard/release":
                    pass
                case _:
                    self._answer(404, {})
                    return
            self._answer(200, {})

        def log_message(self, *_: object) -> None:
            """Says nothing."""

        def _answer(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def main() -> None:
    """Serves until SIGTERM, which ends it at once: what it has not passed on is lost with it."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    member = Member(os.environ["POD_IP"], Path(os.environ["PEERS"]))
    threading.Thread(target=member.run, daemon=True).start()
    ThreadingHTTPServer((os.environ["POD_IP"], PORT), handler_of(member)).serve_forever()


if __name__ == "__main__":
    main()
