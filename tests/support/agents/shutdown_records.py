"""Shutdowns as an agent would journal them: a dozen pods with hooks, stragglers, a restart; a cancelled one; big ones."""

from lastcall.model.shutdown import (
    AnyEvent,
    ContainerEnded,
    ContainerSignalled,
    HookEnded,
    HookStarted,
    LockReleased,
    NoteWritten,
    PhaseEnd,
    PhaseEnded,
    PhasePlan,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodStarted,
    ShutdownCancelled,
    ShutdownMode,
    ShutdownResumed,
    ShutdownStarted,
)

BOOT = "0f5d3e5e-6a52-4d7e-9c5b-3f1f6f7f9a10"
BEGAN = 86_413.25
WALL = 1_795_262_824.5
CRITICAL = 2_000_000_000


class Script:
    """Collects the events of one shutdown; times are offsets, and the journal is in their order."""

    def __init__(
        self, *phases, name="20261121t120704z-3f1c", requested=60.0, granted=45.0, lock=True, how="poweroff", mode=None
    ):
        deadline = BEGAN + (requested if granted is None else min(requested, granted))
        self.begin = ShutdownStarted(
            at=BEGAN,
            id=name,
            node="worker-3",
            boot_id=BOOT,
            wall=WALL,
            how=how,
            mode=mode or ShutdownMode.ENFORCE,
            requested=requested,
            granted=granted,
            deadline=deadline,
            lock=lock,
            phases=tuple(PhasePlan(priority=priority, seconds=seconds) for priority, seconds in phases),
        )
        self.later: list[AnyEvent] = []

    def add(self, kind, at, **fields):
        self.later.append(kind(at=BEGAN + at, **fields))

    def phase(self, index, start, end, how=PhaseEnd.DONE, *, seconds):
        self.add(PhaseStarted, start, index=index, seconds=seconds)
        self.add(PhaseEnded, end, index=index, end=how)

    def pod(self, name, phase, start, *, grace, asked=None, containers, priority=0, outcome=PodOutcome.GRACEFUL):
        """``containers``: name -> dict of hook=(start, end, ok, message), term, kill, ended, code (all offsets)."""
        uid = f"uid-{name}"
        namespace, _, bare = name.rpartition("/")
        self.add(
            PodStarted,
            start,
            uid=uid,
            namespace=namespace or "shop",
            name=bare,
            priority=priority,
            phase=phase,
            grace=grace,
            asked=grace if asked is None else asked,
            containers=tuple(containers),
        )
        ends = [self._container(uid, container, **facts) for container, facts in containers.items()]
        if outcome is not None:
            self.add(PodEnded, max(ends), uid=uid, outcome=outcome)

    def _container(self, uid, container, *, hook=None, term=None, kill=None, ended=None, code=0, over=None):
        if hook:
            self.add(HookStarted, hook[0], uid=uid, container=container)
            self.add(HookEnded, hook[1], uid=uid, container=container, ok=hook[2], message=hook[3])
        if term is not None:
            self.add(ContainerSignalled, term, uid=uid, container=container, signal="TERM")
        if kill is not None:
            self.add(ContainerSignalled, kill, uid=uid, container=container, signal="KILL")
        if ended is not None:
            self.add(ContainerEnded, ended, uid=uid, container=container, exit_code=code)
        return ended if ended is not None else over or 0.0

    def events(self) -> list[AnyEvent]:
        return [self.begin, *sorted(self.later, key=lambda event: event.at)]


def dozen() -> list[AnyEvent]:
    """Twelve pods in three phases: hooks, sidecars, one killed and cut short, one killed, one not gone at the end."""
    script = Script((0, 20), (100_000, 15), (CRITICAL, 10))
    script.phase(0, 0.004, 19.9, PhaseEnd.RAN_OUT, seconds=20)
    for number in range(3):
        stop = 2.0 + number / 5
        script.pod(
            f"web-7d9c5b8f6d-{number}xk2p",
            0,
            0.006,
            grace=20,
            containers={"nginx": {"hook": (0.006, stop, True, ""), "term": stop, "ended": stop + 0.7 + number}},
        )
    script.pod(
        "worker-0",
        0,
        0.006,
        grace=20,
        asked=120,
        containers={
            "queue": {"hook": (0.006, 14.2, True, ""), "term": 14.2, "kill": 19.7, "ended": 19.75, "code": 137},
            "log-agent": {"term": 19.76, "ended": 19.8},
        },
        outcome=PodOutcome.KILLED,
    )
    script.pod(
        "stubborn-5f6b",
        0,
        0.006,
        grace=10,
        containers={"app": {"term": 0.006, "kill": 10.006, "ended": 10.05, "code": 137}},
        outcome=PodOutcome.KILLED,
    )
    script.pod(
        "nfs-reader-0",
        0,
        0.006,
        grace=20,
        asked=30,
        containers={"reader": {"term": 0.006, "kill": 19.7, "over": 19.9}},
        outcome=PodOutcome.UNCONFIRMED,
    )
    script.add(
        NoteWritten, 19.9, text="shop/nfs-reader-0 is still there in spite of SIGKILL: it may hang in the kernel"
    )
    script.pod(
        "cache-0",
        0,
        0.006,
        grace=20,
        containers={
            "redis": {"hook": (0.006, 0.4, False, "exit code 1: save failed"), "term": 0.4, "ended": 0.9, "code": 1}
        },
    )
    script.phase(1, 19.9, 26.4, seconds=15)
    script.pod(
        "db-0",
        1,
        19.901,
        grace=15,
        asked=60,
        priority=100_000,
        containers={"postgres": {"hook": (19.901, 21.0, True, ""), "term": 21.0, "ended": 26.38}},
    )
    script.add(ShutdownResumed, 23.1, lock=True)
    script.pod(
        "broker-0",
        1,
        19.901,
        grace=15,
        asked=30,
        priority=100_000,
        containers={"kafka": {"term": 19.901, "ended": 25.2}},
    )
    script.phase(2, 26.401, 29.0, seconds=10)
    for name, ended in (("coredns-6d4b75cb6d-jx8vn", 28.97), ("kube-proxy-m4h7t", 26.6), ("fluent-bit-9sx2w", 27.4)):
        containers = {"main": {"term": 26.402, "ended": ended}}
        script.pod(f"kube-system/{name}", 2, 26.402, grace=10, asked=10, priority=CRITICAL, containers=containers)
    script.add(LockReleased, 29.002, why="every phase is over")
    return script.events()


