"""``lastcall simulate``: a whole cluster in virtual time, and what becomes of it when something happens."""

import json
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from lastcall.cli import clusters
from lastcall.cli.simulate_cluster import Own
from lastcall.errors import LastcallError
from lastcall.model.foreign import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lastcall.lab.simulation.playing import Story
    from lastcall.lab.simulation.scenario import Scenario, Verb
    from lastcall.lab.simulation.state.reading import State

TOLD = 25
"""After so many seeds each somebody who waits hears how far it is."""


@click.command("simulate")
@click.argument("scenario", required=False, metavar="SCENARIO")
@click.option("--seed", type=click.IntRange(0), help="What the scenario leaves open is decided by it.  [default: 1]")
@click.option("--seeds", type=click.IntRange(1), help="Try so many, from --seed on, on all processors.")
@click.option("--shrink", is_flag=True, help="Print the shortest scenario that still breaks the same promise, as YAML.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@click.option("--state", metavar="FILE", help="Your own cluster: what `kubectl get ... -A -o yaml` gives; - for stdin.")
@click.option("--from-cluster", is_flag=True, help="Your own cluster as it is now; it is only read.")
@clusters.named
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
    """A cluster in virtual time: what happens to its workloads when nodes go down, and whether what must hold holds.

    SCENARIO is a YAML file, - for standard input, or the name of a scenario that comes with lastcall; chaos and
    failover-chaos are two of them, in which each seed has other workloads, shutdowns and faults. Control plane,
    kubelets and agents are the lab's and lastcall's own; minutes pass in milliseconds, and nothing of this machine is
    touched.

    Exit code 1 if an expectation of the scenario, or one of lastcall's promises, is broken; 2 if the scenario is wrong.
    """
    from lastcall.lab.simulation.playing import hush

    if list_:
        _list()
        return
    if scenario is None:
        raise click.UsageError("SCENARIO is missing; --list names those that come with lastcall")
    own = Own(file=state, live=from_cluster, kubeconfig=kubeconfig, context=context)
    if shrink and (seeds is not None or own.given or output != "text"):
        raise click.UsageError("--shrink is for one seed of a scenario, and prints YAML")
    if seeds is not None and output == "html":
        raise click.UsageError("a page shows one seed: name it by --seed")
    hush()
    story, first = _story(scenario, own), 1 if seed is None else seed
    good = _shrunk(story(first), first) if shrink else _played(story, first, seeds, output)
    if not good:
        sys.exit(1)


def _played(story: "Story", first: int, seeds: int | None, output: str) -> bool:
    """One seed in full, or the sum of many."""
    return _one(story(first), first, output) if seeds is None else _many(story, range(first, first + seeds), output)


def _story(scenario: str, own: Own) -> "Story":
    """Chance tells a story of its own with each seed."""
    from lastcall.adapters.bounded import CONFIG_BYTES
    from lastcall.cli.options import content
    from lastcall.lab.simulation.playing import always
    from lastcall.lab.simulation.shipped import data_of
    from lastcall.lab.simulation.wording.reading import read

    if scenario == "-" == own.file:
        raise click.UsageError("SCENARIO and --state cannot both be standard input")
    if chance := _chance().get(scenario):
        if own.given:
            raise click.UsageError(f"{scenario} has machines of its own: {own.given} cannot be given")
        return chance.scenario
    data = content("-", CONFIG_BYTES) if scenario == "-" else data_of(scenario)
    return partial(always, read(data, "standard input" if scenario == "-" else scenario, _cluster(own)))


class _Chance(NamedTuple):
    """A story that each seed tells in its own way, and all that can happen in it."""

    scenario: "Story"
    verbs: "Sequence[Verb]"
    description: str


def _chance() -> "Mapping[str, _Chance]":
    """By name."""
    from lastcall.lab.simulation import chaos, failover_chaos
    from lastcall.lab.simulation.shipped import CHAOS, FAILOVER_CHAOS

    return {
        name: _Chance(one.scenario, one.VERBS, one.DESCRIPTION)
        for name, one in ((CHAOS, chaos), (FAILOVER_CHAOS, failover_chaos))
    }


def _cluster(own: Own) -> "State | None":
    """The user's own cluster, if it is to be simulated; what is not simulated as it is goes to stderr."""
    state = own.read() if own.given else None
    for warning in state.warnings if state else ():
        click.echo(plain(f"warning: {warning}"), err=True)
    return state


def _list() -> None:
    from lastcall.lab.simulation.shipped import data_of, shipped
    from lastcall.lab.simulation.wording.reading import read

    found = {name: read(data_of(name), name).description for name in shipped()}
    found |= {name: one.description for name, one in _chance().items()}
    width = max(map(len, found))
    for name, description in found.items():
        first = " ".join(description.split()).partition(". ")[0]
        click.echo(f"{name:<{width}}  {first.removesuffix('.')}")


def _one(scenario: "Scenario", seed: int, output: str) -> bool:
    """Plays it and tells of it; whether all is well."""
    from lastcall.lab.simulation.playing import play
    from lastcall.lab.simulation.report import document, page, text

    outcome = play(scenario, seed)
    if output == "json":
        click.echo(json.dumps(document.document(outcome), indent=2))
    else:
        click.echo(page.html(outcome) if output == "html" else text.text(outcome, _columns()), nl=False)
    return outcome.good


def _columns() -> int:
    """As wide as the terminal is, within what is easy to read; a file has the widest."""
    from lastcall.lab.simulation.report.text import COLUMNS

    if not sys.stdout.isatty():
        return COLUMNS
    return min(max(shutil.get_terminal_size().columns, 80), COLUMNS)


def _many(story: "Story", seeds: range, output: str) -> bool:
    """The same for many seeds: a line for each that fails, and a summary; of chaos also which faults have struck."""
    from lastcall.lab.simulation.playing import play_all
    from lastcall.lab.simulation.report import document, text
    from lastcall.lab.simulation.tally import Tally

    chance = {name: one for name, one in _chance().items() if one.scenario is story}
    [tally] = [Tally(name, one.verbs) for name, one in chance.items()] or [Tally(story(seeds[0]).name)]
    for outcome in play_all(story, seeds):
        tally.add(outcome)
        if output == "text" and not outcome.good:
            click.echo(text.line(outcome))
        if tally.seeds % TOLD == 0:
            _say(f"{tally.seeds} of {len(seeds)} seeds, {len(tally.failed)} failed")
    if output == "json":
        click.echo(json.dumps(document.summary(tally), indent=2))
    else:
        click.echo(text.summary(tally))
        if chance:
            click.echo(text.coverage(tally, _columns()), nl=False)
    return not tally.failed


def _say(words: str) -> None:
    """To whoever waits in front of a terminal."""
    if sys.stderr.isatty():
        click.echo(words, err=True)


def _shrunk(scenario: "Scenario", seed: int) -> bool:
    """Prints a scenario that ``simulate`` takes, and what comes out of it as comments; LastcallError if all is well."""
    from lastcall.adapters.clock import SystemClock
    from lastcall.lab.simulation.playing import play
    from lastcall.lab.simulation.report import text
    from lastcall.lab.simulation.shrink import alone, shows, shrink
    from lastcall.lab.simulation.wording.writing import write

    broken = play(scenario, seed).violations
    if not broken:
        raise LastcallError(f"{scenario.name}: nothing that must never happen has happened with seed {seed}")
    rule = broken[0].rule
    _say("looking for the shortest scenario that shows it, for some minutes at most")
    shortest = shrink(scenario, shows(rule, seed), clock=SystemClock(), clear=alone(rule, seed))
    click.echo(f"# {rule}: lastcall simulate FILE --seed {seed}")
    click.echo(write(shortest), nl=False)
    for line in text.text(play(shortest, seed)).splitlines():
        click.echo(f"# {line}".rstrip())
    return False
