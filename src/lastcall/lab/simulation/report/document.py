"""An outcome as JSON: stable, for programs."""

from typing import Any

import msgspec

from lastcall.lab.simulation.outcome import Outcome
from lastcall.lab.simulation.tally import Tally
from lastcall.lab.simulation.wording.sentences import of_expectation


def document(outcome: Outcome) -> dict[str, Any]:
    """The fields of the outcome in camelCase; an expectation is its sentence, and ``good`` says whether all is well."""
    told: dict[str, Any] = {"scenario": outcome.scenario, "seed": outcome.seed, "good": outcome.good}
    told |= msgspec.to_builtins(outcome)
    told["verdicts"] = [
        {"expectation": of_expectation(one.expectation), "holds": one.holds, "measured": one.measured}
        for one in outcome.verdicts
    ]
    return told


def summary(tally: Tally) -> dict[str, Any]:
    """Of many seeds: how many failed, what was broken in each of those, and which faults struck in all."""
    return {
        "scenario": tally.name,
        "seeds": tally.seeds,
        "failures": len(tally.failed),
        "failed": [
            {
                "seed": one.seed,
                "verdicts": [verdict for verdict in document(one)["verdicts"] if not verdict["holds"]],
                "violations": msgspec.to_builtins(one.violations),
            }
            for one in tally.failed
        ],
        "faults": [
            {"kind": one.kind, "count": one.times, "seeds": one.seeds, "steps": dict(one.steps)}
            for one in tally.coverage.hits()
        ],
        "neverStruck": tally.coverage.never(),
    }
