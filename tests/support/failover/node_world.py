"""A world in little for one node's failover: its machine, its pods and volumes, what fences it, and what others do.

It knows the truth, as the controller does not: which boot runs, and which pods can write.
"""

from dataclasses import dataclass, field, replace

from lastcall.failover.decisions.case import CaseAttachment, CasePod
from lastcall.failover.evidence import out_of_service_taint
from lastcall.failover.evidence.owner_mark import OwnerMark, parse_mark
from lastcall.model.power import PowerState
from lastcall.model.tolerations import Taint

GRACE = 50
"""After so many seconds of silence the node lifecycle writes Ready=Unknown."""
BEAT = 10
STARTING = 15
"""So long a kubelet takes to report after the machine was switched on."""
OTHERS = (
    Taint(key="team", value="a", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/out-of-service", value="x", effect="NoSchedule"),
)


def pod(name, *, volume=True, **more):
    return CasePod(uid=f"u-{name}", namespace="shop", name=name, volumes=(f"v-{name}",) if volume else (), **more)


def attachment(name):
    return CaseAttachment(uid=f"a-{name}", name=f"va-{name}", volume=f"v-{name}")


PODS = (
    pod("db-0"),
    pod("db-1"),
    pod("web", volume=False),
    pod("stuck", finalizers=("example.com/wait",)),
    pod("csi", tolerates=True),
    pod("mine", disabled=True),
    pod("etcd", mirror=True, volume=False),
)


@dataclass
class Device:
    """A fence. ``kind``: good; slow (11 s); late (says that it has failed, and is slow); deaf (accepts, and does nothing);
    gone (nothing works); other (of another machine); mute (does not say which machine it is); liar (always says OFF)."""

    name: str
    kind: str = "good"
    due: float | None = None


@dataclass
class Node:
    """The Node object."""

    boot_id: str
    ready: str = "True"
    taints: tuple[Taint, ...] = OTHERS
    mark: str = ""
    heartbeat: int = 0


@dataclass
class World:
    """``rest``: whether kube-controller-manager's Pod GC and attach-detach controller do their work."""

    devices: tuple[Device, ...] = (Device("bmc"),)
    rest: bool = True
    now: float = 0.0
    boots: int = 1
    boot: str | None = "boot-1"
    node: Node = field(default_factory=lambda: Node("boot-1"))
    pods: dict = field(default_factory=lambda: {one.uid: one for one in PODS})
    attachments: dict = field(default_factory=lambda: {f"a-{p.name}": attachment(p.name) for p in PODS if p.volumes})
    running: set = field(default_factory=lambda: {one.uid for one in PODS})
    cut: bool = False
    hung: bool = False
    word: tuple | None = None
    """The boot that has said that it goes down, until when, and the UIDs that it has ended."""
    leader: str = "one"
    started: float = -100.0
    reported: str = "boot-1"
    last_beat: float = 0.0
    deceived: bool = False
    """A fence lies about a machine that is silent: nobody can know that."""
    handed: bool = False
    """Somebody has set a taint as ours by hand."""
    others: tuple = OTHERS
    """The taints of others that have to be there."""

    def state(self):
        """What a controller can see; it looks when that has changed."""
        node = self.node
        seen = (node.boot_id, node.ready, node.taints, node.mark, node.heartbeat, self.leader, self.word)
        return *seen, tuple(self.pods.values()), tuple(self.attachments)

    # -- the machine ---------------------------------------------------------------------------------------------------

    def off(self):
        self.boot, self.running, self.hung = None, set(), False

    def on(self):
        if self.boot is None:
            self.boots += 1
            self.boot, self.started, self.hung, self.cut = f"boot-{self.boots}", self.now, False, False

    @property
    def alive(self):
        return self.boot is not None and not self.hung

    @property
    def heard(self):
        """Whether its kubelet reaches the API server now."""
        return self.alive and not self.cut and self.now >= self.started + STARTING

    def tick(self):
        """One second."""
        self.now += 1
        for device in self.devices:
            if device.due is not None and self.now >= device.due:
                device.due = None
                self.off()
        if self.heard and (self.reported != self.boot or self.now >= self.last_beat + BEAT):
            self._beat()
        if self.now >= self.last_beat + GRACE and self.node.ready == "True":
            self.node.ready = "Unknown"
        self._controllers()

    def _beat(self):
        """A kubelet reports before it starts anything; it ends what terminates, and starts no pod that does."""
        self.last_beat, self.reported = self.now, self.boot
        self.node.heartbeat += 1
        self.node.boot_id, self.node.ready = self.boot, "True"
        for uid, one in list(self.pods.items()):
            if one.terminating:
                self.running.discard(uid)
                self._remove(uid)
            elif not one.finished:
                self.running.add(uid)

    def _controllers(self):
        tainted = any(one.key == out_of_service_taint.OURS.key for one in self.node.taints)
        if any(out_of_service_taint.is_like_ours(one) for one in self.node.taints):  # taint eviction
            for uid, one in self.pods.items():
                if not (one.tolerates or one.mirror or one.terminating):
                    self.pods[uid] = replace(one, terminating=True, grace=30)
        if not self.rest:
            return
        if tainted and self.node.ready != "True":
            for uid, one in list(self.pods.items()):
                if one.terminating and not one.disabled:  # so that it shows what we force
                    self.remove_by_force(uid)
        wanted = {volume for one in self.pods.values() if not one.finished for volume in one.volumes}
        if tainted or self.heard:
            for uid, one in list(self.attachments.items()):
                if one.volume not in wanted:
                    del self.attachments[uid]

    def _remove(self, uid):
        one = self.pods[uid]
        if one.finalizers:
            self.pods[uid] = replace(one, terminating=True, finished=True, grace=0)
        else:
            del self.pods[uid]

    def remove_by_force(self, uid):
        if uid in self.pods:
            self._remove(uid)

    # -- fences --------------------------------------------------------------------------------------------------------

    def told(self, name):
        """An ``off``: the error, if it says that it has failed."""
        device = self.device(name)
        if device.kind == "good":
            self.off()
        elif device.kind in ("slow", "late") and self.boot and device.due is None:
            device.due = self.now + 11
        return "timed out" if device.kind in ("late", "gone") else ""

    def power(self, name):
        device = self.device(name)
        if device.kind == "gone":
            return PowerState.UNKNOWN
        if device.kind == "liar":
            return PowerState.OFF
        return PowerState.OFF if self.boot is None else PowerState.ON

    def device(self, name):
        return next(one for one in self.devices if one.name == name)

    # -- the API -------------------------------------------------------------------------------------------------------

    @property
    def mark(self):
        found = parse_mark(self.node.mark)
        return found if isinstance(found, OwnerMark) else None

    def by_hand(self):
        """A person says that the machine is dead."""
        self.handed = True
        self.node.taints = out_of_service_taint.add_taint(self.node.taints, out_of_service_taint.OURS)
