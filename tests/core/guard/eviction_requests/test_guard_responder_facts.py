"""What the guard's responder reads before it gives its turn away."""

from msgspec.structs import replace
from support.guard.evictions import EVICTOR, GUARD, NOW, UID, eviction, text

from lastcall.guard.eviction_requests.guard_responder import GuardResponder
from lastcall.model.guard_facts import GuardedMetadata, GuardedNamespace, GuardedNode, GuardFacts
from lastcall.model.guard_policy import GuardPolicy, GuardPolicyMeta, GuardSpec
from lastcall.model.pods import ObjectMetadata, Pod, PodSpec, PodStatus
from lastcall.model.selectors import LabelSelector
from lastcall.names import GUARD_ENABLED
from lastcall_lab import virtual

POLICY = GuardPolicy(
    metadata=GuardPolicyMeta(name="db", namespace="shop", uid="uid-policy"),
    spec=GuardSpec(provider={"http": {}}, selector=LabelSelector(match_labels={"app": "db"})),
)
FACTS = GuardFacts(
    pods=(
        Pod(
            metadata=ObjectMetadata(name="db-0", namespace="shop", uid=UID, labels={"app": "db"}),
            spec=PodSpec(node_name="n1"),
            status=PodStatus(phase="Running"),
        ),
    ),
    namespaces={"shop": GuardedNamespace(metadata=GuardedMetadata(name="shop", labels={GUARD_ENABLED: "true"}))},
    nodes={"n1": GuardedNode(metadata=GuardedMetadata(name="n1"))},
    policies=(POLICY,),
)


class Ports:
    """All that the responder reads and writes. What it remembers is from before the policy."""

    def __init__(self):
        self.evictions = [
            eviction(
                targets=[(GUARD, 10001, "Active"), (EVICTOR, 100, "Inactive")],
                responders=[{"name": GUARD, "startTime": text(NOW)}, {"name": EVICTOR}],
            )
        ]
        self.by_key, self.changes = {}, 0
        self.written, self.recorded = [], []

    async def read_removal_facts(self, removal, *, fresh):
        return FACTS if fresh else replace(FACTS, policies=())

    def forget(self, namespace):
        pass

    async def change_entry(self, policy, uid, change):
        self.recorded.append(change(POLICY, None))

    async def write_progress(self, found, progress):
        self.written.append(progress)

    def wall(self):
        return NOW.timestamp()


def test_a_policy_that_was_made_a_moment_ago_counts():
    ports = Ports()
    responder = GuardResponder(ports, ports, facts=ports, records=ports, policies=ports, clock=ports)
    virtual.run(responder.run_round())
    [progress] = ports.written
    assert progress.completion_time is None
    assert [one.name for one in ports.recorded] == ["db-0"]
