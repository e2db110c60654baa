"""``lastcall guard``: pods that are deleted only after their application has prepared."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lastcall.cli import guard_config, guard_run, guard_status, options
from lastcall.cli.options import TimeParam
from lastcall.errors import InvalidInput

if TYPE_CHECKING:
    from lastcall.model.admission import Review

REVIEW_BYTES = 16 * 2**20
"""An AdmissionReview holds an object twice at most, and the API server's objects have 3 MiB at most."""


@click.group("guard")
def command() -> None:
    """Pods that are not deleted until their application is ready."""


@command.command("review")
@click.option("--state", required=True, metavar="FILE", help="A List of Pods, Namespaces, Nodes, owners, policies.")
@guard_config.option
@click.option("--now", type=TimeParam(), metavar="TIME", help="When the state was taken.  [default: the present time]")
def review_command(*, state: str, config: str | None, now: datetime | None) -> None:
    """Answers one AdmissionReview from a file, as the webhook would.

    The review is read from standard input, and its answer is written to standard output. FILE is what kubectl get
    pods,namespaces,nodes,statefulsets,poddisruptionbudgets,guardpolicies -A -o json gives; all its objects count as
    possible owners of pods. Nothing is changed, and no cluster is asked. Exit code 0 whenever there is an answer; 2 if
    review or file cannot be read.
    """
    import json

    from msgspec.structs import replace

    from lastcall.adapters.host.clock import SystemClock
    from lastcall.guard.decisions.verdict import judge_removal
    from lastcall.model.admission import answer_review
    from lastcall.model.guard_state_file import read_guard_state, refuse_unknown_records

    options.require_stdout()
    if "-" in (state, config):
        raise click.UsageError("standard input has the review: --state and --config need files")
    facts = read_guard_state(options.read_content(state), options.source_name(state))
    refuse_unknown_records(facts, options.source_name(state))
    facts = replace(facts, config=guard_config.read_config(config))
    review = _read_review()
    moment = now or datetime.fromtimestamp(SystemClock().wall(), UTC)
    if review.removal is None:
        answer = answer_review(review, allowed=True, audit={"reason": "not-a-removal"})
    else:
        verdict = judge_removal(review.removal, facts, moment)
        answer = answer_review(
            review,
            allowed=verdict.allowed,
            message=verdict.message,
            warnings=verdict.warnings,
            audit={"reason": verdict.reason},
        )
    click.echo(json.dumps(answer))


def _read_review() -> "Review":
    """The review on standard input. InvalidInput has one sentence, whatever is wrong with it."""
    from lastcall.model.admission import parse_review

    try:
        return parse_review(options.read_content("-", REVIEW_BYTES), "standard input")
    except InvalidInput as error:
        raise InvalidInput(error.source, ["; ".join(error.violations)]) from error


command.add_command(guard_run.command)
command.add_command(guard_status.command)
