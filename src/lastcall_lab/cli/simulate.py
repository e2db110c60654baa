"""``lastcall simulate``: simulates a whole cluster in virtual time, with shutdowns and faults."""

import json
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from lastcall.cli import cluster_access
from lastcall.errors import LastcallError
from lastcall.model.foreign_text import plain_text
from lastcall_lab.cli.simulate_cluster import OwnCluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lastcall_lab.simulation.recorded_cluster.state_file import RecordedState
    from lastcall_lab.simulation.runner import Story
    from lastcall_lab.simulation.scenario import Scenario, Verb

PROGRESS_EVERY = 25
"""Number of seeds between two progress messages in a terminal."""


@click.command("simulate", short_help="A cluster in virtual time: what a shutdown or a fault would do to it.")
@click.argument("scenario", required=False, metavar="SCENARIO")
@click.option("--seed", type=click.IntRange(0), help="What the scenario leaves open is decided by it.  [default: 1]")
@click.option("--seeds", type=click.IntRange(1), help="Try so many, from --seed on, on all processors.")
@click.option("--shrink", is_flag=True, help="Print the shortest scenario that still breaks the same promise, as YAML.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@click.option("--state", metavar="FILE", help="Your own cluster: what `kubectl get ... -A -o yaml` gives; - for stdin.")
@click.option("--from-cluster", is_flag=True, help="Your own cluster as it is now; it is only read.")
@cluster_access.cluster_options
@click.option("--list", "list_", is_flag=True, help="Only the names of the scenarios that come with lastcall.")
def command(
    *,
    scenario: str | None,
    seed: int | None,
    seeds: int | None,
    shrink: bool,
    output: str,
    state: str | None,
    from_cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    list_: bool,
) -> None:
    """A cluster in virtual time: what happens to its workloads when nodes shut down, and whether what must hold holds.

    SCENARIO is a YAML file, - for standard input, or the name of a scenario that comes with lastcall; in chaos,
    failover-chaos, kubelet-chaos and drain-chaos each seed has other workloads, shutdowns and faults. Control plane, kubelets and
    agents are the lab's and lastcall's own; minutes pass in milliseconds, and nothing of this machine is touched.

    Exit code 1 if an expectation of the scenario, or one of lastcall's promises, is broken; 2 if the scenario is wrong.
    """
    from lastcall_lab.simulation.runner import silence_loggers

    if list_:
        _list_scenarios()
        return
    if scenario is None:
        raise click.UsageError("SCENARIO is missing; --list names those that come with lastcall")
    own = OwnCluster(file=state, live=from_cluster, kubeconfig=kubeconfig, context=context)
    if shrink and (seeds is not None or own.source_option or output != "text"):
        raise click.UsageError("--shrink is for one seed of a scenario, and prints YAML")
    if seeds is not None and output == "html":
        raise click.UsageError("a page shows one seed: name it by --seed")
    silence_loggers()
    story, first = _find_story(scenario, own), 1 if seed is None else seed
    good = _print_shortest(story(first), first) if shrink else _play_seeds(story, first, seeds, output)
    if not good:
        sys.exit(1)


def _play_seeds(story: "Story", first: int, seeds: int | None, output: str) -> bool:
    """Prints one seed in full, or a summary of many."""
    return (
        _play_one(story(first), first, output)
        if seeds is None
        else _play_many(story, range(first, first + seeds), output)
    )


def _find_story(scenario: str, own: OwnCluster) -> "Story":
    """Finds a scenario: a random one differs with each seed."""
    from lastcall.adapters.host.bounded_reads import CONFIG_BYTES
    from lastcall.cli.options import read_content
    from lastcall_lab.simulation.runner import same_scenario
    from lastcall_lab.simulation.scenario_text.reader import read_scenario
    from lastcall_lab.simulation.shipped_scenarios import scenario_text

    if scenario == "-" == own.file:
        raise click.UsageError("SCENARIO and --state cannot both be standard input")
    if chance := _random_stories().get(scenario):
        if own.source_option:
            raise click.UsageError(f"{scenario} has machines of its own: {own.source_option} cannot be given")
        return chance.scenario
    data = read_content("-", CONFIG_BYTES) if scenario == "-" else scenario_text(scenario)
    return partial(
        same_scenario, read_scenario(data, "standard input" if scenario == "-" else scenario, _read_own_cluster(own))
    )


class _RandomStory(NamedTuple):
    """A scenario generator: each seed makes another scenario; and the events that are possible in it."""

    scenario: "Story"
    verbs: "Sequence[Verb]"
    description: str


def _random_stories() -> "Mapping[str, _RandomStory]":
    """The random scenarios by name."""
    from lastcall_lab.simulation import chaos, drain_chaos, failover_chaos, kubelet_chaos
    from lastcall_lab.simulation.shipped_scenarios import CHAOS, DRAIN_CHAOS, FAILOVER_CHAOS, KUBELET_CHAOS

    stories = {
        CHAOS: chaos,
        FAILOVER_CHAOS: failover_chaos,
        KUBELET_CHAOS: kubelet_chaos,
        DRAIN_CHAOS: drain_chaos,
    }
    return {name: _RandomStory(one.generate_scenario, one.VERBS, one.DESCRIPTION) for name, one in stories.items()}


def _read_own_cluster(own: OwnCluster) -> "RecordedState | None":
    """The user's own cluster, if one is to be simulated; differences of the simulation go to stderr."""
    state = own.read_state() if own.source_option else None
    for warning in state.warnings if state else ():
        click.echo(plain_text(f"warning: {warning}"), err=True)
    return state


def _list_scenarios() -> None:
    from lastcall_lab.simulation.scenario_text.reader import read_scenario
    from lastcall_lab.simulation.shipped_scenarios import scenario_text, shipped_scenarios

    found = {name: read_scenario(scenario_text(name), name).description for name in shipped_scenarios()}
    found |= {name: one.description for name, one in _random_stories().items()}
    width = max(map(len, found))
    for name, description in found.items():
        first = " ".join(description.split()).partition(". ")[0]
        click.echo(f"{name:<{width}}  {first.removesuffix('.')}")


def _play_one(scenario: "Scenario", seed: int, output: str) -> bool:
    """Runs the scenario and prints the result; returns whether all expectations hold."""
    from lastcall_lab.simulation.report import document, page, text
    from lastcall_lab.simulation.runner import run_rehearsal

    outcome = run_rehearsal(scenario, seed)
    if output == "json":
        click.echo(json.dumps(document.outcome_document(outcome), indent=2))
    else:
        click.echo(
            page.render_html(outcome) if output == "html" else text.render_text(outcome, _text_columns()), nl=False
        )
    return outcome.is_good


def _text_columns() -> int:
    """The width of the terminal, within limits for readability; a file gets the widest."""
    from lastcall_lab.simulation.report.text import COLUMNS

    if not sys.stdout.isatty():
        return COLUMNS
    return min(max(shutil.get_terminal_size().columns, 80), COLUMNS)


def _play_many(story: "Story", seeds: range, output: str) -> bool:
    """Runs many seeds: a line for each failure, and a summary; for chaos also the faults that occurred."""
    from lastcall_lab.simulation.report import document, text
    from lastcall_lab.simulation.runner import run_rehearsals
    from lastcall_lab.simulation.tally import OutcomeTally

    chance = {name: one for name, one in _random_stories().items() if one.scenario is story}
    [tally] = [OutcomeTally(name, one.verbs) for name, one in chance.items()] or [OutcomeTally(story(seeds[0]).name)]
    for outcome in run_rehearsals(story, seeds):
        tally.add(outcome)
        if output == "text" and not outcome.is_good:
            click.echo(text.failure_line(outcome))
        if tally.seeds % PROGRESS_EVERY == 0:
            _print_progress(f"{tally.seeds} of {len(seeds)} seeds, {len(tally.failed)} failed")
    if output == "json":
        click.echo(json.dumps(document.summary_document(tally), indent=2))
    else:
        click.echo(text.summary_text(tally))
        if chance:
            click.echo(text.coverage_text(tally, _text_columns()), nl=False)
    return not tally.failed


def _print_progress(words: str) -> None:
    """Prints progress if standard error is a terminal."""
    if sys.stderr.isatty():
        click.echo(words, err=True)


def _print_shortest(scenario: "Scenario", seed: int) -> bool:
    """Prints the shortest failing scenario as YAML, its result as comments; LastcallError if none fails."""
    from lastcall.adapters.host.clock import SystemClock
    from lastcall_lab.simulation.report import text
    from lastcall_lab.simulation.runner import run_rehearsal
    from lastcall_lab.simulation.scenario_text.writer import write_scenario
    from lastcall_lab.simulation.shrink import shrink_scenario, sole_violation_check, violation_finder

    broken = run_rehearsal(scenario, seed).violations
    if not broken:
        raise LastcallError(f"{scenario.name}: nothing that must never happen has happened with seed {seed}")
    rule = broken[0].rule
    _print_progress("looking for the shortest scenario that shows it, for some minutes at most")
    shortest = shrink_scenario(
        scenario, violation_finder(rule, seed), clock=SystemClock(), clear=sole_violation_check(rule, seed)
    )
    click.echo(f"# {rule}: lastcall simulate FILE --seed {seed}")
    click.echo(write_scenario(shortest), nl=False)
    for line in text.render_text(run_rehearsal(shortest, seed)).splitlines():
        click.echo(f"# {line}".rstrip())
    return False
