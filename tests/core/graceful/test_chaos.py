"""Random shutdowns with random faults in virtual time, judged by the truth: what reached the containers, and when.

Nothing that the agent says of itself is believed. ``LASTCALL_CHAOS_SEEDS=5000`` tries so many seeds instead of the
default, ``LASTCALL_CHAOS_SEEDS=1234:1235`` a certain one.
"""

import math
import os

import pytest
from support.agents.chaos import play

from lastcall.graceful.logind_connection import BACKOFF
from lastcall.graceful.planning.phase_assignment import index_for
from lastcall.graceful.planning.remaining_time import RESERVE, next_phase_seconds
from lastcall.graceful.planning.time_windows import MINIMUM
from lastcall.graceful.shutdown.run import ANNOUNCE_SECONDS
from lastcall.model.shutdown import ShutdownMode
from lastcall_lab import virtual

MARGIN = 0.1
"""ActorRuntime's kill_seconds."""

SOON = 0.05
"""What takes no time takes no more than this."""

AGAIN = 0.6
"""Within which a runtime that is back is found."""

BATCH = 50


class Judge:
    """What is promised in a whole history. ``violations`` are sentences."""

    def __init__(self, history):
        self.history, self.violations = history, list(history.errors)
        self.first, self.exits = {}, {}
        for d in history.deliveries:
            self.first.setdefault(d.uid, d.at)
            if d.what == "exit":
                self.exits[d.uid, d.container] = d.at
        self.off = history.presses[-1].end

    def verdict(self):
        self._signals()
        before = None
        for number, press in enumerate(self.history.presses):
            later = self.history.presses[number + 1 :]
            shutdown = Shutdown(self, press, before=before, until=later[0].at if later else self.history.now)
            shutdown.judge()
            before = shutdown
        return self.violations

    def violated(self, at, text):
        self.violations.append(f"{at:.3f} s: {text}")

    def ended(self, uid):
        """When the last container of a pod ended; inf if one has not."""
        return max(self.exits.get((uid, name), math.inf) for name in self.history.born[uid][2])

    def _signals(self):
        """SIGTERM once, never during a hook; no two hooks of a container at once, and none after SIGTERM.

        But a life that ends when its shutdown was called off forgets what it has begun: the journal is closed, and
        the container that the next shutdown finds may be another one of the same name.
        """
        termed, running = {}, {}
        for d in self.history.deliveries:
            who = (d.uid, d.container)
            if d.what in ("hook", "hook over"):
                running[who] = running.get(who, 0) + (1 if d.what == "hook" else -1)
                if running[who] > 1 or (who in termed and not self._forgotten(self.first[d.uid], d.at)):
                    self.violated(d.at, f"a hook of {who} although one ran, or after SIGTERM")
            elif d.what == "TERM":
                if who in termed or running.get(who):
                    self.violated(d.at, f"SIGTERM to {who} for the second time, or during its hook")
                termed[who] = d.at

    def _forgotten(self, since, at):
        cancelled = [
            p.cancelled for p in self.history.presses if p.cancelled is not None and since <= p.cancelled <= at
        ]
        return bool(cancelled) and self.history.dead.touch(cancelled[0], at)


