"""Envoy, HAProxy and nginx, each told its endpoints in its own way: a file, a socket, a reload. None repeats a request."""

import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
from pathlib import Path

SECONDS = 60


def free_port():
    """A port of the loopback interface that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def find_program(kind):
    """The program of a proxy; None if it is not here."""
    if kind == "envoy":
        found = importlib.util.find_spec("envoy")
        path = Path(found.origin).parent / "_bin/envoy" if found else None
        return str(path) if path and path.exists() else None
    return shutil.which(kind) or shutil.which(kind, path="/usr/sbin")


async def until(condition, what):
    """Waits for what only a broken proxy does not do."""
    async with asyncio.timeout(SECONDS):
        while not await condition():
            await asyncio.sleep(0.02)


async def ask(port, path):
    """The body of an answer, on a connection of its own; empty if nobody answers."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        return _join_chunks(body) if b"chunked" in head.lower() else body
    except OSError:
        return b""
    finally:
        writer.close()


def _join_chunks(body):
    joined = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        joined, body = joined + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return joined


class RealProxy:
    """A process in ``directory`` that listens at ``port``; ``apply`` returns as soon as new requests go elsewhere."""

    kind = ""

    def __init__(self, directory):
        self.directory = directory
        self.port = free_port()
        self._process = None

    async def start(self):
        self.directory.mkdir()
        self._write_config()
        with (self.directory / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                find_program(self.kind), *self._arguments(), stdout=log, stderr=log, cwd=self.directory
            )
        await until(self._listens, self.kind)

    async def stop(self):
        if self._process and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()

    async def _listens(self):
        assert self._process.returncode is None, (self.directory / "log").read_text()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True


