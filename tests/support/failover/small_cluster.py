"""A cluster in little: one node, its pods and its fence, and what the failover controller acts on them with."""

import asyncio
import contextlib

import msgspec
from support.virtual_time.manual_clock import Hand

from lastcall.errors import Conflict, NotFound
from lastcall.failover.controller.call_limiter import CallLimiter
from lastcall.failover.controller.case_builder import GatheredCase
from lastcall.failover.controller.node_fencers import NodeFencers
from lastcall.failover.controller.node_reading import NodeReading
from lastcall.failover.controller.preconditions import SafetyCheck
from lastcall.failover.controller.step_context import StepContext
from lastcall.failover.controller.step_executor import StepExecutor
from lastcall.failover.decisions import case_pods
from lastcall.failover.decisions.case import Case, NodeSnapshot
from lastcall.failover.evidence import owner_mark
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.reporting.controller_events import CallReported
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.observed import FailoverPod, LiveNode, WatchedAttachment, WatchedLease
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget

MARK = {"boot_id": "b1", "policy": "p", "began": "2026-01-01T00:00:00Z", "by": "me"}
MINE = owner_mark.OwnerMark(**MARK, fencer="f", switched_off=True)


class Leads:
    """``ports`` of leadership, said by a test; a renewal is sent at the time of ``clock``."""

    def __init__(self, clock):
        self._clock = clock
        self.leads, self.sure, self.holder = True, True, "me"
        self.leading_until, self.sole_until = 1000.0, 1000.0
        self.last_renewal = float("-inf")
        self.confirmed = 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def confirm_leading(self):
        self.confirmed += 1
        sent = self._clock.now
        await self.answers.wait()
        if self.sure:
            self.last_renewal = sent
        return self.sure


class Cluster:
    """One node ``n`` and some pods; ``calls`` are what was asked to be written."""

    def __init__(self):
        self.boot, self.beat, self.renewed, self.mark, self.revision = "b1", "1", "r1", MINE, 1
        self.calls, self.trouble = [], {}
        self.most = self.now = 0
        self.taints = ()
        self.attached = {}
        """By name: uid, resourceVersion and node of the attachment that is there."""
        self.read = []
        """The attachments that were read."""

    async def read_node(self, name):
        said = {
            "metadata": {"name": name, "uid": "u", "resourceVersion": str(self.revision)},
            "spec": {"taints": list(self.taints)},
            "status": {
                "nodeInfo": {"bootID": self.boot, "systemUUID": "s"},
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": self.beat}],
            },
        }
        if self.mark:
            said["metadata"]["annotations"] = {"lastcall.dev/failover": owner_mark.encode_mark(self.mark)}
        return msgspec.convert(said, LiveNode)

    async def read_node_lease(self, name):
        return msgspec.convert(
            {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"renewTime": self.renewed}}, WatchedLease
        )

    async def update_node(self, node, *, mark=None, fenced=None, taints=None, keep_word=False):
        self.calls.append(("node", node.metadata.resource_version, mark, taints))
        self.fenced = fenced
        return node

    async def add_pod_condition(self, pod, condition):
        await self._call("disrupt", pod.metadata.uid, condition["reason"])

    async def fail_pod(self, pod, condition):
        await self._call("fail", pod.metadata.uid, *([condition["reason"]] if condition else []))
        changes = self.trouble.get("answer", {})
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **changes))

    async def delete_pod(self, namespace, name, *, uid, grace):
        await self._call("delete", uid, grace)

    async def read_attachment(self, name):
        if name not in self.attached:
            raise NotFound(name)
        self.read.append(name)
        return attachment(name, *self.attached[name])

    async def delete_attachment(self, name, *, uid, revision):
        there = self.attached.get(name)
        if there is None:
            raise NotFound(name)
        if there[:2] != (uid, revision):
            raise Conflict("the preconditions do not hold")
        await self._call("detach", uid, name, revision)

    async def _call(self, *what):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        if errors := self.trouble.get(what[1]):
            error = errors.pop(0)
            if error:
                raise error
        self.calls.append(what)


class Fence:
    """Accepts everything."""

    name = "f"

    def __init__(self):
        self.within = []

    async def read_target(self):
        return FenceTarget(system_uuid="1")

    async def read_power(self):
        return FenceAnswer(power=PowerState.OFF)

    async def switch_off(self, within):
        self.within.append(within)

    switch_on = switch_off


