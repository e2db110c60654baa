"""The Placement Driver of a TiKV cluster, emulated by its documented HTTP API, with its faults.

Three servers on loopback share the state of one cluster. What PD keeps in its etcd (stores, schedulers) survives
``restart``; what TiKV has to tell it again (the leaders of regions) does not. Leaders move when the stores are looked at.
"""

import contextlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.guard.members import pod

NET = "127.63.16"
LABELS = {"app.kubernetes.io/component": "pd"}
SELECTOR = {"matchLabels": LABELS}
STATES = {"Up": 0, "Offline": 1, "Tombstone": 2, "Disconnected": 0, "Down": 0}
"""``state_name`` and ``state``: the names of PD's own are Up for etcd."""


def pd_pod(number):
    """A pod of PD; those of TiKV have the addresses from 1 on."""
    return pod(number + 100, name="pd", net=NET, labels=LABELS)


def store_address(number):
    """As the TiDB Operator has a store advertise it."""
    return f"{pod(number).metadata.name}.redis-peer.shop.svc:20160"


@dataclass
class Store:
    id: int
    address: str
    state: str = "Up"
    labels: dict = field(default_factory=dict)


@dataclass
class Region:
    """``leader``, ``pending`` and ``down`` are ids of stores."""

    id: int
    peers: list
    leader: int
    is_known: bool = True
    pending: set = field(default_factory=set)
    down: set = field(default_factory=set)
    learners: set = field(default_factory=set)