class EnvoyProxy(RealProxy):
    """Reads its endpoints from a file (EDS) that is replaced."""

    kind = "envoy"

    def __init__(self, directory):
        super().__init__(directory)
        self._admin = free_port()
        self._version = 0

    def _arguments(self):
        return ["-c", "envoy.json", "--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]

    def _write_config(self):
        self._write_endpoints([])
        (self.directory / "envoy.json").write_text(json.dumps(self._config()))

    def _config(self):
        route = {"match": {"prefix": "/"}, "route": {"cluster": "shop"}}
        manager = {
            "@type": _TYPE + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "shop",
            "route_config": {"virtual_hosts": [{"name": "shop", "domains": ["*"], "routes": [route]}]},
            "http_filters": [
                {
                    "name": "router",
                    "typed_config": {"@type": _TYPE + "extensions.filters.http.router.v3.Router"},
                }
            ],
        }
        filters = [{"name": "http", "typed_config": manager}]
        listener = {"name": "in", "address": _address("127.0.0.1", self.port), "filter_chains": [{"filters": filters}]}
        cluster = {
            "name": "shop",
            "type": "EDS",
            "connect_timeout": "1s",
            "eds_cluster_config": {
                "eds_config": {
                    "resource_api_version": "V3",
                    "path_config_source": {"path": str(self.directory / "eds.json")},
                }
            },
        }
        return {
            "node": {"id": "lab", "cluster": "lab"},
            "admin": {"address": _address("127.0.0.1", self._admin)},
            "static_resources": {"listeners": [listener], "clusters": [cluster]},
        }

    def _write_endpoints(self, endpoints):
        self._version += 1
        hosts = [{"endpoint": {"address": _address(one.address, one.port)}} for one in endpoints]
        resource = {
            "@type": _TYPE + "config.endpoint.v3.ClusterLoadAssignment",
            "cluster_name": "shop",
            "endpoints": [{"lb_endpoints": hosts}] if hosts else [],
        }
        new = self.directory / "eds.new"
        new.write_text(json.dumps({"version_info": str(self._version), "resources": [resource]}))
        new.rename(self.directory / "eds.json")

    async def apply(self, endpoints):
        self._write_endpoints(endpoints)
        wanted = {f"{one.address}:{one.port}" for one in endpoints}

        async def has_them():
            found = json.loads(await ask(self._admin, "/clusters?format=json") or b"{}")
            hosts = [host for one in found.get("cluster_statuses", []) for host in one.get("host_statuses", [])]
            sockets = [host["address"]["socket_address"] for host in hosts]
            return {f"{one['address']}:{one['port_value']}" for one in sockets} == wanted

        await until(has_them, "Envoy's endpoints")


_TYPE = "type.googleapis.com/envoy."


def _address(address, port):
    return {"socket_address": {"address": address, "port_value": port}}


class HaproxyProxy(RealProxy):
    """Has places for twenty servers, which commands on its socket fill and empty."""

    kind = "haproxy"
    places = 20

    def __init__(self, directory):
        super().__init__(directory)
        self._held = {}

    def _arguments(self):
        return ["-f", "haproxy.cfg", "-db"]

    def _write_config(self):
        (self.directory / "haproxy.cfg").write_text(
            f"""\
global
  stats socket {self.directory}/s level admin
  nbthread 1
defaults
  mode http
  retries 0
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive 60s
frontend in
  bind 127.0.0.1:{self.port}
  default_backend shop
backend shop
  balance roundrobin
  server-template place 1-{self.places} 127.0.0.1:1 disabled
"""
        )

    async def apply(self, endpoints):
        for gone in [one for one in self._held if one not in endpoints]:
            await self._command(f"set server shop/place{self._held.pop(gone)} state maint")
        for new in [one for one in endpoints if one not in self._held]:
            place = next(number for number in range(1, self.places + 1) if number not in self._held.values())
            self._held[new] = place
            await self._command(f"set server shop/place{place} addr {new.address} port {new.port}")
            await self._command(f"set server shop/place{place} state ready")

    async def _command(self, line):
        reader, writer = await asyncio.open_unix_connection(str(self.directory / "s"))
        writer.write(f"{line}\n".encode())
        said = (await reader.read()).decode().strip()
        writer.close()
        assert not said or "changed" in said or "no need" in said, (line, said)


class NginxProxy(RealProxy):
    """Reads its endpoints from a file at a reload: new workers take over, the old ones finish their requests."""

    kind = "nginx"

    def _arguments(self):
        return ["-c", str(self.directory / "nginx.conf"), "-p", str(self.directory)]

    def _write_config(self):
        self._write_endpoints([])
        temporary = "".join(
            f"  {one}_temp_path {self.directory}/{one};\n"
            for one in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;\n" if os.geteuid() == 0 else ""
        (self.directory / "nginx.conf").write_text(
            f"""\
{user}daemon off;
worker_processes 1;
pid {self.directory}/pid;
error_log stderr error;
events {{ worker_connections 512; }}
http {{
  access_log off;
{temporary}  keepalive_timeout 60s;
  keepalive_requests 100000;
  include {self.directory}/upstream.conf;
  server {{
    listen 127.0.0.1:{self.port};
    location / {{
      proxy_pass http://shop;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_next_upstream off;
      proxy_connect_timeout 1s;
    }}
  }}
}}
"""
        )

    def _write_endpoints(self, endpoints):
        servers = [f"  server {one.address}:{one.port} max_fails=0;\n" for one in endpoints]
        text = "".join(servers) or "  server 127.0.0.1:1 down;\n"
        (self.directory / "upstream.conf").write_text(f"upstream shop {{\n{text}  keepalive 16;\n}}\n")

    async def apply(self, endpoints):
        before = self._workers()
        self._write_endpoints(endpoints)
        self._process.send_signal(signal.SIGHUP)

        async def taken_over():
            now = self._workers()
            return bool(now) and not now & before

        await until(taken_over, "nginx's new workers")

    def _workers(self):
        """The workers that accept connections."""
        own = self._process.pid
        found = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return {child for child in found if _title(child) == "nginx: worker process"}


def _title(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


KINDS = {one.kind: one for one in (EnvoyProxy, HaproxyProxy, NginxProxy)}
