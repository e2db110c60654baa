"""Rehearsals from outside: one, or many at once in processes of their own."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import get_context

from lastcall.adapters.kube.resources import NODES, PODS, Object
from lastcall.errors import ApiFailure, InvalidInput, LastcallError
from lastcall.lab import virtual
from lastcall.lab.simulation.cluster import Cluster, condition
from lastcall.lab.simulation.collecting import seldom_collected
from lastcall.lab.simulation.measure import outcome
from lastcall.lab.simulation.outcome import Outcome
from lastcall.lab.simulation.rehearsal import Rehearsal
from lastcall.lab.simulation.scenario import Scenario

Story = Callable[[int], Scenario]
"""What a seed plays; it goes to other processes, so that it is a function of a module or a ``partial`` of one."""

_SHOWN = 3


def play(scenario: Scenario, seed: int) -> Outcome:
    """One rehearsal, in virtual time.

    InvalidInput if the API server refuses an object of the scenario; LastcallError if its workloads do not all run
    before anything happens.
    """
    with seldom_collected():
        return virtual.run(_play(scenario, seed))


def always(scenario: Scenario, seed: int) -> Scenario:
    """The same, whatever the seed; ``partial(always, scenario)`` is a story."""
    return scenario


def play_all(story: Story, seeds: Iterable[int]) -> Iterator[Outcome]:
    """The same for many seeds, on as many processors as there are; in the order of the seeds whatever ends first."""
    with get_context("spawn").Pool(len(os.sched_getaffinity(0)), initializer=hush) as pool:
        yield from pool.imap(partial(_play_story, story), seeds)


def _play_story(story: Story, seed: int) -> Outcome:
    return play(story(seed), seed)


def hush() -> None:
    """What the programs of a rehearsal log is said in its outcome, as far as it matters."""
    logging.getLogger("lastcall").addHandler(logging.NullHandler())


async def _play(scenario: Scenario, seed: int) -> Outcome:
    rehearsal = Rehearsal(scenario, seed)
    try:
        await rehearsal.run()
    except TimeoutError as error:
        raise LastcallError(f"{scenario.name}: not everything comes up: {_lacking(rehearsal.cluster)}") from error
    except ApiFailure as error:
        raise InvalidInput(scenario.name, [f"the API server refuses it: {error}"]) from error
    return outcome(rehearsal)


def _lacking(cluster: Cluster) -> str:
    ready = {one["metadata"]["name"] for one in cluster.all(NODES) if condition(one, "Ready") == "True"}
    found = [f"{name} is not ready" for name in cluster.machines if name not in ready]
    found += [_why(one) for one in cluster.all(PODS) if condition(one, "Ready") != "True"]
    found = found or [f"{name} has not all its pods" for name in cluster.standing.unfinished]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "; ".join(found[:_SHOWN] + more)


def _why(pod: Object) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    messages = [one["message"] for one in conditions if one["status"] == "False" and one.get("message")]
    return f"pod {pod['metadata']['name']} is not ready{f' ({messages[0]})' if messages else ''}"
