"""What the lab's audit log knows of a measured failover: how soon the controller looks at a node of which it has heard."""

import json

from failover_table import LAB, FailoverRow
from figures import Figures
from lab import Target

NOTICED = 0.1
"""Seconds at most from an event to what is done about it."""

HOW = {"-c-": "with those of 20 at once", "-alone-": "with no other one"}
"""By what is in the names of the nodes: how their taints came."""


def rows(log):
    """Answers 429, and for each way in which taints came how long it took until the controller looked at that node."""
    with log.open("rb") as lines:
        records = sorted((json.loads(line) for line in lines), key=lambda one: one["wall"])
    refused = Figures((sum(one["code"] == 429 for one in records),), "")
    yield FailoverRow("answers 429, to all in all turns", LAB, refused, target=Target(most=0))
    for part, how in HOW.items():
        what = f"from a node's taint to the controller's look at it, {how}"
        yield FailoverRow(what, LAB, Figures(tuple(_looks(records, part)), "ms"), target=Target(most=NOTICED))


def _looks(records, part):
    """For each node with that in its name: seconds from the answer to the taint until it is asked for."""
    tainted = {}
    for one in records:
        if one["resource"] != "nodes" or one["subresource"] or part not in one["name"]:
            continue
        if one["verb"] == "patch":
            tainted.setdefault(one["name"], one["wall"] + one["seconds"])
        elif one["verb"] == "get" and tainted.get(one["name"]):
            yield one["wall"] - tainted[one["name"]]
            tainted[one["name"]] = None
