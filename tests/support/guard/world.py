"""A cluster in virtual time with one guarded application: API server, StatefulSet, application, guards, clients.

The ground truth is kept apart from what the guard records: which member has the work, and what was lost when a pod went.
"""

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime

from msgspec.structs import replace
from support.guard.reviews import PERSON, deletion, eviction

from lastcall.aio import Signal, cancel_and_wait, wait_first
from lastcall.errors import Conflict, InvalidInput, LastcallError, NotFound
from lastcall.graceful.cluster.application_state import ApplicationState
from lastcall.guard.controller.guarded_pod_controller import GuardedPodController, GuardedPodPorts
from lastcall.guard.controller.preparation_controller import PreparationController
from lastcall.guard.controller.preparation_worker import WorkerPorts
from lastcall.guard.controller.review_service import ReviewService
from lastcall.model.guard_facts import (
    GuardedMetadata,
    GuardedNamespace,
    GuardedNode,
    GuardFacts,
    WorkloadOwner,
    WorkloadSpec,
    WorkloadStatus,
)
from lastcall.model.guard_policy import GuardPolicy, GuardPolicyMeta, GuardSpec
from lastcall.model.pods import ObjectMetadata, OwnerReference, Pod, PodSpec, PodStatus, StatusCondition
from lastcall.model.selectors import LabelSelector
from lastcall.names import GUARD_ENABLED, GUARD_READY, GUARD_RELEASER
from lastcall_lab.fakes.guarded_application import GuardedApplication
from lastcall_lab.virtual import VirtualClock

START_UP = 20.0
"""Seconds until a new pod is ready."""


class RecordedShutdowns:
    """``ports.guard_cluster.NodeShutdowns``."""

    def __init__(self):
        self.deadlines, self.changes, self._changed = {}, 0, Signal()

    def record(self, node, deadline):
        """None: the record is removed."""
        self.deadlines = {name: at for name, at in self.deadlines.items() if name != node}
        if deadline:
            self.deadlines[node] = deadline
        self.changes += 1
        self._changed.set()

    async def wait_for_change(self, seen):
        while self.changes == seen:
            await self._changed.next()
        return self.changes


