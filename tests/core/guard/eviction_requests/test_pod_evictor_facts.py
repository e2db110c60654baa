"""What the evictor reads before it evicts a pod: what its watch has told may be old."""

import pytest
from support.guard.evictions import EVICTOR, NOW, condition, eviction, pod, request, text

from lastcall.guard.eviction_requests.pod_evictor import PodEvictor
from lastcall_lab import virtual

HEARD = eviction(targets=[(EVICTOR, 100, "Active")], responders=[{"name": EVICTOR, "startTime": text(NOW)}])


class Ports:
    """All that the evictor reads and writes; ``stored`` and ``requests`` are what the API server has by now."""

    def __init__(self, stored, requests):
        self.evictions, self.changes = [HEARD], 0
        self.stored, self.requests = stored, requests
        self.evicted = []

    async def find_pod(self, namespace, name):
        return pod()

    async def find_eviction(self, namespace, name):
        return self.stored

    async def list_requests(self, namespace):
        return self.requests

    async def evict(self, target):
        self.evicted.append(target.metadata.uid)

    def wall(self):
        return NOW.timestamp()


@pytest.mark.parametrize(
    ("stored", "requests", "count"),
    [
        (HEARD, [request()], 1),
        (HEARD, [request(intent="Withdrawn")], 0),
        (HEARD, [request(uid="another")], 0),
        (HEARD, [], 0),
        (None, [request()], 0),
        (eviction("pod-1-db-0", conditions=[condition("Failed")]), [request()], 0),
    ],
)
def test_it_evicts_by_what_is_stored_now(stored, requests, count):
    ports = Ports(stored, requests)
    virtual.run(PodEvictor(ports, ports, ports).run_round())
    assert len(ports.evicted) == count
