"""An outcome as JSON: stable, for programs."""

from typing import Any

import msgspec

from lastcall_lab.simulation.outcome import RehearsalOutcome
from lastcall_lab.simulation.scenario_text.sentences import expectation_sentence
from lastcall_lab.simulation.tally import OutcomeTally


def outcome_document(outcome: RehearsalOutcome) -> dict[str, Any]:
    """The fields of the outcome in camelCase; an expectation is its sentence, and ``is_good`` says whether all is well."""
    told: dict[str, Any] = {"scenario": outcome.scenario, "seed": outcome.seed, "good": outcome.is_good}
    told |= msgspec.to_builtins(outcome)
    told["verdicts"] = [
        {"expectation": expectation_sentence(one.expectation), "holds": one.holds, "measured": one.measured}
        for one in outcome.verdicts
    ]
    return told


def summary_document(tally: OutcomeTally) -> dict[str, Any]:
    """Of many seeds: how many failed, what was broken in each of those, and which faults struck in all."""
    return {
        "scenario": tally.name,
        "seeds": tally.seeds,
        "failures": len(tally.failed),
        "failed": [
            {
                "seed": one.seed,
                "verdicts": [verdict for verdict in outcome_document(one)["verdicts"] if not verdict["holds"]],
                "violations": msgspec.to_builtins(one.violations),
            }
            for one in tally.failed
        ],
        "faults": [
            {"kind": one.kind, "count": one.times, "seeds": one.seeds, "steps": dict(one.steps)}
            for one in tally.coverage.hits()
        ],
        "neverStruck": tally.coverage.missing_kinds(),
    }