class GuardWorld:
    """Implements the ports of the guard. ``trouble`` is called before each request to the API server, and may raise."""

    def __init__(self, *, replicas=3, trouble=None, forgets=False, **spec):
        self.clock = VirtualClock()
        self.replicas = replicas
        self.trouble = trouble or (lambda verb: None)
        self.forgets = forgets
        self.application = GuardedApplication(self.clock, lambda: self.replicas)
        self.pods = {}
        self.revision = "old"
        """The pods' revision that the StatefulSet wants."""
        self.made = 0
        self.changes = 0
        self._changed = asyncio.Event()
        self.events, self.went, self.reviews, self.removals = [], [], [], []
        self.replaced = []
        self.violations = []
        """What is wrong with the policy's provider."""
        self.deletions = 0
        """By the guard itself."""
        """When a successor of a member was ready."""
        meta = GuardPolicyMeta(name="db", namespace="shop", uid="uid-policy", resource_version="1")
        self.policy = GuardPolicy(
            metadata=meta,
            spec=GuardSpec(provider={"model": {}}, selector=LabelSelector(match_labels={"app": "db"}), **spec),
        )
        self.guards = [ReviewService(self, self, self.clock) for _ in range(2)]
        self.ports = WorkerPorts(facts=self, records=self, actions=self, providers=self, clock=self.clock)
        self.leader = None
        self.shutdowns = RecordedShutdowns()
        self._remembered = (-10, None)
        for number in range(replicas):
            self.make_pod(f"db-{number}", is_ready=True)

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def make_pod(self, name, *, is_ready=False):
        self.made += 1
        owner = OwnerReference(kind="StatefulSet", name="db", uid="uid-set", controller=True)
        meta = ObjectMetadata(
            name=name,
            namespace="shop",
            uid=f"{name}-{self.made}",
            labels={"app": "db", "controller-revision-hash": self.revision},
            owner_references=(owner,),
        )
        ready = StatusCondition(type="Ready", status="True" if is_ready else "False")
        status = PodStatus(phase="Running", conditions=(ready,))
        node = "n2" if "n1" in self.shutdowns.deadlines else "n1"
        self.pods[name] = Pod(metadata=meta, spec=PodSpec(node_name=node), status=status)

    def facts(self):
        spec, status = (
            WorkloadSpec(replicas=self.replicas),
            WorkloadStatus(self.replicas, update_revision=self.revision),
        )
        owner = WorkloadOwner(
            kind="StatefulSet", metadata=GuardedMetadata(name="db", uid="uid-set"), spec=spec, status=status
        )
        namespace = GuardedNamespace(metadata=GuardedMetadata(name="shop", labels={GUARD_ENABLED: "true"}))
        return GuardFacts(
            pods=tuple(self.pods.values()),
            namespaces={"shop": namespace},
            nodes={name: GuardedNode(metadata=GuardedMetadata(name=name)) for name in ("n1", "n2")},
            owners={"uid-set": owner},
            policies=(self.policy,) if self.policy else (),
        )

    async def run_stateful_set(self):
        """Makes the pods that are missing, one at a time, and finishes those that are terminating."""
        while True:
            await self.clock.sleep(1)
            for number in range(self.replicas):
                if f"db-{number}" not in self.pods:
                    self.make_pod(f"db-{number}")
                    await self.clock.sleep(START_UP)
                    self._set_ready(f"db-{number}")
                    self.replaced.append(self.clock.boottime())
                    break

    def _set_ready(self, name):
        if (pod := self.pods.get(name)) is None:
            return
        others = [one for one in pod.status.conditions if one.type != "Ready"]
        status = replace(pod.status, conditions=(StatusCondition(type="Ready", status="True"), *others))
        self.pods[name] = replace(pod, status=status)

    async def remove(self, name, *, by):
        """What the API server and the kubelet do with an allowed deletion."""
        pod = self.pods[name]
        stamp = datetime.fromtimestamp(self.clock.wall(), UTC).isoformat()
        self.pods[name] = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=stamp))
        self.went.append((self.clock.boottime(), pod.metadata.uid, self.application.was_safe(pod.metadata.uid), by))
        await self.clock.sleep(3)
        self.pods.pop(name, None)

    async def ask(self, name, *, user=PERSON, evict=False, guard=0):
        """One request of a client: whether it was allowed, and the message. What is allowed is carried out."""
        pod = self.pods.get(name)
        if pod is None or pod.metadata.deletion_timestamp:
            return True, "gone"
        meta = {"name": name, "namespace": "shop", "uid": pod.metadata.uid, "labels": pod.metadata.labels}
        meta["ownerReferences"] = [{"kind": "StatefulSet", "name": "db", "uid": "uid-set", "controller": True}]
        subject = {"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
        review = eviction(name, user=user) if evict else deletion(subject, user=user)
        answer = (await self.guards[guard].answer(json.dumps(review).encode()))["response"]
        self.reviews.append((self.clock.boottime(), name, answer))
        if answer["allowed"]:
            self.removals.append(asyncio.ensure_future(self.remove(name, by="client")))
        return answer["allowed"], answer.get("status", {}).get("message", "")

    async def ask_until_gone(self, name, *, every=5.0, most=400, **how):
        """As a drain, or a controller that is patient. How many times it was refused."""
        uid = self.pods[name].metadata.uid
        for refused in range(most):
            pod = self.pods.get(name)
            if pod is None or pod.metadata.uid != uid or pod.metadata.deletion_timestamp:
                return refused
            await self.ask(name, **how)
            await self.clock.sleep(every)
        raise AssertionError(f"{name} is held for ever: {self.policy.status}")

    async def shut_down(self, *names, seconds, limit):
        """What the agent of the pods' node does: each pod goes when its application is ready, or at its limit."""
        self.shutdowns.record("n1", datetime.fromtimestamp(self.clock.wall() + seconds, UTC))
        end = self.clock.boottime() + limit

        def find(uid):
            return next((pod for pod in self.pods.values() if pod.metadata.uid == uid), None)

        async def end_pod(name):
            uid = self.pods[name].metadata.uid
            readiness = await ApplicationState(find, self.clock).wait_until_ready(uid, lambda: end)
            if (pod := find(uid)) and not pod.metadata.deletion_timestamp:  # a client may have been faster
                await self.remove(name, by="agent" if readiness and readiness.is_ready else "deadline")
            return readiness

        return await asyncio.gather(*map(end_pod, names))

    # -- the leader ----------------------------------------------------------------------------------------------------

    def lead(self):
        ports = GuardedPodPorts(
            facts=self,
            records=self,
            actions=self,
            providers=self,
            policies=self,
            shutdowns=self.shutdowns,
            clock=self.clock,
        )
        self.leader = asyncio.ensure_future(
            wait_first(PreparationController(self.ports, self).run(), GuardedPodController(ports).run())
        )

    async def kill_leader(self):
        if self.leader:
            await cancel_and_wait(self.leader)
        self.leader = None

    # -- ports ---------------------------------------------------------------------------------------------------------

    async def read_removal_facts(self, removal, *, fresh):
        await self._request("list")
        return self.facts() if fresh else self._recent_facts()

    def recall_removal_facts(self, removal):
        return self._remembered[1] if self.clock.boottime() - self._remembered[0] <= 2 else None

    def counts_still(self, removal, facts):
        return self.recall_removal_facts(removal) is facts

    async def read_policies(self, namespace):
        await self._request("list")
        return self.facts().policies

    def forget(self, namespace):
        """Remembers all the same unless it is told to forget: the port does not promise that it is read again."""
        if self.forgets:
            self._remembered = (-10, None)

    async def read_namespace_facts(self, namespace, *, fresh=False):
        await self._request("list")
        return self.facts() if fresh else replace(self._recent_facts(), policies=self.facts().policies)

    async def read_pod_facts(self, namespace):
        return replace(await self.read_namespace_facts(namespace), owners={})

    def _recent_facts(self):
        """As old as the port allows."""
        now = self.clock.boottime()
        if now - self._remembered[0] > 2:
            self._remembered = now, self.facts()
        return self._remembered[1]

    async def _request(self, verb):
        self.trouble(verb)
        await self.clock.sleep(0.01)

    async def change_entry(self, policy, uid, change):
        for _ in range(20):
            await self._request("get")
            current = self.policy
            if current is None:
                return None
            entry = change(current, current.find_pod(uid))
            if entry is None:
                return current.find_pod(uid)
            try:
                await self._write(current, current.put_entry(entry))
            except Conflict:
                continue
            return entry
        raise Conflict("too many conflicts")

    async def remove_entry(self, policy, uid):
        await self._request("get")
        current = self.policy
        await self._write(current, tuple(one for one in current.status.pods if one.uid != uid))

    async def write_policy_condition(self, policy, condition):
        with suppress(Conflict, NotFound):
            await self._write(policy, conditions=(condition,))

    async def _write(self, current, pods=None, **status):
        await self._request("update")
        if self.policy is None:
            raise NotFound("gone")
        if self.policy.metadata.resource_version != current.metadata.resource_version:
            raise Conflict("the object has been modified")
        meta = replace(current.metadata, resource_version=str(int(current.metadata.resource_version) + 1))
        if pods is not None:
            status["pods"] = pods
        self.put_policy(replace(current, metadata=meta, status=replace(current.status, **status)))

    def put_policy(self, policy):
        self.policy = policy
        self.changes += 1
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def by_key(self):
        return {("shop", "db"): self.policy} if self.policy else {}

    async def wait_for_change(self, seen):
        while self.changes == seen:
            await self._changed.wait()
        return self.changes

    async def delete_pod(self, pod, grace):
        self.trouble("delete")
        self.deletions += 1
        answer = await self.guards[0].answer(
            json.dumps(deletion({"metadata": {"name": pod.metadata.name}}, user={"username": GUARD_RELEASER})).encode()
        )
        assert answer["response"]["allowed"]
        live = self.pods.get(pod.metadata.name)
        if live and live.metadata.uid == pod.metadata.uid and not live.metadata.deletion_timestamp:
            self.removals.append(asyncio.ensure_future(self.remove(pod.metadata.name, by="nudge")))

    async def write_condition(self, pod, condition):
        await self._request("patch")
        live = self.pods.get(pod.metadata.name)
        if live is None or live.metadata.uid != pod.metadata.uid:
            return
        others = tuple(one for one in live.status.conditions if one.type != GUARD_READY)
        conditions = (*others, condition) if condition else others
        self.pods[pod.metadata.name] = replace(live, status=replace(live.status, conditions=conditions))

    async def write_event(self, pod, reason, message, *, is_warning):
        self.events.append((reason, message))

    def make_policy_provider(self, policy):
        if self.violations:
            raise InvalidInput("GuardPolicy", self.violations)
        return self.application

    # -- reading -------------------------------------------------------------------------------------------------------

    def entry(self, name):
        return next((one for one in reversed(self.policy.status.pods) if one.name == name), None)

    async def sleep(self, seconds):
        await self.clock.sleep(seconds)

    async def close(self):
        await self.kill_leader()
        with suppress(LastcallError):
            await cancel_and_wait(*self.removals)
