"""A person's word that a machine is dead (pure): ``lastcall.dev/acknowledged-dead`` on the Node names the boot that is over.

It is of use where no device can be asked, and for the fencer ``manual``. It holds for one boot, since the machine's next one
has another id, and for one silence: a boot that was wrongly said to be over lives on, and what is left standing on its Node
must not be taken for a word on the day on which it is silent again. So what is written names also the last renewal of the
node's Lease, and counts as long as no other has followed. A word without it, as a person may write it by hand, counts for
who has seen it come alone: he knows what was heard of the node afterwards.
"""

from dataclasses import dataclass

from lastcall import names
from lastcall.failover.evidence.facts import Boot, DeathAcknowledged
from lastcall.failover.evidence.proofs import FRESH
from lastcall.model import duration

TICK = 1e-3
"""Seconds by which a word is later than what it is known to follow."""


@dataclass(frozen=True, kw_only=True)
class AcknowledgementNote:
    """What stands on a Node; ``renewed`` is ``spec.renewTime`` of its Lease when it was said, empty if it does not say."""

    boot_id: str
    renewed: str = ""


def to_annotation(word: AcknowledgementNote) -> str:
    """The annotation's value."""
    return f"{word.boot_id} {word.renewed}".strip()


def parse_annotation(text: str) -> AcknowledgementNote | None:
    """What is written by hand may have blanks around it. None if it names no boot, or is something else."""
    parts = text.split()
    if len(parts) not in (1, 2):
        return None
    return AcknowledgementNote(boot_id=parts[0], renewed=parts[1] if len(parts) > 1 else "")


def acknowledgement_fact(
    text: str, boot: Boot, *, seen: float, renewed: tuple[str, float] | None
) -> DeathAcknowledged | None:
    """The evidence, if the Node's annotation acknowledges the boot that it shows, and this silence; else None.

    ``seen``: since when the observer sees it, on his own clock. ``renewed``: the Lease's ``renewTime`` as it was read last,
    and when that was first seen; None if there is none. One that names its renewal is later than that, however late the
    observer has heard of it; and it counts also for who finds it standing there.
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
    """Why a person's word on boot ``wanted`` is not to be written on a Node as it is now; empty if it may be.

    ``ready`` is the status of its condition Ready (empty: it has none), ``boot_id`` what it shows; ``silent``: seconds
    since the last renewal of its Lease, None if nobody knows. A node that dies stays Ready until it is missed.
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
