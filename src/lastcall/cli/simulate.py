"""``lastcall simulate``: a whole cluster in virtual time, and what becomes of it when something happens."""

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from lastcall.cli import options

if TYPE_CHECKING:
    from lastcall.lab.simulation.outcome import Outcome
    from lastcall.lab.simulation.scenario import Scenario
    from lastcall.lab.simulation.state.reading import State


@click.command("simulate")
@click.argument("scenario", required=False, metavar="SCENARIO")
@click.option("--seed", type=click.IntRange(0), help="What the scenario leaves open is decided by it.  [default: 1]")
@click.option("--seeds", type=click.IntRange(1), help="Try so many, from 1 on, on all processors.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@click.option("--state", metavar="FILE", help="Your own cluster: what `kubectl get ... -A -o yaml` gives; - for stdin.")
@click.option("--list", "list_", is_flag=True, help="Only the names of the scenarios that come with lastcall.")
def command(
    *, scenario: str | None, seed: int | None, seeds: int | None, output: str, state: str | None, list_: bool
) -> None:
    """A cluster in virtual time: what happens to its workloads when nodes go down, and whether what must hold holds.

    SCENARIO is a YAML file, - for standard input, or the name of a scenario that comes with lastcall. Control plane,
    kubelets and agents are the lab's and lastcall's own; minutes pass in milliseconds, and nothing of this machine is
    touched.

    Exit code 1 if an expectation of the scenario, or one of lastcall's promises, is broken; 2 if the scenario is wrong.
    """
    from lastcall.lab.simulation.playing import hush
    from lastcall.lab.simulation.reading import read
    from lastcall.lab.simulation.shipped import data_of, shipped

    if list_:
        _list(shipped())
        return
    if scenario is None:
        raise click.UsageError("SCENARIO is missing; --list names those that come with lastcall")
    if seed is not None and seeds is not None:
        raise click.UsageError("--seed and --seeds cannot be given together")
    if seeds is not None and output == "html":
        raise click.UsageError("a page shows one seed: name it by --seed")
    hush()
    if scenario == "-" == state:
        raise click.UsageError("SCENARIO and --state cannot both be standard input")
    cluster = _cluster(state) if state else None
    data = sys.stdin.buffer.read() if scenario == "-" else data_of(scenario)
    found = read(data, _source(scenario), cluster)
    good = _one(found, 1 if seed is None else seed, output) if seeds is None else _many(found, seeds, output)
    if not good:
        sys.exit(1)


def _cluster(path: str) -> "State":
    """The cluster in a file; what is not simulated as it is goes to stderr."""
    from lastcall.lab.simulation.state.reading import read

    state = read(options.content(path), "standard input" if path == "-" else path)
    for warning in state.warnings:
        click.echo(f"warning: {warning}", err=True)
    return state


def _source(scenario: str) -> str:
    return "standard input" if scenario == "-" else scenario


def _list(names: Iterable[str]) -> None:
    from lastcall.lab.simulation.reading import read
    from lastcall.lab.simulation.shipped import data_of

    width = max(map(len, names))
    for name in names:
        description = " ".join(read(data_of(name), name).description.split())
        click.echo(f"{name:<{width}}  {description.partition('. ')[0].removesuffix('.')}")


def _one(scenario: "Scenario", seed: int, output: str) -> bool:
    """Plays it and tells of it; whether all is well."""
    from lastcall.lab.simulation.playing import play
    from lastcall.lab.simulation.report import document, page, text

    outcome = play(scenario, seed)
    if output == "json":
        click.echo(json.dumps(document.document(outcome), indent=2))
    else:
        click.echo(page.html(outcome) if output == "html" else text.text(outcome), nl=False)
    return outcome.good


def _many(scenario: "Scenario", seeds: int, output: str) -> bool:
    """The same for many seeds: a line for each that fails, and a summary."""
    from lastcall.lab.simulation.playing import play_all
    from lastcall.lab.simulation.report import document, text

    outcomes: list[Outcome] = []
    for outcome in play_all(scenario, range(1, seeds + 1)):
        outcomes.append(outcome)
        if output == "text" and not outcome.good:
            click.echo(text.line(outcome))
    if output == "json":
        click.echo(json.dumps(document.summary(scenario.name, outcomes), indent=2))
    else:
        click.echo(text.summary(outcomes))
    return all(outcome.good for outcome in outcomes)
