"""Three pods of RabbitMQ on three nodes of a lab, with or without a guard, and their epmd beside the lab."""

import base64
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from support.guard import rabbitmq_set
from support.guard.guarded_lab import GuardedLab, guard_policy
from support.guard.rabbitmq_servers import PASSWORD, QUEUE, QUORUM, USER, why_not
from support.guard.server_ports import free_ports
from support.guard.writing_client import WritingClient

__all__ = ["GuardedRabbitmq", "why_not"]


class GuardedRabbitmq(GuardedLab):
    """Those of ``rabbitmq_set``, with one quorum queue."""

    name = rabbitmq_set.NAME

    def __init__(self, directory, *, guarded):
        super().__init__(directory, guarded=guarded)
        self.shared = Path(tempfile.mkdtemp(prefix="rabbitmq-"))  # pytest's own is closed to other users
        self.peers = self.shared / "peers"
        self.peers.mkdir()
        self._rest = {}
        self._epmd = None
        [self._epmd_port] = free_ports(1)
        (self.shared / "hosts").write_text("\n".join(rabbitmq_set.hosts()))
        (self.shared / "rabbitmq.conf").write_text("\n".join(rabbitmq_set.configuration()))
        (self.shared / "plugins").write_text("[rabbitmq_management].\n")
        cookie = self.shared / ".erlang.cookie"
        cookie.write_text("cookie")
        cookie.chmod(0o400)
        if os.getuid() == 0:
            user = pwd.getpwnam("rabbitmq").pw_uid
            self._rest = {"user": user}
            for path in (self.shared, *self.shared.iterdir()):
                os.chown(path, user, -1)

    def start(self):
        """Also declares the queue."""
        addresses = ",".join(f"{rabbitmq_set.NET}.{number + 1}" for number in rabbitmq_set.NUMBERS)
        line = ["epmd", "-address", addresses, "-port", str(self._epmd_port)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._epmd = subprocess.Popen(line, cwd=self.shared, **quiet, **self._rest)
        pods = rabbitmq_set.stateful_set(self.shared, epmd_port=self._epmd_port, **self._rest)
        super().start(rabbitmq_set.login_secret(), pods)
        arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": 3}
        wanted = {"durable": True, "arguments": arguments}
        assert ask(self.addresses()[0], "PUT", f"/api/queues/%2F/{QUEUE}", wanted)[0] == 201
        return self

    def end(self):
        super().end()
        if self._epmd:
            self._epmd.kill()
            self._epmd.wait()
        shutil.rmtree(self.shared, ignore_errors=True)

    def policies(self):
        policy = guard_policy(self.name, self.name)
        login = {"username": USER, "passwordSecret": {"name": "auth"}}
        policy["spec"]["provider"][self.name] = {"port": rabbitmq_set.PORT, "timeoutSeconds": 9, **login}
        return [policy]

    def is_whole(self):
        """Whether all nodes run in one cluster, and would leave each queue its quorum."""
        if self.count_ready() < len(rabbitmq_set.NUMBERS):
            return False
        with suppress(OSError):
            first, *_ = addresses = self.addresses()
            checks = [ask(one, "GET", QUORUM)[0] for one in addresses]
            listed = ask(first, "GET", "/api/nodes?columns=name,running,partitions")[1]
            running = [one for one in listed if one.get("running") and not one.get("partitions")]
            return len(running) == len(rabbitmq_set.NUMBERS) and set(checks) == {200}
        return False

    def leading_pod(self):
        """The one whose node leads the queue."""
        return self.read_queue()["leader"].partition("@")[0]

    def read_queue(self):
        """What a node says of the queue: ``leader``, ``members``, ``online``."""
        return ask(self.addresses()[0], "GET", f"/api/queues/%2F/{QUEUE}")[1]

    def addresses(self):
        """Of all pods that have ever started, in order."""
        return [path.read_text().strip() for path in sorted(self.peers.iterdir())]

    def client(self, size=1):
        """A client that publishes messages of so many bytes, each of which the queue has to confirm."""
        return RabbitmqWriter(self, size=size)


class RabbitmqWriter(WritingClient):
    """Publishes by the management API, which answers when the queue has confirmed: a quorum has it on its disks."""

    def __init__(self, application, *, size):
        self._application = application
        self._size = size
        super().__init__(self._find_node, self._publish, pause=0.25)

    def _find_node(self):
        for address in self._application.addresses():
            with suppress(OSError):
                if ask(address, "GET", "/api/whoami")[0] == 200:
                    return _Node(address)
        return None

    def _publish(self, node, number):
        text = f"{number:08d}".ljust(self._size, ".")
        wanted = {
            "properties": {"delivery_mode": 2},
            "routing_key": QUEUE,
            "payload": text,
            "payload_encoding": "string",
        }
        status, said = ask(node.address, "POST", "/api/exchanges/%2F/amq.default/publish", wanted)
        if status != 200:
            raise OSError(f"answered {status}: {said}")
        return said == {"routed": True}

    def count_lost(self):
        """How many confirmed messages the queue does not have; it is empty afterwards."""
        wanted = {"count": 100_000, "ackmode": "ack_requeue_false", "encoding": "auto"}
        status, found = ask(self._application.addresses()[0], "POST", f"/api/queues/%2F/{QUEUE}/get", wanted)
        assert status == 200, found
        return len(set(self.acknowledged) - {int(one["payload"].rstrip(".")) for one in found})


class _Node:
    """One connection for each call, so that there is nothing to close."""

    def __init__(self, address):
        self.address = address

    def close(self):
        pass


def ask(address, method, path, value=None):
    """The status and the JSON of the answer of a management API. OSError if there is none."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    data = None if value is None else json.dumps(value).encode()
    url = f"http://{address}:{rabbitmq_set.PORT}{path}"
    request = urllib.request.Request(url, data, {"authorization": f"Basic {login}"}, method=method)  # noqa: S310 - to loopback
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - the same
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    try:
        return status, json.loads(text) if text.strip() else None
    except ValueError:
        return status, text.decode(errors="replace")
