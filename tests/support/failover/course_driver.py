"""A controller in little, that carries out the steps of a course in the world of ``failover_world``, and is held to account.

It reads again before what cannot be undone, as each controller has to. What must never happen is asserted where it would
happen, with the truth at hand.
"""

from dataclasses import replace

from support.failover.node_world import World

from lastcall.failover.decisions import decision_table
from lastcall.failover.decisions.case import Case, EffectivePolicy, FencerCall, FencerState, NodeSnapshot
from lastcall.failover.decisions.steps import (
    AskPower,
    AskTarget,
    Delete,
    Detach,
    Done,
    Mark,
    SwitchOff,
    SwitchOn,
    TaintNode,
    Unmark,
    Untaint,
    Wait,
)
from lastcall.failover.evidence import assessment, out_of_service_taint, owner_mark, proofs
from lastcall.failover.evidence.facts import (
    Boot,
    DeathAcknowledged,
    LeaseSeen,
    NodeSeen,
    PowerSeen,
    ShutdownAnnounced,
)
from lastcall.failover.limits.fence_targets import TargetJudgement, TargetMatch
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.model.fence_policy import FailoverMode

POLICY = EffectivePolicy(name="p", mode=FailoverMode.ENFORCE, suspect_after=40.0, power_on=True)
BUSY = 60
"""So many steps at one moment are a course that turns in circles."""
JUDGED = {
    "other": TargetJudgement(TargetMatch.OTHER, "it is another machine"),
    "mute": TargetJudgement(TargetMatch.UNKNOWN, "it does not say which machine it is"),
}


class Broken(AssertionError):
    """A promise is broken."""


