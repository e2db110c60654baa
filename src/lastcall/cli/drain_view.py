"""What a drain shows: the lines of kubectl, and on a terminal one line for each pod that is left."""

import shutil
import sys
from collections.abc import Mapping

import click

from lastcall.drain.decisions.drain_course import DrainCourse
from lastcall.drain.decisions.pod_lines import describe_pod, describe_round
from lastcall.drain.decisions.pod_progress import PodTarget
from lastcall.drain.decisions.steps import NodeOutcome
from lastcall.model import duration
from lastcall.model.budgets import SEVERAL
from lastcall.model.drain_facts import PodName
from lastcall.model.foreign_text import plain_text

_PAUSE = 5.0
"""Seconds between two sentences about the state of the drain, in a file or pipe."""

_QUICK = 0.2
"""Seconds between two pictures on a terminal."""

_NAME = 40
"""Columns for the name of a pod."""


class DrainView:
    """``drain.execution.drain_observer.DrainObserver``. ``hints`` have more to say about pods of several budgets."""

    def __init__(self, hints: Mapping[PodName, str]) -> None:
        self._hints = hints
        self._is_live = sys.stdout.isatty() and sys.stderr.isatty()
        self._course: DrainCourse | None = None
        self._now = self._told_at = float("-inf")
        self._drawn, self._sentence, self._printed = 0, "", ""

    # -- what happens --------------------------------------------------------------------------------------------------

    def warn(self, text: str) -> None:
        """``DrainObserver.warn``."""
        self._print(f"Warning: {text}", err=True)

    def say(self, text: str) -> None:
        """A sentence about something that the drain does besides."""
        self._print(text)

    def tell_cordoned(self, node: str, *, already: bool) -> None:
        """``DrainObserver.tell_cordoned``."""
        self._print(f"node/{node} {'already ' if already else ''}cordoned")

    def tell_uncordoned(self, node: str) -> None:
        """``DrainObserver.tell_uncordoned``."""
        self._print(f"node/{node} uncordoned")

    def tell_asked(self, target: PodTarget, *, evicts: bool) -> None:
        """``DrainObserver.tell_asked``."""
        self._print(f"{'evicting' if evicts else 'deleting'} pod {target.key}")

    def tell_refused(self, target: PodTarget, why: str, seconds: float) -> None:
        """``DrainObserver.tell_refused``: kubectl's text."""
        again = duration.format_seconds(seconds)
        self._print(
            f'error when evicting pods/"{target.name}" -n "{target.namespace}" (will retry after {again}): {why}',
            err=True,
        )

    def tell_gone(self, target: PodTarget, *, evicts: bool) -> None:
        """``DrainObserver.tell_gone``."""
        self._print(f"pod/{target.name} {'evicted' if evicts else 'deleted'}")

    def tell_failed(self, target: PodTarget, why: str) -> None:
        """``DrainObserver.tell_failed``."""
        hint = self._hints.get((target.namespace, target.name)) if SEVERAL in why else None
        more = f" ({hint})" if hint else ""
        self._print(f'error when evicting pods/"{target.name}" -n "{target.namespace}": {why}{more}', err=True)

    def tell_skipped(self, target: PodTarget, why: str) -> None:
        """``DrainObserver.tell_skipped``."""
        self._print(why)

    def tell_finished(self, node: str, outcome: NodeOutcome, why: str) -> None:
        """``DrainObserver.tell_finished``: kubectl's texts."""
        if outcome is NodeOutcome.DRAINED:
            self._print(f"node/{node} drained")
        else:
            self._print(f'error: unable to drain node "{node}" due to error: {why}, continuing command...', err=True)

    def tell_traffic(self, text: str) -> None:
        """What is waited for after the pods are gone."""
        self._print(text, err=True)

    # -- how it stands -------------------------------------------------------------------------------------------------

    def show(self, course: DrainCourse, now: float) -> None:
        """``DrainObserver.show``."""
        self._course, self._now = course, now
        if now - self._told_at >= (_QUICK if self._is_live else _PAUSE):
            self._told_at = now
            self._tell_state()

    def tick(self, seconds: float) -> None:
        """So many seconds have passed."""
        if self._course is not None:
            self.show(self._course, self._now + seconds)

    def close(self) -> None:
        """Takes the picture away, and says how it ended."""
        self._erase()
        sentence = describe_round(self._course) if self._course is not None and self._course.pods else ""
        if sentence not in ("", self._printed):
            self._print(sentence, err=True)
        self._course = None

    def _tell_state(self) -> None:
        course = self._course
        if course is None or course.pods is None:
            return
        if self._is_live:
            self._erase()
            self._draw(course)
        elif (sentence := describe_round(course)) != self._sentence:
            self._sentence = sentence
            self._print(sentence, err=True)

    def _draw(self, course: DrainCourse) -> None:
        size = shutil.get_terminal_size()
        lines = []
        for pod in course.pods or ():
            if not course.is_settled(pod):
                said = describe_pod(course, pod, self._now)
                lines.append(f"  {pod.target.key[:_NAME]:<{_NAME}}  {said}")
        room = max(size.lines - 3, 1)
        if len(lines) > room:
            lines = [*lines[:room], f"  ... and {len(lines) - room} more"]
        lines.append(describe_round(course))
        for line in lines:
            sys.stderr.write(plain_text(line)[: size.columns - 1] + "\n")
        sys.stderr.flush()
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write(f"\x1b[{self._drawn}A\x1b[J")
            sys.stderr.flush()
            self._drawn = 0

    def _print(self, text: str, *, err: bool = False) -> None:
        self._erase()
        self._printed = text
        click.echo(plain_text(text), err=err)
