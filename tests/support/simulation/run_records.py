"""Runs told by hand, to be judged: what reached whom, and what was done to machines."""

import msgspec

from lastcall.model.pods import Pod
from lastcall.model.shutdown import PhasePlan
from lastcall_lab.simulation.invariants import RunRecord, find_violations
from lastcall_lab.simulation.truth import ContainerEvent, MachineEvent, TerminationRequest

CRITICAL = 2_000_000_000
ON_NODE = ("order", "start", "hook", "hook over", "TERM", "KILL", "exit")


class Story:
    """One that begins with machines that run, and their agents. Everybody's times are seconds."""

    def __init__(self, *, plan=((0, 30), (CRITICAL, 10)), nodes=("n1", "n2"), end=1000.0, bounded=True):
        self.plan = None if plan is None else tuple(PhasePlan(priority=one, seconds=much) for one, much in plan)
        self.end, self.happenings, self.asked, self.pods, self.hooks, self.node_of = end, [], [], {}, {}, {}
        self.powers = [MachineEvent(0.0, node, what) for node in nodes for what in ("on", "agent started")]
        self.more = {"bounded": bounded}

    def pod(self, name, *, node="n1", priority=0, grace=30, hook=0.0, owner="", began=1.0, uid=""):
        """It runs since ``began``; ``hook`` is how long its preStop hook takes."""
        uid = uid or name
        container = {"name": "main"} | ({"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}} if hook else {})
        metadata = {"name": name, "namespace": "default", "uid": uid, "labels": {}}
        if owner:
            owned = {"apiVersion": "apps/v1", "kind": owner, "name": owner.lower(), "uid": owner, "controller": True}
            metadata["ownerReferences"] = [owned]
        spec = {"containers": [container], "priority": priority, "terminationGracePeriodSeconds": grace}
        self.pods[uid] = msgspec.convert({"metadata": metadata, "spec": spec}, Pod)
        self.hooks[uid], self.node_of[uid] = hook, node
        return self.at(began, uid, "order", "start")

    def at(self, time, who, *what):
        """Something reaches a pod, or is done to a machine; ``(what, seconds)``: with an amount.

        A hook that is over is the last that began, or the one of ``("hook over", began)``.
        """
        for one in what:
            if one == "hook over":
                began = max(past.at for past in self.happenings if (past.uid, past.what) == (who, "hook"))
                self.happenings.append(ContainerEvent(time, self.node_of[who], who, "main", one, began))
            elif one in ON_NODE:
                self.happenings.append(ContainerEvent(time, self.node_of[who], who, "main", one))
            elif isinstance(one, tuple) and one[0] == "hook over":
                self.happenings.append(ContainerEvent(time, self.node_of[who], who, "main", *one))
            elif isinstance(one, tuple) and one[0] == "asked":
                self.asked.append(TerminationRequest(time, who, one[1]))
            else:
                said, amount = one if isinstance(one, tuple) else (one, 0.0)
                self.powers.append(MachineEvent(time, who, said, amount))
        return self

    def run(self):
        return RunRecord(
            happenings=self.happenings,
            powers=self.powers,
            records=self.more.get("records", ()),
            pods=self.pods,
            plan=self.plan,
            hooks=self.hooks,
            asked=self.asked,
            end=self.end,
            **{name: what for name, what in self.more.items() if name != "records"},
        )

    def broken(self):
        """The rules that are broken, by name, in the order of time."""
        return [one.rule.name for one in find_violations(self.run())]
