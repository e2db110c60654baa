"""An outcome as JSON: stable, for programs."""

from collections.abc import Sequence
from typing import Any

import msgspec

from lastcall.lab.simulation.outcome import Outcome
from lastcall.lab.simulation.sentences import of_expectation


def document(outcome: Outcome) -> dict[str, Any]:
    """The fields of the outcome in camelCase; an expectation is its sentence, and ``good`` says whether all is well."""
    told: dict[str, Any] = {"scenario": outcome.scenario, "seed": outcome.seed, "good": outcome.good}
    told |= msgspec.to_builtins(outcome)
    told["verdicts"] = [
        {"expectation": of_expectation(one.expectation), "holds": one.holds, "measured": one.measured}
        for one in outcome.verdicts
    ]
    return told


def summary(scenario: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Of many seeds: how many failed, and what was broken in each of those."""
    failed = [one for one in outcomes if not one.good]
    return {
        "scenario": scenario,
        "seeds": len(outcomes),
        "failures": len(failed),
        "failed": [
            {
                "seed": one.seed,
                "verdicts": [verdict for verdict in document(one)["verdicts"] if not verdict["holds"]],
                "violations": msgspec.to_builtins(one.violations),
            }
            for one in failed
        ],
    }
