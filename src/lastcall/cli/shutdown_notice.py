"""``lastcall shutdown-notice``: tells this node's agent that the machine shuts down, or that it stays up."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from lastcall.cli.options import STATE_DIR, DurationParam, TimeParam
from lastcall.errors import LastcallError, Unavailable


@click.command("shutdown-notice")
@click.option("--in", "within", type=DurationParam(), help="The machine is gone after this time, such as 90s.")
@click.option("--at", type=TimeParam(), help="The machine is gone at this time (RFC 3339).")
@click.option("--reason", help="Why, for logs and reports.")
@click.option("--cancel", is_flag=True, help="The machine stays up: withdraws the notice.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=STATE_DIR,
    show_default=True,
    help="Where the agent has its socket.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *, within: float | None, at: datetime | None, reason: str | None, cancel: bool, state_dir: Path, output: str
) -> None:
    """Tells this node's agent that the machine shuts down, or that it stays up.

    The agent then ends the pods as at a shutdown, within its phases and the given time. The machine itself is not
    switched off. A second notice replaces the first. Without an option this prints what is planned. Needs root, and
    deadlines.socket in the agent's configuration.
    """
    from lastcall.adapters.deadlines.notice_socket import SOCKET_NAME, send_request

    if sum([within is not None, at is not None, cancel]) > 1:
        raise click.UsageError("--in, --at and --cancel exclude each other")
    if reason and within is None and at is None:
        raise click.UsageError("--reason needs --in or --at")
    request: dict[str, Any] = {"seconds": within, "deadline": at and at.isoformat(), "reason": reason, "cancel": cancel}
    line = json.dumps({name: value for name, value in request.items() if value}, ensure_ascii=False)
    if within == 0:
        line = json.dumps({"seconds": 0, "reason": reason or ""}, ensure_ascii=False)
    answer = _parse_answer(send_request(state_dir / SOCKET_NAME, line.encode()))
    if not answer.get("ok"):
        raise LastcallError(str(answer.get("error", "the agent refuses the request")))
    if output == "json":
        click.echo(json.dumps(answer, indent=2))
        return
    click.echo(answer.get("plan", ""))
    for notice in answer.get("notices", []):
        click.echo(f"{notice['source']}: {notice['reason']}, in {notice['seconds']:g} s")


def _parse_answer(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Unavailable("the agent's answer is not understood: is it of another version?")
    return answer
