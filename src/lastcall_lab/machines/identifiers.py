"""What a machine of the lab is known by, whatever boots on it."""

import uuid

_SPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "lab.lastcall.dev")


def system_uuid(machine: str) -> str:
    """The UUID that its firmware has (SMBIOS): its Node and its BMC both show it. The same for a name in every lab."""
    return str(uuid.uuid5(_SPACE, machine))


def machine_id(machine: str) -> str:
    """As machine-id(5) is written: what its operating system was given when it was installed."""
    return uuid.uuid5(_SPACE, f"{machine}/etc/machine-id").hex
