"""Redis, and Patroni with PostgreSQL and etcd, when a member is asked for in five states: with the guard and without it.

Real servers in pods of a lab, and a client that counts its acknowledged writes. The tests play the same with the guard.
"""

import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.guard import application_states as states
from support.guard.guarded_patroni import GuardedPatroni, why_not
from support.guard.guarded_redis import GuardedRedis

NAME = "guard-states"
HEAD = ["application", "state", "asked by", "guard", "acknowledged", "lost", "longest pause", "held as", "verdict"]
LARGE = 50_000
"""Bytes of a value: what a frozen replica lacks then exceeds the system's buffers."""

STATES = (
    ("a: healthy", "kubectl delete", states.delete_leader, 1000),
    ("a: healthy", "kubectl drain", states.drain_leader, 1000),
    ("a: healthy", "rollout restart", states.roll, 1000),
    ("b: replicas frozen", "kubectl delete", states.ask_while_replicas_are_frozen, LARGE),
    ("c: one replica of two frozen", "kubectl delete", states.ask_one_member_short, LARGE),
    ("d: grace 1 s, the end takes longer", "kubectl delete", states.ask_in_short_grace, LARGE),
    ("e: leader and replica at once", "kubectl delete", states.ask_for_two_at_once, 1000),
    *(
        (state, by, partial(play, way=way), size)
        for by, way in (("kubectl drain", states.KubectlDrain), ("rollout restart", states.RolloutRestart))
        for state, play, size in (
            ("b: replicas frozen", states.ask_while_replicas_are_frozen, LARGE),
            ("c: one replica of two frozen", states.ask_one_member_short, LARGE),
            ("e: leader and replica at once", states.ask_for_two_at_once, 1000),
            ("d: grace 1 s, the end takes longer", states.ask_in_short_grace, LARGE),
        )
    ),
)
ETCD = ("c: one member of etcd frozen", "kubectl delete", states.delete_etcd_one_member_short, 1000)


@dataclass(frozen=True)
class StateRow:
    """A line of the table: one state, once. ``found`` None: the application was not whole again."""

    application: str
    state: str
    by: str
    guarded: bool
    found: states.Observed | None

    @property
    def met(self):
        """With the guard nothing is lost; without it there is no target."""
        return (self.found is not None and self.found.lost == 0) if self.guarded else None

    def cells(self):
        guard = "yes" if self.guarded else "no"
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        head = [self.application, self.state, self.by, guard]
        if self.found is None:
            return [*head, "", "", "not whole after two minutes", "", verdict]
        held, found = self.found.asked.held.get("state", ""), self.found
        return [*head, f"{found.acknowledged:,}", f"{found.lost:,}", f"{found.pause:.1f} s", held, verdict]


class GuardStates:
    """All states of both applications; ``left_out`` says why one is missing."""

    def __init__(self, *, quick, tell):
        self._quick = quick
        self._tell = tell
        self.left_out = []

    def rows(self):
        """Four labs, one after the other."""
        applications = []
        if shutil.which("redis-server"):
            applications.append(("Redis", GuardedRedis, STATES))
        else:
            self.left_out.append("guard-states, Redis: redis-server is not installed")
        if reason := why_not():
            self.left_out.append(f"guard-states, Patroni: {reason}")
        else:
            applications.append(("Patroni", GuardedPatroni, (*STATES[:5], ETCD, *STATES[5:])))
            applications.append(("Patroni, lag 64 MiB", _LaggingPatroni, (STATES[3],)))
        found = []
        for title, make, played in applications:
            for guarded in (False, True):
                found += self._play(title, make, played[:1] if self._quick else played, guarded=guarded)
        return found

    def _play(self, title, make, played, *, guarded):
        """One lab; another one after a state from which the application does not recover."""
        left, found = list(played), []
        while left:
            directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
            application = make(directory, guarded=guarded)
            try:
                application.start()
                observed = True
                while left and observed:
                    state, by, play, size = left.pop(0)
                    observed = self._observe(application, play, size)
                    found.append(StateRow(title, state, by, guarded, observed))
                    self._tell("  ".join(found[-1].cells()))
            finally:
                application.end()
                shutil.rmtree(directory, ignore_errors=True)
        return found

    def _observe(self, application, play, size):
        try:
            observed = states.observe(application, play, size=size)
            application.clear()
            return observed
        except AssertionError as error:
            self._tell(str(error)[:2000])
            return None


class _LaggingPatroni(GuardedPatroni):
    """A replica may take over that lacks 64 MiB, so that somebody leads soon."""

    def __init__(self, directory, *, guarded):
        super().__init__(directory, guarded=guarded, most_lag=64 * 2**20)
