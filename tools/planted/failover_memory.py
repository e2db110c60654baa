"""Bugs in what a controller knows of the time before it led, and of what has passed since."""

from planted.bug import Bug

TABLES = ("tests/core/test_failover_course.py", "tests/core/test_failover_course_forced.py")
FENCED = ("tests/core/test_failover_fenced.py",)
MEMORY = ("tests/core/test_failover_memory.py",)

BUGS = [
    Bug(
        "a new leader takes it that nobody has ordered anything before",
        "failover/deciding/case.py",
        "return max(self.observed, self.leads_since)",
        "return self.observed",
        TABLES,
    ),
    Bug(
        "nobody says since when he leads",
        "failover/doing/controller.py",
        "        self._gathering.leads_since = self._clock.boottime()\n",
        "",
        MEMORY,
    ),
    Bug(
        "what is known of an attachment is kept when it has gone",
        "failover/doing/claims.py",
        "if uid in uids}",
        "}",
        MEMORY,
    ),
    Bug(
        "a claim is asked for at each look",
        "failover/doing/claims.py",
        "uid not in kept and ",
        "",
        MEMORY,
    ),
    Bug(
        "who takes an hour to be switched off counts from when he was marked",
        "failover/limits/overview.py",
        "return max(began, min(ends)) if ends else now",
        "return began",
        FENCED,
    ),
    Bug(
        "who is dead for days counts as fenced just now",
        "failover/limits/overview.py",
        "return max(began, min(ends)) if ends else now",
        "return now",
        FENCED,
    ),
]