class Shutdown:
    """What is promised of one press of the button."""

    def __init__(self, judge, press, *, before, until):
        self.judged, self.history, self.press, self.until = judge, judge.history, press, until
        self.at, self.end = press.at, min(press.end, until)
        told = [(at, what) for at, what in self.history.told if self.at <= at < until]
        self.face = [(at, what) for at, what in told if what in ("refuse", "not ready", "back")]
        self.seen = next((at for at, what in told if what == "refuse" and at <= self.end), None)
        self.config = self.history.config(self.at if self.seen is None else self.seen)
        self.plan, self.asked = self.config.groups, self.config.requested_seconds
        self.before = before

    # -- what is known -------------------------------------------------------------------------------------------------

    @property
    def stale(self):
        """Nobody of ours can have looked between the shutdown before this one, which was called off, and this one.

        logind gives shutdowns no names: who was dead or cut off all the while takes this one for that one, and goes on
        with its phases and its deadline. Nothing about times can be said then.
        """
        before = self.before
        return bool(before and before.seen is not None and before.noticed_by >= self.at) or bool(
            before and before.stale and before.press.cancelled is None
        )

    @property
    def noticed_by(self):
        """When the cancellation must have been seen: at once, or when agent and line are back and have found each other."""
        dead, cut_off, settle = self.history.dead, self.history.cut_off, BACKOFF[-1] + 1
        at = self.press.cancelled
        while at < math.inf and (dead.touch(at - settle, at) or cut_off.touch(at - settle, at)):
            at = max(spans.last_end(at - settle, at) for spans in (dead, cut_off)) + settle + SOON
        return at + SOON

    def deadline(self, begun):
        """Until when the lock is held if the shutdown was seen at ``begun``."""
        return begun + (self.asked if self.press.limit >= self.asked else max(0.0, self.press.limit - RESERVE))

    def pods(self):
        """What ran when the shutdown was seen, by uid."""
        return {u: spec for u, (born, spec, _) in self.history.born.items() if born <= self.seen < self.judged.ended(u)}

    def mine(self):
        """The pods whose end began in this shutdown."""
        return [uid for uid in self.pods() if self.at <= self.judged.first.get(uid, math.inf) <= self.end]

    def phase(self, uid):
        return index_for(self.plan, self.history.born[uid][1].spec.priority)

    def grace(self, uid):
        grace = self.history.born[uid][1].spec.termination_grace_period_seconds
        return math.inf if grace is None else grace

    def troubled(self, end):
        """Somebody was dead or away before ``end``: what began then may have been delivered later than it began."""
        return self.history.dead.touch(self.at, end) or self.history.away.touch(self.at, end)

    def began(self, uids):
        """The first delivery to any of these pods, or None."""
        return min((self.judged.first[uid] for uid in uids), default=None)

    def start(self, index):
        """When a phase began at the latest, None if no pod of it was begun."""
        return self.began([uid for uid in self.mine() if self.phase(uid) == index])

    def given(self, index, start):
        """The least that a phase got: as if all after it had pods, and by the clock of the power button."""
        return next_phase_seconds(self.plan[index:], self.deadline(self.at) - start)

    def times(self, uid):
        """Until when its hooks and sidecars have time, and until when it is not killed, at the earliest.

        Whoever gets SIGTERM only because the time is over still has two seconds, or a half of less than four.
        """
        index, began = self.phase(uid), self.judged.first[uid]
        start = self.start(index)
        given = self.given(index, start)
        if self.troubled(start):
            start = self.seen
        if self.troubled(began):
            began = start
        end = min(start + max(given, MARGIN), max(self.deadline(self.at), start))
        grace, last = began + min(self.grace(uid), given), end - min(MARGIN, (end - start) / 2)
        return min(grace, last - min(MINIMUM, max(0, last - began) / 2)) - SOON, min(grace, last) - SOON

    # -- what is promised ----------------------------------------------------------------------------------------------

    def judge(self):
        if self.end == math.inf:
            self.judged.violated(self.at, "never ended")
        if self.press.healthy and self.config.is_enabled:
            self._prepared()
        if not self.config.is_enabled or self.config.mode is ShutdownMode.OBSERVE or self.seen is None or self.stale:
            return
        self._face()
        self._order()
        self._latecomers()
        for uid in self.mine():
            self._not_cut_short(uid)
            self._no_longer_than_allowed(uid)
        if self.press.down is not None:
            self._lock()
        if self.press.cancelled is not None:
            self._cancelled()

    def _prepared(self):
        """With nothing wrong for long, the lock is held twice, and the button is noticed at once."""
        if self.press.unlocked or not self.press.kept:
            self.judged.violated(self.at, "not armed")
        if self.config.mode is ShutdownMode.ENFORCE and (self.seen is None or self.seen > self.at + SOON):
            self.judged.violated(self.at, "the button was not noticed")

    def _face(self):
        """Ready=False before anything happens to a pod, unless the node cannot be told in time."""
        for at, what in self.face:
            if what == "back" and self.seen < at < self.end:
                self.judged.violated(at, "the node was made ready in the middle of a shutdown")
        first = self.began(self.mine())
        if first is None or self.history.machine.node.slow >= ANNOUNCE_SECONDS:
            return
        if not any(what == "not ready" and at <= first for at, what in self.face):
            self.judged.violated(first, "a pod was touched before Ready=False")

    def _order(self):
        """Nothing of a phase before all of the lower ones have ended, or their time has."""
        first = {uid: self.judged.first[uid] for uid in self.mine()}
        for uid in self.pods():
            index, start = self.phase(uid), self.start(self.phase(uid))
            over = self.judged.ended(uid)
            for other, at in first.items():
                if self.phase(other) <= index or over <= at:
                    continue
                if start is None and uid in self.judged.first:
                    start = self.seen  # a shutdown before this one had begun with it
                if start is None:
                    self.judged.violated(at, f"{other} was begun before {uid}, which comes earlier")
                elif at < (self.seen if self.troubled(at) else start) + self.given(index, start) - SOON:
                    self.judged.violated(at, f"{other} was begun before {uid} had ended or run out of time")

    def _latecomers(self):
        """A pod that is found late ends with the next phase, if its own has begun. After the last nobody looks."""
        for uid, (born, _, _) in self.history.born.items():
            starts = [self.start(index) for index in range(self.phase(uid), len(self.plan))]
            next_ = min((at for at in starts if at is not None and at > born + SOON), default=None)
            if born <= self.seen or next_ is None or self.troubled(next_):
                continue
            if self.judged.first.get(uid, math.inf) > next_ + SOON:
                self.judged.violated(next_, f"{uid} came late and was forgotten")

    def _not_cut_short(self, uid):
        """Hooks, sidecars and main containers have their time."""
        (polite, kill), spec = self.times(uid), self.history.born[uid][1]
        mine = [d for d in self.history.deliveries if d.uid == uid and d.at <= self.until]
        for d in mine:
            if d.what == "KILL" and d.at < kill:
                self.judged.violated(d.at, f"SIGKILL to {uid} {d.container}, which had time until {kill:.3f}")
            if d.what == "TERM" and d.at < polite:
                self._hook_was_over(d, mine)
                self._turn(d, [c.name for c in spec.spec.containers], [c.name for c in spec.spec.init_containers])

    def _hook_was_over(self, term, mine):
        """It ran to its end, if there is one."""
        hook = self.history.born[term.uid][1].spec.containers[0].pre_stop
        if not hook or self.troubled(term.at):  # then it may be broken off, fail, or its time be over
            return
        seconds = hook.sleep.seconds if hook.sleep else self.history.born[term.uid][2][term.container].hook
        runs = [d.at for d in mine if d[2] == term.container and d.what in ("hook", "hook over") and d.at <= term.at]
        if len(runs) != 2 or runs[1] - runs[0] < seconds - SOON:
            self.judged.violated(term.at, f"SIGTERM to {term.uid} {term.container}, whose hook had not ended")

    def _turn(self, term, mains, sidecars):
        """A sidecar's comes after the main containers and the sidecars that were started after it."""
        if term.container in sidecars:
            for name in (*mains, *sidecars[sidecars.index(term.container) + 1 :]):
                if self.judged.exits.get((term.uid, name), math.inf) > term.at:
                    self.judged.violated(term.at, f"SIGTERM to {term.uid} {term.container} before {name} had ended")

    def _no_longer_than_allowed(self, uid):
        """Grace and two seconds more, and never beyond the phase."""
        began, index = self.judged.first[uid], self.phase(uid)
        end = self.start(index) + max(self.plan[index].seconds, MARGIN)
        if self.until < end:
            end = math.inf  # another shutdown took the pod over, which has its own phases
        bound = min(began + self.grace(uid) + MINIMUM, end)
        dead, away, full = self.history.dead, self.history.away, self.history.full
        if dead.touch(began, bound):
            if self.press.cancelled is not None or full.touch(self.at, bound) or self.cut_off(bound):
                return  # nobody comes back to it; or by a journal that could not be written, or not before logind is back
            bound = max(bound, dead.last_end(began, bound) + 1 + min(ANNOUNCE_SECONDS, self.history.machine.node.slow))
        if away.touch(began, bound):
            bound = max(bound, away.last_end(began, bound) + AGAIN)
        for container in self.history.born[uid][2]:
            self._over(uid, container, bound)

    def _over(self, uid, container, bound):
        """An agent that comes late with SIGTERM still waits two seconds with SIGKILL."""
        mine = [d for d in self.history.deliveries if (d.uid, d.container) == (uid, container)]
        back = self.history.dead.last_end(self.judged.first[uid], bound)
        if back > self.judged.first[uid] and any(d.what == "TERM" and d.at >= back for d in mine):
            bound += MINIMUM
        if bound > self.judged.off - SOON or self.history.dead.touch(bound, bound + SOON):
            return
        if not any(d.what in ("exit", "KILL") and d.at <= bound + SOON for d in mine):
            self.judged.violated(bound, f"{uid} {container} has run longer than it may")

    def cut_off(self, end):
        """Whether logind could not be asked in this shutdown."""
        return self.history.cut_off.touch(self.at - BACKOFF[-1], end)

    # -- the lock ------------------------------------------------------------------------------------------------------

    def _lock(self):
        down = self.press.down
        running = [uid for uid in self.pods() if self.judged.ended(uid) > down]
        if running and down < min(self.deadline(self.seen), self.at + self.press.limit) - SOON:
            self._lost(running)
        dead_since = self.history.dead.touch(self.at, down)
        if dead_since and (self.history.full.touch(self.at, down) or self.cut_off(down)):
            return  # the shutdown began anew for want of a journal, or could not be gone on with for want of logind
        if running:
            self._over_by(self.deadline(self.seen) + SOON)
        elif not [u for u in self.history.born if self.judged.ended(u) > down]:
            self._let_go()

    def _lost(self, running):
        """Known limits: agent and holder killed, or the button pressed before there was a lock."""
        killed = self.history.unlocked and self.history.unlocked[-1][1]
        if not killed and not self.press.unlocked:
            self.judged.violated(self.press.down, f"the machine went down although {', '.join(running)} had time")

    def _let_go(self):
        """The moment the last pod is done; the first list of pods must have been had."""
        ended = max((self.judged.ended(uid) for uid in self.history.born), default=self.seen)
        announcing = min(self.history.machine.node.slow, ANNOUNCE_SECONDS)
        done = max([ended, *(begun + announcing for begun in self._begun())])
        for spans in (self.history.dead, self.history.away, self.history.dead):
            while done < self.press.down and spans.touch(done, done + 1):
                done = spans.last_end(done, done + 1) + AGAIN + announcing
        self._over_by(min(done + 1, self.deadline(self.seen) + SOON))

    def _begun(self):
        """When the shutdown was begun, and gone on with by another life."""
        return [at for at, what in self.face if what == "refuse"]

    def _over_by(self, at):
        if self.press.down > at:
            self.judged.violated(self.press.down, f"the lock was kept beyond {at:.3f}")

    # -- a cancel ------------------------------------------------------------------------------------------------------

    def _cancelled(self):
        """No further pod is begun, and the node is ready again.

        One that was begun before, while the runtime was away, is reached only when that is back.
        """
        begun_by, away = self.noticed_by, self.history.away
        if away.touch(self.at, begun_by):
            begun_by = max(begun_by, away.last_end(self.at, begun_by) + AGAIN)
        for uid, at in self.judged.first.items():
            if begun_by < at < self.until:
                self.judged.violated(at, f"{uid} was begun although the shutdown was called off")
        back = self.noticed_by + self.history.machine.node.slowly_back + SOON
        if back < self.until and not self.history.dead.touch(self.press.cancelled, back) and self.face[-1][1] != "back":
            self.judged.violated(self.until, f"the node is left as {self.face[-1][1]!r}")


def seeds():
    """Batches of seeds."""
    first, _, last = os.environ.get("LASTCALL_CHAOS_SEEDS", "600").rpartition(":")
    wanted = range(int(first or 0), int(last))
    return [wanted[at : at + BATCH] for at in range(0, len(wanted), BATCH)]


@pytest.mark.parametrize("batch", seeds(), ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_whatever_happens(batch):
    for seed in batch:
        history = virtual.run(play(seed))
        violations = Judge(history).verdict()
        if violations:
            said = "\n".join(violations)
            pytest.fail(f"seed {seed}\n{said}\n\n{history.timeline()}\n\nseed {seed}\n{said}", pytrace=False)
