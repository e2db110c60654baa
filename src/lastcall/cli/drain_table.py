"""The plan of ``lastcall drain``, for people."""

from collections.abc import Iterator, Sequence

import click

from lastcall.cli.tables import print_reason_table, print_sentence
from lastcall.cli.terminal import Terminal, stdout_terminal
from lastcall.drain.planning.drain_case import DrainObstacle
from lastcall.drain.planning.drain_plan import DrainPlan
from lastcall.model.drain_facts import PodName
from lastcall.model.duration import format_elapsed
from lastcall.model.foreign_text import plain_text


def draw_plan(plan: DrainPlan, notes: Sequence[str]) -> None:
    """Draws what stands in the way first, then the tiers, and the notes."""
    terminal = stdout_terminal()
    if not plan.nodes:
        click.echo("No resources found", err=True)
        return
    _draw_table(terminal, "Refused", [(_text(one.pod), f"{one.why}; mend: {one.mend}") for one in plan.refuse])
    _draw_table(terminal, "Blocked", list(_blocked_rows(plan.blocked)))
    _draw_tiers(terminal, plan)
    _draw_table(terminal, "Passed over", [(_text(one.pod), one.why) for one in plan.skip])
    for note in notes:
        click.echo()
        print_sentence(terminal, f"note: {plain_text(note)}", fg="yellow")


def _draw_tiers(terminal: Terminal, plan: DrainPlan) -> None:
    count = sum(map(len, plan.evict))
    nothing_yet = ", after these are mended" if count and not plan.is_clear else ""
    tiers = "1 tier" if len(plan.evict) == 1 else f"{len(plan.evict)} tiers"
    about = f" in {tiers}, within about {format_elapsed(plan.seconds)}{nothing_yet}" if count else ""
    print_sentence(terminal, f"Evicted: {count or 'nothing'}{about}", bold=True)
    rows = [(_text(pod), f"tier {number}") for number, tier in enumerate(plan.evict, 1) for pod in tier]
    if rows:
        print_reason_table(terminal, [(plain_text(name), where) for name, where in rows])


def _blocked_rows(blocked: Sequence[DrainObstacle]) -> Iterator[tuple[str, str]]:
    """A line for each pod that is held, so that it can be searched for; one for a holder without pods."""
    for one in blocked:
        by = f"{one.by.kind} {'/'.join(filter(None, (one.by.namespace, one.by.name)))}"
        for name in map(_text, one.pods) if one.pods else ("(no pod)",):
            yield name, f"{by}: {one.why}; mend: {one.mend}"


def _draw_table(terminal: Terminal, title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        print_sentence(terminal, f"{title}: {len(rows)}", bold=True)
        print_reason_table(terminal, [(plain_text(name), plain_text(why)) for name, why in rows])


def _text(pod: PodName) -> str:
    return "/".join(pod)