class Controller:
    """``me``: its identity. What it knows is gone with it."""

    def __init__(self, world: World, *, me: str = "one", policy: EffectivePolicy | None = POLICY):
        self.world, self.me, self.policy = world, me, policy
        self.observed = world.now
        self.heard = None
        self.seen = None
        self.boots: dict[str, Boot] = {}
        self.facts: list = []
        self.devices = {one.name: FencerState(name=one.name) for one in world.devices}
        self.boot_id = world.node.boot_id
        self.back_since = None
        self.untainted = ""
        self.storm = LimitAnswer(allowed=True, why="no limit")
        self.log: list = []
        self.state, self.waits = None, Wait("")

    # -- looking -------------------------------------------------------------------------------------------------------

    def look(self):
        """What a watch would have told; the first look shows nothing of the node's life."""
        world, node = self.world, self.world.node
        if node.boot_id != self.boot_id:
            self.boot_id, self.devices = node.boot_id, {one.name: FencerState(name=one.name) for one in world.devices}
        self.boots.setdefault(node.boot_id, Boot(id=node.boot_id, system_uuid="m1", since=world.now))
        shown = (node.boot_id, node.heartbeat)
        if self.seen is not None and shown != self.seen:
            self.heard = world.now
            self.facts = [
                one for one in self.facts if not (isinstance(one, LeaseSeen | NodeSeen) and one.boot_id == node.boot_id)
            ]
            self.facts.append(LeaseSeen(boot_id=node.boot_id, at=world.now))
            self.facts.append(NodeSeen(boot_id=node.boot_id, system_uuid="m1", ready=node.ready, at=world.now))
        self.seen = shown
        by_hand = any(out_of_service_taint.is_like_ours(one) for one in node.taints) and not (
            world.mark and world.mark.tainted
        )
        if by_hand and self.untainted == node.boot_id:  # it has come while this boot was observed
            self.facts.append(DeathAcknowledged(boot_id=node.boot_id, how="the taint", at=world.now))
        self.untainted = "" if by_hand else node.boot_id
        other = world.mark is not None and world.mark.boot_id != node.boot_id
        if node.ready != "True" or not other:
            self.back_since = None
        elif self.back_since is None:
            self.back_since = world.now

    def case(self):
        world, node = self.world, self.world.node
        boot, facts = self.boots[node.boot_id], list(self.facts)
        if world.word and world.word[0] == boot.id:
            name, deadline, gone = world.word
            facts.append(ShutdownAnnounced(boot_id=name, written=self.boots[name].since, deadline=deadline, gone=gone))
        terms = proofs.ProofTerms()
        return Case(
            name="n1",
            me=self.me,
            leader=world.leader,
            wall=1000.0,
            node=NodeSnapshot(boot_id=node.boot_id, ready=node.ready, taints=node.taints, mark_text=node.mark),
            policy=self.policy,
            observed=self.observed,
            heard=self.heard,
            boot=boot,
            verdict=assessment.assess(boot, facts, world.now, terms),
            held_until=assessment.fencing_held_until(boot, facts, world.now),
            gone=assessment.ended_pod_uids(boot, facts),
            storm=self.storm if self.storm.allowed else replace(self.storm, again=world.now + 30),
            devices=tuple(self.devices.values()),
            pods=tuple(world.pods.values()),
            attachments=tuple(world.attachments.values()),
            back_since=self.back_since,
        )

    def step(self):
        """Decides once."""
        self.look()
        return decision_table.decide(self.case(), self.world.now)

    def run(self, *, before=lambda _: True):
        """What there is to do at this moment, if anything has changed, or it is late enough.

        Returns the wait with which it ends. ``before`` may stop it: what it began is not done, and None returned.
        """
        world = self.world
        state = (world.state(), self.policy, self.storm)
        if state == self.state and (self.waits.until is None or world.now < self.waits.until):
            return self.waits
        for _ in range(BUSY):
            step = self.step()
            if isinstance(step, Done):
                step = Wait(step.why)
            if isinstance(step, Wait):
                expect(step.until is None or step.until > world.now, f"it waits for the past: {step}")
                self.state, self.waits = (world.state(), self.policy, self.storm), step
                return step
            if not before(step):
                return None
            self.log.append(step)
            self.do(step)
        raise Broken(f"it turns in circles: {self.log[-4:]}")

    # -- acting --------------------------------------------------------------------------------------------------------

    def do(self, step):
        """Carries it out, as the live read allows it."""
        if isinstance(step, AskTarget | AskPower):
            self._ask(step)
        elif isinstance(step, SwitchOff | SwitchOn):
            self._switch(step)
        elif isinstance(step, Mark | TaintNode | Untaint | Unmark):
            self._write(step)
        else:
            self._remove(step)

    def _ask(self, step):
        device, kind = self.devices[step.fencer], self.world.device(step.fencer).kind
        if isinstance(step, AskPower):
            power = self.world.power(step.fencer)
            fact = PowerSeen(
                boot_id=self.boot_id,
                source=step.fencer,
                power=power,
                asked=self.world.now,
                answered=self.world.now,
                why="no answer",
            )
            others = [one for one in self.facts if not (isinstance(one, PowerSeen) and one.source == step.fencer)]
            device = replace(device, answers=(*device.answers, fact)[-16:])
            self.facts = [*others, *device.answers]
        elif kind == "gone":
            failed = FencerCall(began=self.world.now, ended=self.world.now, error="no answer")
            device = replace(device, unanswered=(*device.unanswered, failed))
        else:
            found = JUDGED.get(kind, TargetJudgement(TargetMatch.SAME, "it is the same machine"))
            device = replace(device, judgement=found, judged=self.world.now)
        self.devices[step.fencer] = device

    def _switch(self, step):
        world, mark = self.world, self.world.mark
        expect(mark is not None and mark.by == self.me == world.leader, "power is switched without being the owner")
        if isinstance(step, SwitchOn):
            expect(self.policy.power_on and mark.switched_off and mark.powered_on, "it switches on what is not its own")
            expect(not self.left(), f"it switches on, and {self.left()} are left")
            world.on()
            error, kind = "", "ons"
        else:
            expect(world.node.boot_id == step.boot_id == mark.boot_id, "another boot is switched off")
            expect(mark.switched_off and mark.fencer == step.fencer, "the mark does not say that it is switched off")
            expect(not mark.powered_on, "what was switched on again is switched off")
            expect(world.device(step.fencer).kind not in JUDGED, "another machine is switched off")
            silent = world.now - max(self.observed, self.heard or 0.0)
            expect(silent >= self.policy.suspect_after, f"it is switched off after {silent} s of silence")
            held = world.word and world.word[0] == step.boot_id and world.now < world.word[1]
            expect(not held, "it is switched off before the deadline that it has stated")
            expect(self.storm.allowed and self.policy.mode is not FailoverMode.OBSERVE, "it is not to be switched off")
            error, kind = world.told(step.fencer), "offs"
        device, tried = self.devices[step.fencer], FencerCall(began=world.now, ended=world.now, error=error)
        self.devices[step.fencer] = replace(device, **{kind: (*getattr(device, kind), tried)})

    def _write(self, step):
        world, node = self.world, self.world.node
        expect(self.me == world.leader, "who does not lead writes")
        others = world.mark is not None and world.mark.by not in (self.me, "former")
        expect(not others or world.mark.by != world.leader, "it takes the mark of who leads")
        if isinstance(step, TaintNode):
            expect(node.boot_id == step.boot_id, "another boot is tainted")
            expect(world.deceived or world.boot != step.boot_id, "a node is tainted whose boot runs")
            expect(step.mark.tainted, "the mark does not say whose the taint is")
            expect(world.mark is not None and world.mark.by == self.me, "a node is tainted without being the owner")
            node.taints = out_of_service_taint.add_taint(node.taints, out_of_service_taint.OURS)
        if isinstance(step, Untaint):
            expect(world.mark.tainted or step.by_hand, "a taint of others is taken away")
            there = node.boot_id != world.mark.boot_id or world.boot == world.mark.boot_id
            expect(there, "our taint is taken away, and the machine is off")
            expect(not step.by_hand or self.policy.remove_by_hand, "a taint by hand is taken away")
            node.taints = out_of_service_taint.remove_taint(node.taints, by_hand=step.by_hand)
            if step.by_hand:
                world.others = tuple(one for one in world.others if one.key != out_of_service_taint.OURS.key)
        if isinstance(step, Mark) and world.mark and world.mark.boot_id == step.mark.boot_id:
            there = world.mark
            forgotten = there.switched_off > step.mark.switched_off or there.powered_on > step.mark.powered_on
            expect(not forgotten and there.began == step.mark.began, "the mark forgets")
        node.mark = "" if isinstance(step, Unmark) else owner_mark.encode_mark(step.mark)
        kept = tuple(one for one in node.taints if not out_of_service_taint.is_like_ours(one))
        expect(kept == world.others, "taints of others are lost")

    def _remove(self, step):
        world = self.world
        expect(self.me == world.leader, "who does not lead removes")
        expect(self.policy.mode is FailoverMode.ENFORCE, "a policy that forces nothing is not obeyed")
        expect(world.node.boot_id == step.boot_id, "it acts on another boot")
        if isinstance(step, Detach):
            expect(self.policy.detach, "it detaches what kube-controller-manager detaches")
            for one in step.attachments:
                self._over(step)
                writers = {pod.uid for pod in world.pods.values() if one.volume in pod.volumes and not pod.finished}
                expect(not writers, f"{one.name} is detached, and pods use it: {writers}")
                world.attachments.pop(one.uid, None)
            return
        for one in step.pods:
            expect(not (one.tolerates or one.disabled or one.mirror), f"{one.name} is to stay")
            if isinstance(step, Delete):
                if one.uid in world.pods:
                    world.pods[one.uid] = replace(one, terminating=True, grace=30)
            else:
                proved = step.boot_id != world.boot or world.deceived
                expect(one.terminating or proved, f"{one.name} is not terminating, and is forced")
                expect(world.deceived or one.uid not in world.running, f"{one.name} is forced, and runs")
                if one.uid not in (world.word[2] if world.word and world.word[0] == step.boot_id else ()):
                    self._over(step)
                world.remove_by_force(one.uid)

    def _over(self, step):
        owned = self.world.mark is not None and self.world.mark.by == self.me
        expect(owned and self.world.mark.boot_id == step.boot_id, "it forces without being the owner")
        deceived = self.world.deceived
        expect(deceived or self.world.boot != step.boot_id, f"forced while the boot runs: {step}")

    def left(self):
        """What has to go, and is there."""
        pods = [one for one in self.world.pods.values() if not (one.tolerates or one.disabled or one.mirror)]
        return [one.name for one in pods if not (one.finalizers and one.finished)]


def expect(held, promise):
    if not held:
        raise Broken(promise)
