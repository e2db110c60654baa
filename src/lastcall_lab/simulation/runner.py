"""Rehearsals from outside: one, or many at once in processes of their own."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import get_context

from lastcall.adapters.kube.resources import NODES, PODS, Object
from lastcall.errors import ApiFailure, InvalidInput, LastcallError
from lastcall_lab import virtual
from lastcall_lab.simulation.cluster import SimulatedCluster, condition_status
from lastcall_lab.simulation.garbage_collection import collect_rarely
from lastcall_lab.simulation.outcome import RehearsalOutcome
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario import Scenario

Story = Callable[[int], Scenario]
"""What a seed plays; it goes to other processes, so that it is a function of a module or a ``partial`` of one."""

_SHOWN = 3


def run_rehearsal(scenario: Scenario, seed: int) -> RehearsalOutcome:
    """One rehearsal, in virtual time.

    InvalidInput if the API server refuses an object of the scenario; LastcallError if its workloads do not all run
    before anything happens.
    """
    with collect_rarely():
        return virtual.run(_rehearse(scenario, seed))


def same_scenario(scenario: Scenario, seed: int) -> Scenario:
    """The same, whatever the seed; ``partial(always, scenario)`` is a story."""
    return scenario


def run_rehearsals(story: Story, seeds: Iterable[int]) -> Iterator[RehearsalOutcome]:
    """The same for many seeds, on as many processors as there are; in the order of the seeds whatever ends first."""
    with get_context("spawn").Pool(len(os.sched_getaffinity(0)), initializer=silence_loggers) as pool:
        yield from pool.imap(partial(_rehearse_story, story), seeds)


def _rehearse_story(story: Story, seed: int) -> RehearsalOutcome:
    return run_rehearsal(story(seed), seed)


def silence_loggers() -> None:
    """What the programs and the lab's nodes log in a rehearsal is said in its outcome, as far as it matters."""
    for name in ("lastcall", "lastcall_lab"):
        logging.getLogger(name).addHandler(logging.NullHandler())


async def _rehearse(scenario: Scenario, seed: int) -> RehearsalOutcome:
    rehearsal = Rehearsal(scenario, seed)
    try:
        await rehearsal.run()
    except TimeoutError as error:
        raise LastcallError(
            f"{scenario.name}: not everything comes up: {_missing_pods_text(rehearsal.cluster)}"
        ) from error
    except ApiFailure as error:
        raise InvalidInput(scenario.name, [f"the API server refuses it: {error}"]) from error
    return build_outcome(rehearsal)


def _missing_pods_text(cluster: SimulatedCluster) -> str:
    ready = {one["metadata"]["name"] for one in cluster.list_objects(NODES) if condition_status(one, "Ready") == "True"}
    found = [f"{name} is not ready" for name in cluster.machines if name not in ready]
    found += [_not_ready_reason(one) for one in cluster.list_objects(PODS) if condition_status(one, "Ready") != "True"]
    found = found or [f"{name} has not all its pods" for name in cluster.standing.incomplete_workloads]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "; ".join(found[:_SHOWN] + more)


def _not_ready_reason(pod: Object) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    messages = [one["message"] for one in conditions if one["status"] == "False" and one.get("message")]
    return f"pod {pod['metadata']['name']} is not ready{f' ({messages[0]})' if messages else ''}"