class Fences:
    def __init__(self):
        self.fence, self.made, self.error = Fence(), 0, None

    async def make_fences(self, node, policy):
        self.made += 1
        if self.error:
            raise self.error
        return [self.fence]


POLICY = msgspec.convert({"metadata": {"name": "p"}, "spec": {"fencers": [{"name": "f", "manual": {}}]}}, FencePolicy)


def pod(uid, phase="Running", grace=30, terminating=True, disrupted=False):
    metadata = {"name": uid, "namespace": "d", "uid": uid}
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"nodeName": "n", "terminationGracePeriodSeconds": grace}
    conditions = [{"type": "DisruptionTarget", "status": "True"}] if disrupted else []
    status = {"phase": phase, "conditions": conditions}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, FailoverPod)


class Rivals:
    """Other Nodes: none, or ``why``, as it is known; ``late`` is found by a live look alone."""

    why = late = ""

    def fencer_refusal(self, name, node, fencer):
        return self.why

    async def verify_rivals_live(self, name, node, fencer):
        self.why = self.why or self.late
        return self.why


def attachment(name, uid, revision, place):
    """A VolumeAttachment."""
    said = {"metadata": {"name": name, "uid": uid, "resourceVersion": revision}, "spec": {"nodeName": place}}
    return msgspec.convert(said, WatchedAttachment)


class World:
    """One node, and all that acts on it."""

    def __init__(self, room=50):
        self.watched = ()
        """The attachments that the watch has shown."""
        self.clock, self.cluster, self.fences = Hand(100.0), Cluster(), Fences()
        self.leads = Leads(self.clock)
        self.told = []
        self.rivals = Rivals()
        self.seen = NodeObservations("n", 0.0)
        self.reading = NodeReading(self.cluster, self.clock)
        self.devices = NodeFencers(self.fences, self.clock)
        self.pool = CallLimiter(room, self.clock)
        self.acting = StepExecutor(self.cluster, self.leads, self.clock, self.pool, me="me", tell=self.told.append)

    async def subject(self, *pods, read=False):
        """``read``: its Node and Lease were read just now, for the decision."""
        node = await self.cluster.read_node("n")
        self.seen.observe_node(node, self.clock.now)
        self.seen.observe_lease(await self.cluster.read_node_lease("n"), self.clock.now, first=True)
        await self.devices.prepare_fences(node.fence_node, POLICY, "b1")
        now = NodeSnapshot(boot_id="b1", ready="Unknown", taints=node.spec.taints, mark_text=node.mark_text)
        case = Case(
            name="n", me="me", leader="me", wall=0.0, node=now, policy=None, observed=0.0, heard=self.seen.heard
        )
        by_uid = {one.metadata.uid: one for one in pods}
        gathered = GatheredCase(case=case, node=node, pods=by_uid, attachments=self.watched, facts=())
        self.refusals = {}
        if read:
            await self.reading.read_live(self.seen)
        return StepContext(
            gathered=gathered,
            reading=self.reading,
            seen=self.seen,
            devices=self.devices,
            refusals=self.refusals,
            rivals=self.rivals,
        )

    async def carry_out(self, kind, *pods, **more):
        subject = await self.subject(*pods)
        if pods:
            more["pods"] = self.left(subject)
        with contextlib.suppress(KeyError):
            await self.acting.carry_out(kind(boot_id="b1", why="w", **more), subject)
        return subject

    @staticmethod
    def left(subject):
        """Its pods, as a step names them."""
        return tuple(
            case_pods.case_pod(one, subject.gathered.node, {}, {}, 0.0) for one in subject.gathered.pods.values()
        )

    @contextlib.asynccontextmanager
    async def full(self):
        """All room for calls is taken."""
        over = asyncio.Event()
        busy = asyncio.create_task(self.pool.run(over.wait, rank=-1))
        try:
            yield
        finally:
            over.set()
            await busy

    def surety(self, **more):
        node = NodeSnapshot(boot_id="b1", ready="Unknown", mark_text=owner_mark.encode_mark(MINE))
        rest = {"me": "me", "boot_id": "b1", "observed": 0.0, "heard": self.seen.heard, "node": node}
        return SafetyCheck(self.reading, self.leads, self.clock, self.seen, **rest, **more)

    @property
    def acted(self):
        return [one for one in self.told if isinstance(one, CallReported)]
