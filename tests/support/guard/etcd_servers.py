"""Three real etcd servers on loopback with passwords; the first leads at the beginning."""

import contextlib
import json
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from support.guard.members import pod
from support.guard.tls_calls import no_socket_left

NET = "127.63.13"
NEEDS_ETCD = pytest.mark.skipif(shutil.which("etcd") is None, reason="etcd is not installed (Debian: etcd-server)")


class EtcdServers:
    """Processes by number; each has the address of the pod of its number."""

    def __init__(self, ports, directory, *, password="", tls=None):
        """``tls``: the files of their certificate; a client has to show one of the same authority."""
        self._tls = tls
        self.port, self._peer_port, self.directory = ports(), ports(), directory
        self.processes, self._password, self._token = {}, "", ""
        for number in range(3):
            self.start(number)
        self.wait_for_leader()
        if password:
            self._set_password(password)
        self.move_leader(0)

    def start(self, number, *, is_new=True):
        clients, peers = self._url(number, self.port), self._url(number, self._peer_port, "http")
        cluster = ",".join(f"e{one}={self._url(one, self._peer_port, 'http')}" for one in range(3))
        line = ["etcd", f"--name=e{number}", f"--data-dir={self.directory}/{number}", "--log-level=error"]
        line += [f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"]
        line += [f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"]
        line += [f"--initial-cluster={cluster}", f"--initial-cluster-state={'new' if is_new else 'existing'}"]
        if self._tls:
            line += [f"--cert-file={self._tls.certificate}", f"--key-file={self._tls.key}", "--client-cert-auth"]
            line += [f"--trusted-ca-file={self._tls.ca}"]
        line += ["--heartbeat-interval=50", "--election-timeout=500"]
        self.processes[number] = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def call(self, number, path, value=None):
        """The answer of one server to its JSON API."""
        headers = {"authorization": self._token} if self._token else {}
        request = urllib.request.Request(  # noqa: S310 - to loopback
            f"{self._url(number, self.port)}{path}", json.dumps(value or {}).encode(), headers, method="POST"
        )
        with no_socket_left(), urllib.request.urlopen(request, timeout=20, context=self._context()) as answer:  # noqa: S310 - the same
            return json.load(answer)

    def leader(self):
        """The number of the server that leads; None if it is not known."""
        for number in range(3):
            with contextlib.suppress(OSError):
                found = self.call(number, "/v3/maintenance/status")
                if found["header"]["member_id"] == found.get("leader"):
                    return number
        return None

    def wait_for_leader(self, wanted=None):
        end = time.monotonic() + 60
        while (found := self.leader()) is None or wanted not in (None, found):
            assert time.monotonic() < end, f"{found} leads"
            time.sleep(0.05)
        return found

    def move_leader(self, number):
        """Waits until the server leads and all follow it; it may still have entries to catch up with."""
        end = time.monotonic() + 60
        while not self._is_followed(number):
            assert time.monotonic() < end
            leader = self.leader()  # one that was frozen may believe for a moment that it is
            if leader not in (None, number):
                with contextlib.suppress(urllib.error.HTTPError):
                    self.call(leader, "/v3/maintenance/transfer-leadership", {"targetID": self._id(number)})
            time.sleep(0.1)

    def _is_followed(self, number):
        known = [self.call(one, "/v3/maintenance/status").get("leader") for one in range(3)]
        return set(known) == {self._id(number)}

    def _id(self, number):
        return self.call(number, "/v3/maintenance/status")["header"]["member_id"]

    def _set_password(self, password):
        self.call(0, "/v3/auth/user/add", {"name": "root", "password": password})
        self.call(0, "/v3/auth/role/add", {"name": "root"})
        self.call(0, "/v3/auth/user/grant", {"user": "root", "role": "root"})
        self.call(0, "/v3/auth/enable")
        self._token = self.call(0, "/v3/auth/authenticate", {"name": "root", "password": password})["token"]

    def _url(self, number, port, scheme=""):
        return f"{scheme or ('https' if self._tls else 'http')}://{pod(number, net=NET).status.pod_ip}:{port}"

    def _context(self):
        return self._tls.make_context() if self._tls else None

    def end(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
