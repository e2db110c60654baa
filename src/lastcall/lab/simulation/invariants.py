"""What must never happen, judged by what machines, actors and storage tell (pure)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from lastcall.lab.simulation.lives import Life, lives
from lastcall.lab.simulation.truth import Happening, Power
from lastcall.lab.volumes.records import Record, violations
from lastcall.model.pods import DEFAULT_GRACE, Pod

REACTION = 1.0
"""Seconds that a start under way may take to end after a shutdown has begun."""

LINGER = 5.0
"""Seconds after the last pod's end in which the lock must be released."""

_SLACK = 0.01


class Rule(Enum):
    """The promises."""

    ONE_IDENTITY = "one live pod per StatefulSet identity"
    ONE_WRITER = "no volume written by two"
    NO_DETACH_IN_USE = "no detach from a machine that may write"
    PRE_STOP = "preStop honoured while time is left"
    NO_START = "no pod started on a node that goes down"
    LOCK_LOST = "the lock is held when the machine goes down"
    LOCK_KEPT = "the lock is released when the pods have ended"
    ENDS = "every operation ends, or says what it waits for"
    OTHERS = "nothing of others is changed"


@dataclass(frozen=True)
class Violation:
    """When which promise was broken, and how, in words."""

    at: float
    rule: Rule
    what: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run's truth.

    ``left`` are sentences about what had not come to its end, ``changed`` about what others had set and is gone.
    """

    happenings: Sequence[Happening]
    powers: Sequence[Power]
    records: Sequence[Record]
    pods: Mapping[str, Pod]
    requested: float
    """What the phases ask for together, in seconds."""
    end: float
    left: Sequence[str] = ()
    changed: Sequence[str] = ()


def judge(run: Run) -> list[Violation]:
    """All violations, in the order of their times."""
    all_lives = lives(run.happenings, run.powers)
    found = [
        *_identities(run, all_lives),
        *_volumes(run),
        *_hooks(run, all_lives),
        *_starts(run, all_lives),
        *_locks(run, all_lives),
        *(Violation(run.end, Rule.ENDS, what) for what in run.left),
        *(Violation(run.end, Rule.OTHERS, what) for what in run.changed),
    ]
    return sorted(found, key=lambda one: one.at)


# -- pods --------------------------------------------------------------------------------------------------------------


def _identities(run: Run, all_lives: Sequence[Life]) -> Iterator[Violation]:
    seen: dict[tuple[str, str], list[Life]] = {}
    for life in all_lives:
        pod = run.pods[life.uid]
        if any(owner.kind == "StatefulSet" for owner in pod.metadata.owner_references or ()):
            same = seen.setdefault((pod.metadata.namespace, pod.metadata.name), [])
            for other in same:
                if other.uid != life.uid and (other.ended is None or other.ended > life.began):
                    what = f"{pod.key} began on {life.node} while it lived on {other.node}"
                    yield Violation(life.began, Rule.ONE_IDENTITY, what)
                    break
            same.append(life)


def _volumes(run: Run) -> Iterator[Violation]:
    rules = {"TWO_WRITERS": Rule.ONE_WRITER, "DETACHED_IN_USE": Rule.NO_DETACH_IN_USE}
    for one in violations(run.records):
        yield Violation(one.at, rules[one.fault.name], f"{one.volume}: {one.fault.value} ({', '.join(one.nodes)})")


def _hooks(run: Run, all_lives: Sequence[Life]) -> Iterator[Violation]:
    """Before SIGTERM, or SIGKILL without one, a hook has run to its end, or the pod's time was over."""
    for life in all_lives:
        pod = run.pods[life.uid]
        signals = [at for at in (life.term, life.kill) if at is not None]
        if not signals or not _has_hook(pod, life.container):
            continue
        at = min(signals)
        if any(len(hook) == 2 and hook[1] <= at for hook in life.hooks):
            continue
        if at + _SLACK < _out_of_time(run, life, pod):
            how = "its hook still ran" if life.hooks else "its hook had not run"
            yield Violation(at, Rule.PRE_STOP, f"{pod.key} on {life.node}: {how}, and there was time left")


def _has_hook(pod: Pod, name: str) -> bool:
    return any(one.name == name and one.pre_stop for one in pod.spec.containers)


def _out_of_time(run: Run, life: Life, pod: Pod) -> float:
    """When its grace was over at the earliest, as far as can be seen from outside."""
    grace = pod.spec.termination_grace_period_seconds
    grace = DEFAULT_GRACE if grace is None else grace
    began = life.hooks[0][0] if life.hooks else math.inf
    over = began + grace
    for press in _shutdowns(run, life.node):
        if life.hooks and press.at <= life.hooks[-1][0] + grace and press.granted < run.requested:
            over = min(over, press.at)
        if not life.hooks and press.at + press.granted / 2 <= (life.term or life.kill or 0.0):
            over = min(over, press.at + press.granted / 2)
    return over


# -- machines ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shutdown:
    at: float
    node: str
    granted: float
    until: float
    cancelled: bool
    locked: bool


_ENDS = ("off", "cancelled")


def _shutdowns(run: Run, node: str = "") -> list[_Shutdown]:
    """From the button to power off, or to the shutdown's being called off."""
    found = []
    for index, one in enumerate(run.powers):
        if one.what in ("pressed", "pressed without a lock") and node in ("", one.node):
            ends = (other for other in run.powers[index + 1 :] if other.node == one.node and other.what in _ENDS)
            end = next(ends, None)
            until = end.at if end else run.end
            cancelled = end is not None and end.what == "cancelled"
            found.append(_Shutdown(one.at, one.node, one.amount, until, cancelled, locked=one.what == "pressed"))
    return found


def _starts(run: Run, all_lives: Sequence[Life]) -> Iterator[Violation]:
    for shutdown in _shutdowns(run):
        for life in all_lives:
            if life.node == shutdown.node and shutdown.at + REACTION < life.began < shutdown.until:
                what = f"{run.pods[life.uid].key} was started on {life.node}, which had been going down"
                yield Violation(life.began, Rule.NO_START, f"{what} for {life.began - shutdown.at:.1f} s")


def _locks(run: Run, all_lives: Sequence[Life]) -> Iterator[Violation]:
    for shutdown in _shutdowns(run):
        if not shutdown.locked:
            yield Violation(shutdown.at, Rule.LOCK_LOST, f"{shutdown.node} went down without a lock")
            continue
        if shutdown.cancelled:
            continue
        ends = [
            life.ended
            for life in all_lives
            if life.node == shutdown.node and life.ended is not None and shutdown.at <= life.ended <= shutdown.until
        ]
        last = max(ends, default=shutdown.at)
        alive = any(life.node == shutdown.node and (life.cut and life.ended == shutdown.until) for life in all_lives)
        died = any(
            one.what == "agent killed"
            and one.node == shutdown.node
            and shutdown.at - LINGER <= one.at <= shutdown.until
            for one in run.powers
        )
        if not alive and not died and shutdown.until > last + LINGER:
            what = f"{shutdown.node} was held for {shutdown.until - last:.1f} s after its last pod had ended"
            yield Violation(shutdown.until, Rule.LOCK_KEPT, what)
