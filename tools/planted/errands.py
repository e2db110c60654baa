"""Bugs of the fencers that ask by a library, of their settings, and of a person's word."""

from planted.bug import Bug

ERRAND = ("tests/adapters/test_fencing_errand.py",)
REDFISH = ("tests/adapters/test_fencing_redfish.py",)
EC2 = ("tests/adapters/test_fencing_ec2.py",)
FENCES = ("tests/adapters/test_fencing_fences.py",)
SHIPPED = ("tests/core/test_manifests.py",)
WORD = ("tests/core/test_failover_acknowledge.py",)

BUGS = [
    Bug(
        "a question to a device goes on when nobody waits for its answer",
        "adapters/fencing/errand.py",
        "                process.kill()\n                await process.wait()\n",
        "                pass\n",
        ERRAND,
    ),
    Bug(
        "a question to a device goes on when who has asked hangs",
        "adapters/fencing/errand_process.py",
        "    signal.setitimer(signal.ITIMER_REAL, left)\n",
        "",
        ERRAND,
    ),
    Bug(
        "a question to a device goes on when who has asked is dead",
        "adapters/fencing/errand_process.py",
        "    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:",
        "    if False:",
        ERRAND,
    ),
    Bug(
        "what the kernel has not sent yet is sent after the process was killed",
        "adapters/fencing/errand_process.py",
        'struct.pack("ii", 1, 0)',
        'struct.pack("ii", 0, 0)',
        ERRAND,
    ),
    Bug(
        "an order goes out although its time is over",
        "adapters/fencing/errand_process.py",
        "        if self.left <= 0:",
        "        if False:",
        ERRAND,
    ),
    Bug(
        "nobody reaps what killed fence agents leave behind",
        "manifests/deployment.py",
        '        "shareProcessNamespace": True,\n',
        "",
        SHIPPED,
    ),
    Bug(
        "messages show passwords",
        "adapters/fencing/errand.py",
        "masked(text, self.secrets)",
        "text",
        ERRAND,
    ),
    Bug(
        "messages show what a process has found by itself",
        "adapters/fencing/errand_process.py",
        "masked(reply.why, turn.secrets)",
        "reply.why",
        ERRAND,
    ),
    Bug(
        "a password may stand where everybody can read it",
        "adapters/fencing/agent_schema.py",
        "        *_plain(parameters),\n",
        "",
        ("tests/core/test_fence_agent_words.py",),
    ),
    Bug(
        "an API key is no secret",
        "model/fence_policy_rules.py",
        '"apikey", ',
        "",
        ("tests/core/test_fence_policy.py", "tests/core/test_fence_agent_words.py"),
    ),
    Bug(
        "a machine that powers off is off to Redfish",
        "adapters/fencing/redfish_process.py",
        '"PoweringOff": Power.ON',
        '"PoweringOff": Power.OFF',
        REDFISH,
    ),
    Bug(
        "a chassis is switched off with all that is in it",
        "adapters/fencing/redfish_process.py",
        "if not kind.startswith(_SYSTEM):",
        "if not kind:",
        REDFISH,
    ),
    Bug(
        "who refuses to switch off has accepted",
        "adapters/fencing/redfish_process.py",
        "        if _power(system).power is not wanted:\n            raise\n",
        "",
        REDFISH,
    ),
    Bug(
        "who says that it is off already is not told to switch off",
        "adapters/fencing/redfish_process.py",
        "    turn.before_sending()\n    try:\n",
        "    if _power(system).power is wanted:\n        return\n    try:\n",
        REDFISH,
    ),
    Bug(
        "an instance that is stopping is off",
        "adapters/fencing/ec2_process.py",
        '"stopping": Instance.RUNNING',
        '"stopping": Instance.STOPPED',
        EC2,
    ),
    Bug(
        "EC2's answer about another instance counts",
        "adapters/fencing/ec2_process.py",
        'if [one.get("InstanceId") for one in found] != [settings.instance]:',
        "if False:",
        EC2,
    ),
    Bug(
        "EC2 is told to stop an instance before it has answered anything",
        "adapters/fencing/ec2_process.py",
        "    state = _state(client, turn.settings)\n",
        "    state = FenceAnswer(power=Instance.RUNNING.power, instance=Instance.RUNNING)\n",
        EC2,
    ),
    Bug(
        "the zone's region outweighs that of the policy",
        "adapters/fencing/ec2.py",
        "region=region or found.region,",
        "region=found.region or region,",
        EC2,
    ),
    Bug(
        "a node without a value of its own gets another's",
        "model/fencer_values.py",
        'wanted.by_node.get(node.name, "")',
        'next(iter(wanted.by_node.values()), "")',
        FENCES,
    ),
    Bug(
        "an acknowledgement of one boot counts for the next",
        "failover/knowing/acknowledgement.py",
        "if word is None or word.boot_id != boot.id:",
        "if word is None:",
        WORD,
    ),
    Bug(
        "a token that is bound to a node lets an agent write of all of them",
        "manifests/own_node.py",
        " == [object.metadata.name]",
        " != []",
        ("tests/core/test_manifests_agent.py",),
    ),
    Bug(
        "agents may write the Lease by which controllers elect",
        "manifests/agent.py",
        '"coordination.k8s.io", NODES_NAMESPACE)',
        '"coordination.k8s.io", SYSTEM_NAMESPACE)',
        ("tests/core/test_manifests_agent.py",),
    ),
    Bug(
        "a controller may elect where agents write",
        "manifests/controller.py",
        "if self.namespace == NODES_NAMESPACE:",
        "if not self.namespace:",
        ("tests/core/test_manifests.py",),
    ),
    Bug(
        "a node may say who leads by a Lease of its own",
        "failover/telling/objects.py",
        "not in (NODE_LEASES, names.NODES_NAMESPACE)",
        "!= NODE_LEASES",
        ("tests/core/test_failover_explain.py",),
    ),
    Bug(
        "an acknowledgement of one silence counts for a later one",
        "failover/knowing/acknowledgement.py",
        "if renewed is None or word.renewed != renewed[0]:",
        "if renewed is None:",
        WORD,
    ),
    Bug(
        "a node that is Ready is acknowledged to be dead",
        "failover/knowing/acknowledgement.py",
        'elif ready == "True":',
        "elif False:",
        WORD,
    ),
    Bug(
        "a node that is silent and still Ready is said to be alive",
        "failover/knowing/acknowledgement.py",
        "silent >= FRESH:",
        "False:",
        WORD,
    ),
    Bug(
        "an acknowledgement is written on a Node that has changed since it was read",
        "cli/failover_acknowledge.py",
        '"metadata": {"resourceVersion": revision, "annotations": annotations}',
        '"metadata": {"annotations": annotations}',
        WORD,
    ),
]
