"""The kinds of shutdowns as systemd-logind names them, and what each means for the boot (pure)."""

SOFT_REBOOT = "soft-reboot"
"""Only user space restarts (systemd-soft-reboot.service(8)): the kernel and its boot ID stay, and the machine stays on."""

KEXEC = "kexec"
"""Another kernel starts without the firmware: the boot ID changes, and the machine stays on."""


def ends_boot(how: str) -> bool:
    """Whether the boot ID is over after a completed shutdown of this kind; an unknown kind counts as one that ends it."""
    return how != SOFT_REBOOT


def kind_remark(how: str) -> str:
    """What a kind means for who waits for the machine, as a sentence without a subject; "" if nothing unusual."""
    if how == SOFT_REBOOT:
        return "announced a soft-reboot: its boot id stays, and the pods that it ended may run again"
    if how == KEXEC:
        return "announced a kexec: its machine stays on, and comes back with another boot id"
    return ""
