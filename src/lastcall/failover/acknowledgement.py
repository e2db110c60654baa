"""A person's word that a machine is dead (pure): ``lastcall.dev/acknowledged-dead`` on the Node names the boot that is over.

It is of use where no device can be asked, and for the fencer ``manual``. It holds for one boot: the machine's next boot
has another id, so what is left standing on the Node is never taken for a word on that one.
"""

from collections.abc import Mapping

from lastcall import names
from lastcall.failover.facts import Acknowledged


def acknowledged(annotations: Mapping[str, str], *, boot_id: str, at: float) -> Acknowledged | None:
    """The evidence, if the Node's annotations acknowledge the boot that it shows; else None.

    ``at`` is when the observer first saw it beside this boot id, on his own clock. What is written by hand may have blanks
    around it; an id that is empty acknowledges nothing.
    """
    said = annotations.get(names.ACKNOWLEDGED_DEAD, "").strip()
    if not said or said != boot_id:
        return None
    return Acknowledged(boot_id=boot_id, how=f"the annotation {names.ACKNOWLEDGED_DEAD}", at=at)


def refusals(node: str, *, ready: str, boot_id: str, wanted: str) -> list[str]:
    """Why a person's word on boot ``wanted`` is not to be written on a Node as it is now; empty if it may be.

    ``ready`` is the status of its condition Ready (empty: it has none), ``boot_id`` what it shows.
    """
    wrong = []
    if ready == "True":
        wrong.append(f"node {node} is Ready: its machine is alive")
    if not boot_id:
        wrong.append(f"node {node} has never reported a boot id: there is no boot that could be over")
    elif boot_id != wanted:
        wrong.append(
            f"node {node} shows boot id {boot_id}, not {wanted}: its machine has booted since, or another node is meant"
        )
    return wrong