class PlacementDriverServers:
    """``leader`` is the number of the server that leads; None while there is none."""

    def __init__(self, port, addresses=None, stores=3, regions=12):
        self.port = port
        self.addresses = addresses or [pd_pod(number).status.pod_ip for number in range(3)]
        self.lock = threading.RLock()
        self.stores = {one + 1: Store(one + 1, store_address(one)) for one in range(stores)}
        ids = list(self.stores)
        self.regions = [
            Region(100 + one, [ids[(one + more) % stores] for more in range(min(3, stores))], ids[one % stores])
            for one in range(regions)
        ]
        self.evicted = set()
        self.leader = 0
        self.max_replicas = 3
        self.batch = 1
        """So many leaders move at a look at the stores; 0: none does."""
        self.is_old = False
        """As in PD 5.0.1: the removal of the scheduler of a store that is not known any more is a crash (tikv/pd#3660)."""
        self.has_crashed = False
        self.frozen, self.redirecting = set(), set()
        self.asked = []
        self._thawed = threading.Event()
        self._servers = [self._serve(number) for number in range(len(self.addresses))]

    # -- faults --------------------------------------------------------------------------------------------------------

    def restart(self):
        """Another server leads, and TiKV has told it of no region yet."""
        with self.lock:
            self.leader = ((self.leader or 0) + 1) % len(self.addresses)
            for one in self.regions:
                one.is_known = False

    def hear_of_regions(self, count=None):
        """Heartbeats of so many regions, or all, arrive."""
        with self.lock:
            for one in self.regions[:count]:
                one.is_known = True

    def list_changes(self):
        """The requests that may have changed something."""
        return [title for _, title in self.asked if not title.startswith("GET ")]

    def end(self):
        self._thawed.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    # -- the API -------------------------------------------------------------------------------------------------------

    def answer(self, method, path, query, body):
        """Status and value; a value of bytes is plain text."""
        with self.lock:
            for (verb, pattern), handler in HANDLERS.items():
                found = re.fullmatch(pattern, path)
                if verb == method and found:
                    return handler(self, *found.groups(), query=query, body=body)
        return 404, b"404 page not found\n"

    def list_stores(self, *, query, body):
        if query == "":
            self._move_leaders()
        wanted = {int(one.partition("=")[2]) for one in query.split("&")} if query else {0, 1}
        found = [one for one in self.stores.values() if STATES[one.state] in wanted]
        return 200, {"count": len(found), "stores": [self._describe(one) for one in found]}

    def count_regions(self, *, query, body):
        return 200, {"count": len(self.regions), "regions": None}

    def check_regions(self, kind, *, query, body):
        lacks = {
            "miss-peer": lambda one: len(one.peers) < self.max_replicas,
            "down-peer": lambda one: one.down,
            "pending-peer": lambda one: one.pending,
        }[kind]
        found = [_describe_region(one) for one in self.regions if one.is_known and lacks(one)]
        return 200, {"count": len(found), "regions": found}

    def read_replication(self, *, query, body):
        found = {"max-replicas": self.max_replicas, "location-labels": "", "strictly-match-label": "false"}
        return 200, {**found, "enable-placement-rules": "true", "isolation-level": ""}

    def list_evictions(self, *, query, body):
        if not self.evicted:
            return 404, b"404 page not found\n"
        ranges = {str(one): [{"start-key": "", "end-key": ""}] for one in sorted(self.evicted)}
        return 200, {"store-id-ranges": ranges, "batch": 3}

    def add_scheduler(self, *, query, body):
        wanted = json.loads(body)
        if wanted.get("name") != "evict-leader-scheduler":
            return 400, "unknown scheduler"
        if not isinstance(wanted.get("store_id"), int):
            return 400, "please input a right store id"
        if wanted["store_id"] not in self.stores:
            return 400, f"[PD:core:ErrStoreNotFound]store {wanted['store_id']} not found"
        is_there = bool(self.evicted)
        self.evicted.add(wanted["store_id"])
        return 200, "The scheduler has been applied to the store." if is_there else "The scheduler is created."

    def remove_scheduler(self, store, *, query, body):
        if int(store) not in self.evicted:
            return 404, "[PD:scheduler:ErrSchedulerNotFound]scheduler not found"
        if int(store) not in self.stores and self.is_old:
            self.has_crashed, self.leader = True, None
            return 0, None
        self.evicted.remove(int(store))
        return 200, None

    # -- within --------------------------------------------------------------------------------------------------------

    def _move_leaders(self):
        for store in self.evicted:
            led = [one for one in self.regions if one.leader == store and one.is_known]
            for region in led[: self.batch]:
                targets = [one for one in region.peers if self._may_lead(one, region)]
                region.leader = targets[0] if targets else region.leader

    def _may_lead(self, store, region):
        known = self.stores.get(store)
        unfit = region.pending | region.down | region.learners
        return known is not None and known.state == "Up" and store not in self.evicted and store not in unfit

    def _describe(self, store):
        led = sum(one.leader == store.id and one.is_known for one in self.regions)
        kept = sum(store.id in one.peers for one in self.regions)
        labels = [{"key": key, "value": value} for key, value in store.labels.items()]
        host, _, _ = store.address.rpartition(":")
        return {
            "store": {
                "id": store.id,
                "address": store.address,
                **({"state": STATES[store.state]} if STATES[store.state] else {}),
                **({"labels": labels} if labels else {}),
                "version": "8.5.3",
                "peer_address": store.address,
                "status_address": f"{host}:20180",
                "git_hash": "0" * 40,
                "start_timestamp": 1790000000,
                "deploy_path": "/",
                "last_heartbeat": 1790000000000000000,
                "node_state": 1,
                "state_name": store.state,
            },
            "status": {
                "capacity": "1TiB",
                "available": "800GiB",
                "used_size": "200GiB",
                "leader_count": led,
                "leader_weight": 1,
                "leader_score": led,
                "leader_size": led,
                "region_count": kept,
                "region_weight": 1,
                "region_score": 4521.3,
                "region_size": kept,
                "slow_score": 1,
                "start_ts": "2026-11-28T00:00:00Z",
                "last_heartbeat_ts": "2026-11-28T01:00:00.123456789Z",
                "uptime": "1h0m0.123456789s",
                **({"pause_leader_transfer_in": True} if store.id in self.evicted else {}),
            },
        }

    def _serve(self, number):
        servers = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                servers.serve(number, self)

            def do_POST(self):
                servers.serve(number, self)

            def do_DELETE(self):
                servers.serve(number, self)

            def log_message(self, *rest):
                pass

        server = ThreadingHTTPServer((self.addresses[number], self.port), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def serve(self, number, request):
        """One request at a server, as PD's redirector passes it on."""
        self.asked.append((number, f"{request.command} {request.path}"))
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        if number in self.frozen:
            self._thawed.wait()
            return
        if self.leader is None:
            _send(request, 503, b"[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader\n")
        elif number != self.leader and number in self.redirecting:
            _send(request, 307, b"", location=f"http://{self.addresses[self.leader]}:{self.port}{request.path}")
        elif number != self.leader and self.leader in self.frozen:
            self._thawed.wait()
        else:
            path, _, query = request.path.removeprefix("/pd/api/v1").partition("?")
            status, value = self.answer(request.command, path, query, body)
            if status:
                _send(request, status, value)


HANDLERS = {
    ("GET", "/stores"): PlacementDriverServers.list_stores,
    ("GET", "/regions/count"): PlacementDriverServers.count_regions,
    ("GET", "/regions/check/([a-z]+-peer)"): PlacementDriverServers.check_regions,
    ("GET", "/config/replicate"): PlacementDriverServers.read_replication,
    ("GET", "/scheduler-config/evict-leader-scheduler/list"): PlacementDriverServers.list_evictions,
    ("POST", "/schedulers"): PlacementDriverServers.add_scheduler,
    ("DELETE", "/schedulers/evict-leader-scheduler-([0-9]+)"): PlacementDriverServers.remove_scheduler,
}


def _send(request, status, value, **headers):
    data = value if isinstance(value, bytes) else json.dumps(value, indent=2).encode()
    with contextlib.suppress(OSError):
        request.send_response(status)
        kind = "text/plain" if isinstance(value, bytes) else "application/json"
        for name, text in {"content-type": f"{kind}; charset=utf-8", **headers}.items():
            request.send_header(name, text)
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


def _describe_region(region):
    def peer(store):
        role = "Learner" if store in region.learners else "Voter"
        found = {"id": 1000 * region.id + store, "store_id": store, "role_name": role}
        return {**found, **({"role": 1, "is_learner": True} if role == "Learner" else {})}

    return {
        "id": region.id,
        "start_key": "",
        "end_key": "",
        "epoch": {"conf_ver": 5, "version": 50},
        "peers": [peer(one) for one in region.peers],
        "leader": peer(region.leader),
        "down_peers": [{"down_seconds": 700, "peer": peer(one)} for one in sorted(region.down)],
        "pending_peers": [peer(one) for one in sorted(region.pending)],
        "cpu_usage": 0,
        "written_bytes": 0,
        "read_bytes": 0,
        "approximate_size": 96,
        "approximate_keys": 960000,
    }
