"""Bugs in the rules of a shutdown: phases, priorities, shares of the time, graces. The judge of rehearsals shares none of them.

Each is found by ``lastcall simulate chaos`` within a few seeds, and by the shipped scenario ``battery-ladder``.
"""

from planted.bug import Bug

SHIPPED = "battery-ladder"


def _bug(name: str, file: str, old: str, new: str, seeds: int = 60) -> Bug:
    return Bug(name, file, old, new, seeds=seeds)


BUGS = [
    # -- phases --------------------------------------------------------------------------------------------------------
    _bug(
        "a pod at the very edge of a phase ends with the one below",
        "graceful/phases.py",
        "bisect_right(groups, priority, key",
        '__import__("bisect").bisect_left(groups, priority, key',
    ),
    _bug(
        "a pod below all phases ends with the last",
        "graceful/phases.py",
        "return max(0, bisect_right(groups, priority, key=lambda group: group.priority) - 1)",
        "return (bisect_right(groups, priority, key=lambda group: group.priority) - 1) % len(groups)",
    ),
    # -- pacing --------------------------------------------------------------------------------------------------------
    _bug(
        "a phase gets half of its time where less is granted",
        "graceful/pacing.py",
        "[0].seconds / 1000",
        "[0].seconds / 2000",
    ),
    _bug(
        "a phase gets all the time that is left",
        "graceful/pacing.py",
        "    if left + _SLACK >=",
        "    if left + _SLACK < sum(phase.seconds for phase in phases):\n        return left\n    if left + _SLACK >=",
    ),
    _bug(
        "the phases follow what was asked for, whatever is granted",
        "graceful/pacing.py",
        "return now + (requested if granted >= requested else max(0.0, granted - RESERVE))",
        "return now + requested",
    ),
    # -- termination ---------------------------------------------------------------------------------------------------
    _bug(
        "SIGKILL follows SIGTERM at once where the grace is over",
        "graceful/termination.py",
        "MINIMUM = 2.0",
        "MINIMUM = 0.0",
    ),
    _bug(
        "a pod has all of its phase, whatever its grace",
        "graceful/termination.py",
        "grace=left if asked is None else min(asked, left)",
        "grace=left",
    ),
    _bug(
        "a hook is cut off after half of the grace",
        "graceful/termination.py",
        "return min(self.started + self.grace, max(",
        "return min(self.started + self.grace / 2, max(",
    ),
    # -- priorities ----------------------------------------------------------------------------------------------------
    _bug(
        "every pod has the priority 0",
        "model/pods.py",
        "    if pod.spec.priority is not None:\n        return pod.spec.priority\n    return SYSTEM_CLASSES.get(pod.spec.priority_class_name, 0)",
        "    return 0",
    ),
    _bug(
        "only the two system classes have a priority",
        "model/pods.py",
        "    if pod.spec.priority is not None:\n        return pod.spec.priority\n",
        "",
    ),
    # -- the budget ----------------------------------------------------------------------------------------------------
    _bug(
        "critical phases shrink with the others",
        "graceful/budget.py",
        "    return group.priority >= SYSTEM_CRITICAL",
        "    return False",
    ),
    _bug(
        "the other phases keep their time, and critical ones pay for it",
        "graceful/budget.py",
        "    return group.priority >= SYSTEM_CRITICAL",
        "    return group.priority < SYSTEM_CRITICAL",
    ),
]
