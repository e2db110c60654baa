"""Bugs of how it is known that another Node may stand for the machine of a node that is to be switched off."""

from planted.bug import Bug

LOOKALIKES = ("tests/core/test_failover_lookalikes.py",)

BUGS = [
    Bug(
        "two Nodes with one device are two machines",
        "failover/limits/lookalikes.py",
        "return (DEVICE, *found) if found else None",
        "return None",
        LOOKALIKES,
    ),
    Bug(
        "the parameters of a fence agent say nothing of its device",
        "model/fencer_device.py",
        "            return _of_agent(fencer.agent, node)\n",
        "            return None\n",
        LOOKALIKES,
    ),
    Bug(
        "the address of a Redfish service says nothing of its device",
        "model/fencer_device.py",
        "            return _of_redfish(fencer.redfish, node)\n",
        "            return None\n",
        LOOKALIKES,
    ),
    Bug(
        "one address that is written in two ways is two devices",
        "model/fencer_device.py",
        'return ("redfish", _host(address), system.strip("/").casefold())',
        'return ("redfish", address, system)',
        LOOKALIKES,
    ),
    Bug(
        "two systems behind one address are one device",
        "model/fencer_device.py",
        'return ("redfish", _host(address), system.strip("/").casefold())',
        'return ("redfish", _host(address))',
        LOOKALIKES,
    ),
    Bug(
        "who asks is a part of the device",
        "model/fencer_device.py",
        "if not name.endswith(_CREDENTIALS))",
        "if True)",
        LOOKALIKES,
    ),
    Bug(
        "a Node's device by another policy is none",
        "failover/limits/lookalikes.py",
        "for fencer in (*(policy.spec.fencers if policy else ()), *others):",
        "for fencer in (policy.spec.fencers if policy else ()):",
        LOOKALIKES,
    ),
    Bug(
        "one boot id on two Nodes says nothing",
        "failover/limits/lookalikes.py",
        "yield from ((BOOT, text) for text in (node.boot_id.strip(),) if text)",
        "yield from ()",
        LOOKALIKES,
    ),
    Bug(
        "one machineID on two Nodes says nothing",
        "failover/limits/lookalikes.py",
        'if text.strip("0"))',
        "if False)",
        LOOKALIKES,
    ),
    Bug(
        "a machineID of zeros is one",
        "failover/limits/lookalikes.py",
        'if text.strip("0"))',
        "if text)",
        LOOKALIKES,
    ),
    Bug(
        "machines that were cloned are one, whatever the policy says",
        "failover/limits/lookalikes.py",
        "if policy.spec.machine_id_check is MachineIDCheck.DISABLED:",
        "if False:",
        LOOKALIKES,
    ),
    Bug(
        "a system UUID that nobody has set is one",
        "model/system_uuid.py",
        "return frozenset() if spellings & _UNSET else spellings",
        "return spellings",
        LOOKALIKES,
    ),
    Bug(
        "a system UUID in another byte order is another one",
        "failover/limits/lookalikes.py",
        "yield from ((UUID, min(found)) for found in (spellings(node.system_uuid),) if found)",
        "yield from ((UUID, node.system_uuid.lower()) for found in (spellings(node.system_uuid),) if found)",
        LOOKALIKES,
    ),
    Bug(
        "one serial number on two Nodes says nothing",
        "failover/limits/lookalikes.py",
        "yield from ((SERIAL, text) for text in serial(node.serial))",
        "yield from ()",
        LOOKALIKES,
    ),
    Bug(
        "a serial number that nobody has set is one",
        "failover/limits/targets.py",
        "return frozenset() if _UNSET_SERIALS.fullmatch(text) else frozenset((text.upper(),))",
        "return frozenset((text.upper(),)) if text else frozenset()",
        LOOKALIKES,
    ),
    Bug(
        "one providerID on two Nodes says nothing",
        "failover/limits/lookalikes.py",
        "yield from ((PROVIDER, text) for text in provider(node.provider_id))",
        "yield from ()",
        LOOKALIKES,
    ),
    Bug(
        "a providerID with and without a zone names two instances",
        "failover/limits/targets.py",
        'text = _AWS + text.rpartition("/")[2]',
        "pass",
        LOOKALIKES,
    ),
]
