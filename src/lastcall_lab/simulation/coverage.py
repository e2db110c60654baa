"""Fault coverage over many seeds: which faults occurred, what they hit, and which never occurred (pure)."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lastcall_lab.simulation.network_faults import OLD_START
from lastcall_lab.simulation.outcome import RehearsalOutcome
from lastcall_lab.simulation.scenario import Verb

_REFUSALS = ("409", "429", "500", "broken before", "broken after")
_IN_WORDS: Mapping[Verb, Sequence[str]] = {
    Verb.API_DOWN: ("API server down",),
    Verb.API_RESTART: ("API server down",),
    Verb.API_ERRORS: _REFUSALS,
    Verb.DATAGRAMS_DOUBLE: ("doubled datagram",),
    Verb.REQUESTS_LOST: ("lost request",),
    Verb.ANSWERS_LOST: ("lost answer",),
    Verb.STALE_LISTS: ("old list",),
    Verb.STALE_STARTS: (OLD_START,),
    Verb.API_SLOW: ("slow answer",),
    Verb.API_TORN: ("torn answer",),
    Verb.WATCH_LATE: ("late watch event",),
    Verb.WATCH_DOUBLE: ("doubled watch event",),
    Verb.WATCH_TORN: ("torn watch event",),
    Verb.WATCH_LOST: ("lost watch event",),
    Verb.WATCH_SILENT: ("silent watch",),
}
"""What is told of requests and watches is told of each one; of everything else the verb."""


def fault_kinds(verb: Verb) -> Sequence[str]:
    """What strikes when this is done, in the words of ``truth.Fault.kind``."""
    return _IN_WORDS.get(verb, (verb.value,))


class FaultHits(NamedTuple):
    """A kind of fault: how many times it struck, in how many seeds, and which steps how often, the most frequent first."""

    kind: str
    times: int
    seeds: int
    steps: Mapping[str, int]


class FaultCoverage:
    """Grows by outcomes. Machines are all alike: a step names none of them."""

    def __init__(self, verbs: Iterable[Verb] = ()) -> None:
        self._expected = tuple(dict.fromkeys(kind for verb in verbs for kind in fault_kinds(verb)))
        self._steps: dict[str, Counter[str]] = {}
        self._seeds: Counter[str] = Counter()

    def add(self, outcome: RehearsalOutcome) -> None:
        """One more seed."""
        names = "|".join(re.escape(node.name) for node in outcome.nodes)
        machine = re.compile(rf"^(?:{names})(?:[:,] |$)")
        for one in outcome.faults:
            self._steps.setdefault(one.kind, Counter())[machine.sub("", one.step) or "a machine"] += one.count
        self._seeds.update({one.kind for one in outcome.faults})

    def hits(self) -> list[FaultHits]:
        """By the order of the verbs, and then by name."""
        order = {kind: number for number, kind in enumerate(self._expected)}
        found = sorted(self._steps, key=lambda kind: (order.get(kind, len(order)), kind))
        return [
            FaultHits(
                kind, steps.total(), self._seeds[kind], dict(sorted(steps.items(), key=lambda one: (-one[1], one[0])))
            )
            for kind, steps in ((kind, self._steps[kind]) for kind in found)
        ]

    def missing_kinds(self) -> list[str]:
        """Kinds that should have struck, and have not."""
        return [kind for kind in self._expected if kind not in self._steps]
