"""The lines of ``beside_table``: what was seen in a turn, and which of two is better."""

from dataclasses import dataclass
from typing import Any

from table_sight import condition

from lastcall.adapters.kube.resources import JOBS, NODES, PODS

SERVED = ("web", "db")
REPLACED = ("web", "side")
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Turn:
    """Times are CLOCK_BOOTTIME seconds; ``zero`` is the power button. ``mounts``: below the kubelet's directory at the end."""

    load: float
    zero: float
    released: float
    seen: dict
    """By what the containers saw: the time by container."""
    sight: Any
    mounts: int

    def moments(self, what, *apps):
        """When the containers of these apps saw it, or all of them; seconds since the power button."""
        times = self.seen[what].items()
        return sorted(at - self.zero for name, at in times if not apps or name.partition("-")[0] in apps)

    def since(self, *times):
        """The same of times that were seen at the API server; those that never came are left out."""
        return sorted(at - self.zero for at in times if at is not None)


def table(own, mine):
    """Markdown. A line with times says which came later, if both have one."""
    lines = ["| | the kubelet alone | lastcall beside it | |", "|---|---|---|---|"]
    lines.append(f"| load average before | {own.load:.1f} | {mine.load:.1f} | |")
    for name, find in TIMES:
        theirs, ours = find(own), find(mine)
        worse = theirs and ours and ours[-1] > theirs[-1] + 0.01
        lines.append(f"| {name} | {_span(theirs)} | {_span(ours)} | {'**later**' if worse else ''} |")
    lines += [f"| {name} | {find(own)} | {find(mine)} | |" for name, find in FACTS]
    return "\n".join(lines)


def _span(times):
    if not times:
        return "never"
    first, last = (f"{at:.2f}" for at in (times[0], times[-1]))
    return first if first == last else f"{first} to {last}"


def _not_ready(turn):
    return turn.since(turn.sight.first(NODES, turn.zero, lambda node: condition(node, "Ready") not in ("", "True")))


def _cordoned(turn):
    return turn.since(turn.sight.first(NODES, turn.zero, lambda node: node["spec"].get("unschedulable")))


def _withdrawals(turn):
    return {name: at for service in SERVED for name, at in turn.sight.withdrawn(service, turn.zero).items()}


def _withdrawn(turn):
    return turn.since(*_withdrawals(turn).values())


def _served_too_long(turn):
    """How long each pod behind a Service was a ready endpoint after its SIGTERM."""
    terms = turn.seen["TERM"]
    seconds = (at - terms[name] for name, at in _withdrawals(turn).items() if name in terms)
    return sorted(one for one in seconds if one > 0)


def _replaced(*apps):
    return lambda turn: turn.since(*(at for app in apps for at in turn.sight.replaced(app, turn.zero)))


def _replaced_after_end(turn):
    [end] = turn.moments("end", "db")
    return [at - end for at in _replaced("db")(turn)]


def _pods(turn):
    return turn.sight.latest(PODS)


def _late(turn):
    pod = _pods(turn).get("late")
    if pod is None:
        return "gone"
    said = pod.get("status", {})
    return f"{said.get('phase', 'Pending')} {said.get('reason', '')}".strip()


def _left(turn):
    return ", ".join(sorted(name for name, pod in _pods(turn).items() if pod["status"].get("phase") in ENDED)) or "none"


def _failures(turn):
    return turn.sight.latest(JOBS)["job"].get("status", {}).get("failed", 0)


def _sidecar(turn):
    [app] = turn.moments("end", "side")
    times = turn.seen["TERM"].items()
    [proxy] = (at - turn.zero for name, at in times if name.startswith("side") and name.endswith("-proxy"))
    return f"{'yes' if proxy >= app else 'NO'} ({proxy:.2f}, app {app:.2f})"


def _critical(turn):
    [critical] = turn.moments("TERM", "net")
    others = turn.moments("TERM", "web", "db", "log", "bare", "static", "job", "side", "init")
    return f"{critical:.2f}; SIGTERM of the others until {others[-1]:.2f}"


TIMES = (
    ("NotReady at the API server", _not_ready),
    ("cordoned", _cordoned),
    ("first SIGTERM", lambda turn: turn.moments("TERM")[:1]),
    ("SIGTERM of pods in no Service", lambda turn: turn.moments("TERM", "bare", "static", "job", "log")),
    ("endpoints out (Deployment, StatefulSet)", _withdrawn),
    ("a ready endpoint after its SIGTERM, for so long", _served_too_long),
    ("replacements of running pods: Deployments", _replaced(*REPLACED)),
    ("replacement: StatefulSet, from the pod's end", _replaced_after_end),
    ("machine released", lambda turn: [turn.released - turn.zero]),
)
FACTS = (
    ("SIGTERM of the pods behind Services", lambda turn: _span(turn.moments("TERM", *SERVED))),
    ("replacement: StatefulSet", lambda turn: _span(_replaced("db")(turn))),
    ("Job: pods counted as failed", _failures),
    ("critical DaemonSet pod, SIGTERM", _critical),
    ("DaemonSet pods made again", lambda turn: len(_replaced("log", "net")(turn))),
    ("sidecar after its app", _sidecar),
    ("late pod with `nodeName`", _late),
    ("ended objects left", _left),
    ("mounts below the kubelet's directory", lambda turn: turn.mounts),
)
