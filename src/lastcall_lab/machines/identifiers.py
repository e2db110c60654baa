"""Identifiers of a lab machine that survive a reboot."""

import uuid

_SPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "lab.lastcall.dev")


def system_uuid(machine: str) -> str:
    """The UUID in its firmware (SMBIOS), shown by Node and BMC; the same for a name in every lab."""
    return str(uuid.uuid5(_SPACE, machine))


def machine_id(machine: str) -> str:
    """The id of its operating system in the format of machine-id(5), as set at installation."""
    return uuid.uuid5(_SPACE, f"{machine}/etc/machine-id").hex
