"""Bugs in what a controller knows of the time before it led, and of what has passed since."""

from planted.bug import Bug

TABLES = ("tests/core/test_failover_course.py", "tests/core/test_failover_course_forced.py")
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
]