def cancelled() -> list[AnyEvent]:
    """Cancelled in its first phase: one pod has ended, one is ending, the rest was not touched."""
    script = Script((0, 30), (CRITICAL, 15), name="20261120t081500z-77aa", granted=None, how="reboot")
    script.phase(0, 0.003, 3.2, PhaseEnd.CANCELLED, seconds=30)
    script.pod("web-1", 0, 0.004, grace=30, containers={"nginx": {"term": 0.004, "ended": 1.1}})
    script.pod("web-2", 0, 0.004, grace=30, containers={"nginx": {"term": 0.004}}, outcome=None)
    script.add(ShutdownCancelled, 3.2, why="logind says so: PrepareForShutdown(false)")
    return script.events()


def crowd(pods: int = 110) -> list[AnyEvent]:
    """As many pods as a node may have, in two phases, every ninth with two containers, every tenth killed."""
    script = Script((0, 30), (CRITICAL, 10), name="20261122t000000z-0110", granted=60.0, requested=40.0)
    script.phase(0, 0.002, 30.0, PhaseEnd.RAN_OUT, seconds=30)
    for number in range(pods):
        hook = number % 4 * 1.5
        ended = hook + 0.3 + number % 7
        facts = {"hook": (0.003, hook, True, "")} if hook else {}
        killed = number % 10 == 0
        facts |= {"term": hook or 0.003, "ended": 29.9 if killed else ended}
        containers = {"app": facts | ({"kill": 29.8, "code": 137} if killed else {})}
        if number % 9 == 0:
            containers["envoy"] = {"term": facts["ended"], "ended": facts["ended"] + 0.05}
        outcome = PodOutcome.KILLED if killed else PodOutcome.GRACEFUL
        script.pod(
            f"team-{number % 5}/service-{number:03}-6c8f7b9d4c-q{number:03}",
            0,
            0.003,
            grace=30,
            asked=60 if number % 20 == 0 else 30,
            containers=containers,
            outcome=outcome,
        )
    script.phase(1, 30.0, 30.0, PhaseEnd.EMPTY, seconds=10)
    script.add(LockReleased, 30.001, why="every phase is over")
    return script.events()


def observed() -> list[AnyEvent]:
    """Mode Observe: nothing is ended."""
    script = Script((0, 30), name="20261119t010203z-0b5e", mode=ShutdownMode.OBSERVE, lock=False)
    script.phase(0, 0.003, 0.004, seconds=30)
    script.pod("web-1", 0, 0.003, grace=30, containers={"nginx": {"over": 0.003}}, outcome=PodOutcome.OBSERVED)
    script.add(LockReleased, 0.005, why="every phase is over")
    return script.events()


def hostile() -> list[AnyEvent]:
    """Names and messages that try to be markup or to steer a terminal, and one as long as Kubernetes allows."""
    script = Script((0, 30), name="20261118t000000z-e511", how='<img src="x">')
    script.phase(0, 0.0, 2.0, seconds=30)
    script.pod(
        "<script>alert(1)</script>",
        0,
        0.0,
        grace=30,
        containers={
            '"><b>': {
                "hook": (0.0, 1.0, False, "\x1b[31mred\x1b[0m &amp; <i>\x00\nsecond line"),
                "term": 1.0,
                "ended": 2.0,
            }
        },
    )
    script.pod("n" * 63 + "/" + "p" * 253, 0, 0.0, grace=30, containers={"c" * 63: {"term": 0.0, "ended": 1.0}})
    script.add(NoteWritten, 1.0, text="</svg><script>alert(2)</script> " + "word " * 60)
    script.add(LockReleased, 2.0, why="every phase is over")
    return script.events()
