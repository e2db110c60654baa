"""The reference page of scenarios, from the tables that read them (pure)."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from lastcall_lab.simulation.scenario_text.field_readers import Table
from lastcall_lab.simulation.scenario_text.scenario_fields import (
    ASSUME,
    CONTROLLER,
    GUARD,
    LEADER,
    NODES,
    TOP,
    WORKLOADS,
)
from lastcall_lab.simulation.scenario_text.sentence_forms import SentenceForm
from lastcall_lab.simulation.scenario_text.sentences import EVENTS, EXPECTATIONS

_HEAD = """# Scenarios

What [`lastcall simulate`](cli.md#lastcall-simulate) reads: one YAML document. [How to write one](../how-to/simulate.md).
This page is made from the tables that read it: `python -m lastcall_lab.simulation.scenario_text.reference_page`.

Durations are Go's, as in all files of Kubernetes: `500ms`, `45s`, `1m30s`. Rates are `20/s`, `6/m` or `1/h`. An unknown
field is an error, and all that is wrong with a file is told at once. After a semicolon stands what holds if a field is
left out."""

_CONTROLLER = """With `controller` a [FencePolicy](fence-policy.md) holds for all nodes, whose only fencer is the BMC of each machine, or none
with `bmc: false`. A short form is `controller: lastcall`."""

_GUARD = """With `guard` each workload with `preparesIn` has a GuardPolicy, and an application that takes so long to prepare the end of
a pod. A short form is `guard: lastcall`."""

_ASSUME = """With `lastcall simulate --state FILE`, [your own cluster](../how-to/simulate-my-cluster.md) takes the place of `nodes`,
`priorityClasses`, `objects` and `workloads`, which are errors then. What its containers do is not in the file, but for
preStop hooks that sleep. `assume` says it, with these fields:"""

_EVENTS = """Each time in `timeline` has one sentence or a list of them. Words in capitals are gaps, and what stands in brackets may be
left out. `NODES` is a machine's name, `all nodes`, `half of the nodes` (the seed decides which), or a label and its value
as in `rack b`; several are joined by commas and `and`. `for DURATION` says when it is undone: without it, never, unless
the table says otherwise. Where machines may be named and are not, all programs are meant."""

_EXPECTATIONS = """Each is a sentence. `WORKLOAD` is a workload's name, or `every workload`: then it must hold for each of them. Beside what
a scenario expects, lastcall's own promises are judged in every rehearsal: a broken one fails it."""


def reference_page() -> str:
    """The whole page."""
    parts = [
        _HEAD,
        "## Scenario",
        _field_table(TOP),
        "## Nodes",
        _field_table(NODES),
        "## Workloads",
        _field_table(WORKLOADS),
        "A `leader` is one of the pods, which alone does the work:",
        _field_table(LEADER),
        "## The failover controller",
        _CONTROLLER,
        _field_table(CONTROLLER),
        "## The guard",
        _GUARD,
        _field_table(GUARD),
        "## What is assumed of your own cluster",
        _ASSUME,
        _field_table(ASSUME),
        "## What happens",
        _EVENTS,
        _sentence_table(EVENTS),
        "## What must hold",
        _EXPECTATIONS,
        _sentence_table(EXPECTATIONS),
    ]
    return "\n\n".join(parts) + "\n"


def _field_table(table: Table) -> str:
    return "\n".join(_table_rows("field", ((name, field.about) for name, field in table.items())))


def _sentence_table(forms: Sequence[SentenceForm[Any]]) -> str:
    return "\n".join(_table_rows("sentence", ((form.explained_text, form.about) for form in forms)))


def _table_rows(what: str, rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield f"| {what} | |"
    yield "|---|---|"
    for name, about in rows:
        yield f"| `{name}` | {about} |"


if __name__ == "__main__":
    sys.stdout.write(reference_page())
