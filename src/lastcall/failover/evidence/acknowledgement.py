"""A person's acknowledgement that a machine is dead (pure): ``lastcall.dev/acknowledged-dead`` names the dead boot.

It is for nodes without a device to ask, and for the fencer ``manual``. It is valid for one boot, because the next boot
has another ID, and for one silence: a boot that was wrongly acknowledged lives on, and an annotation that remains on
its Node must not count when the node is silent again. So it also names the last renewal of the node's Lease, and is
valid only while no other renewal follows. An acknowledgement without a renewal, as a person may write by hand, counts
only for a controller that saw it being added: it knows the signs of life since then.
"""

from dataclasses import dataclass

from lastcall import names
from lastcall.failover.evidence.facts import Boot, DeathAcknowledged
from lastcall.failover.evidence.proofs import FRESH
from lastcall.model import duration

TICK = 1e-3
"""Seconds by which an acknowledgement is dated after the events that it is known to follow."""


@dataclass(frozen=True, kw_only=True)
class AcknowledgementNote:
    """The content of the annotation; ``renewed`` is ``spec.renewTime`` of the Lease when it was written, or empty."""

    boot_id: str
    renewed: str = ""


def to_annotation(word: AcknowledgementNote) -> str:
    """The annotation's value."""
    return f"{word.boot_id} {word.renewed}".strip()


def parse_annotation(text: str) -> AcknowledgementNote | None:
    """Parses the annotation; surrounding blanks are allowed. None if it names no boot or has another format."""
    parts = text.split()
    if len(parts) not in (1, 2):
        return None
    return AcknowledgementNote(boot_id=parts[0], renewed=parts[1] if len(parts) > 1 else "")


def acknowledgement_fact(
    text: str, boot: Boot, *, seen: float, renewed: tuple[str, float] | None
) -> DeathAcknowledged | None:
    """The evidence, if the annotation acknowledges the Node's current boot and the current silence; else None.

    ``seen``: when the observer first saw it, on its own clock. ``renewed``: the Lease's ``renewTime`` as last read, and
    when that was first seen; None without a Lease. An acknowledgement that names its renewal is dated after that
    renewal, however late the observer saw the renewal, and counts also if the observer found it in place.
    """
    word = parse_annotation(text)
    if word is None or word.boot_id != boot.id:
        return None
    if word.renewed:
        if renewed is None or word.renewed != renewed[0]:
            return None
        seen = max(seen, boot.since + TICK, renewed[1] + TICK)
    return DeathAcknowledged(boot_id=boot.id, how=f"the annotation {names.ACKNOWLEDGED_DEAD}", at=seen)


def list_objections(node: str, *, ready: str, boot_id: str, wanted: str, silent: float | None) -> list[str]:
    """Why an acknowledgement of boot ``wanted`` must not be written to a Node now; empty if it may be.

    ``ready``: the status of its Ready condition (empty: none). ``boot_id``: its current boot ID. ``silent``: seconds
    since the last renewal of its Lease, None if unknown. A dead node stays Ready until the node controller misses it.
    """
    wrong = []
    if ready == "True" and silent is not None and silent >= FRESH:
        wrong.append(
            f"node {node} is still Ready (last renewed {duration.format_elapsed(silent)} ago): try again when it is NotReady, after"
            " some 50s of silence"
        )
    elif ready == "True":
        wrong.append(f"node {node} is Ready: its machine is alive")
    if not boot_id:
        wrong.append(f"node {node} has never reported a boot id: there is no boot that could be over")
    elif boot_id != wanted:
        wrong.append(
            f"node {node} shows boot id {boot_id}, not {wanted}: its machine has booted since, or another node is meant"
        )
    return wrong
