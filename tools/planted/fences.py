"""Bugs of fences: which machine is behind one, who is asked what next, and what a fence agent has said."""

from planted.bug import Bug

TARGETS = ("tests/core/test_failover_targets.py",)
TURNS = ("tests/core/test_failover_fencing.py",)
WORDS = ("tests/core/test_fence_agent_words.py",)
ORDERS = ("tests/core/test_failover_orders.py",)
AGENTS = ("tests/adapters/test_fence_agent.py",)

BUGS = [
    Bug(
        "one identifier that agrees is enough, whatever the others say",
        "failover/limits/targets.py",
        "        if not same:\n            return Judgement(Match.OTHER, sentence)",
        "        if same:\n            return Judgement(Match.SAME, sentence)",
        TARGETS,
    ),
    Bug(
        "a UUID has one byte order",
        "failover/limits/targets.py",
        "return frozenset() if spellings & _UNSET_UUIDS else spellings",
        "return frozenset((digits,))",
        TARGETS,
    ),
    Bug(
        "a UUID that nobody has set tells machines apart",
        "failover/limits/targets.py",
        "return frozenset() if spellings & _UNSET_UUIDS else spellings",
        "return spellings",
        TARGETS,
    ),
    Bug(
        "a fence that does not say its machine passes",
        "failover/limits/targets.py",
        "(unchecked and self.match is Match.UNKNOWN)",
        "self.match is Match.UNKNOWN",
        TARGETS,
    ),
    Bug(
        "without a check another machine passes too",
        "failover/limits/targets.py",
        "(unchecked and self.match is Match.UNKNOWN)",
        "unchecked",
        TARGETS,
    ),
    Bug(
        "an answer from before the order counts",
        "failover/deciding/fencing.py",
        "answer.boot_id == boot_id and answer.asked >= last.ended",
        "answer.boot_id == boot_id",
        TURNS,
    ),
    Bug(
        "one OFF is enough",
        "failover/deciding/fencing.py",
        "if gap(run[0], answer) >= apart), None)",
        "), None)",
        TURNS,
    ),
    Bug(
        "the second question for the status is put as soon as a slow first one is answered",
        "failover/deciding/fencing.py",
        "device, run[0].answered + apart, now,",
        "device, run[0].asked + apart, now,",
        TURNS,
    ),
    Bug(
        "after an order that failed nobody looks whether it was carried out",
        "failover/deciding/fencing.py",
        "    last = device.offs[-1]\n",
        "    last = device.offs[-1]\n    if last.error:\n        return None\n",
        TURNS,
    ),
    Bug(
        "a fencer that is not believed is believed for ever",
        "failover/deciding/fencing.py",
        "answer.asked >= twice.asked + 2 * fresh]",
        "answer.asked >= twice.asked + 2000 * fresh]",
        TURNS,
    ),
    Bug(
        "a fencer is not believed any more though nobody has asked it since",
        "failover/deciding/fencing.py",
        "    if len(late) < 2:\n",
        "    if now < twice.asked + 2 * fresh:\n",
        TURNS,
    ),
    Bug(
        "a fencer is not believed any more for one answer",
        "failover/deciding/fencing.py",
        "    if len(late) < 2:\n",
        "    if not late:\n",
        TURNS,
    ),
    Bug(
        "an order may run until the last moment in which nobody else leads",
        "failover/deciding/fencing.py",
        "min(timeout, over_by - now - MARGIN)",
        "min(timeout, over_by - now)",
        TURNS,
    ),
    Bug(
        "exit code 2 is OFF",
        "adapters/fencing/agent_words.py",
        'if ended.code == 2 and words == {"OFF"}:',
        "if ended.code == 2:",
        WORDS,
    ),
    Bug(
        "the word OFF is OFF",
        "adapters/fencing/agent_words.py",
        'if ended.code == 2 and words == {"OFF"}:',
        'if "OFF" in words:',
        WORDS,
    ),
    Bug(
        "a secret in quotes is shown",
        "adapters/fencing/agent_words.py",
        "quote(secret), repr(secret)[1:-1], ",
        "",
        WORDS,
    ),
    Bug(
        "fence_redfish may choose its system",
        "adapters/fencing/agent_schema.py",
        '_NEEDED.get(schema.program, ("", ""))',
        '("", "")',
        WORDS,
    ),
    Bug(
        "a policy may name a program that an agent runs",
        "adapters/fencing/agent_schema.py",
        '("_script", "_path")',
        '("_script",)',
        WORDS,
    ),
    Bug(
        "an agent's children live on",
        "adapters/fencing/agent_process.py",
        "os.killpg(process.pid, signal.SIGKILL)",
        "process.kill()",
        AGENTS,
    ),
    Bug(
        "nothing ends an agent when the controller was killed",
        "adapters/fencing/agent_process.py",
        'f"{self._until:.3f}")',
        'f"{self._until + 3600:.3f}")',
        AGENTS,
    ),
    Bug(
        "a healthy leader kills an order of its own early",
        "failover/doing/orders.py",
        "            devices.put_off(fencer, ",
        "            devices.facts() and (",
        ORDERS,
    ),
    Bug(
        "an order is put off although nobody knows that we lead as long",
        "failover/deciding/fencing.py",
        "return min(began + timeout, over_by - MARGIN)",
        "return began + timeout",
        ORDERS,
    ),
    Bug(
        "an agent that gave up waiting counts as one that has failed",
        "adapters/fencing/fence_agent.py",
        "if ended.code != SLOW_CODES[action]:",
        "if ended.code:",
        AGENTS,
    ),
    Bug(
        "ipmitool is given the password as an argument",
        "adapters/fencing/fence_agent.py",
        'self._by_ipmitool = "ipmitool_path" in schema.parameters',
        "self._by_ipmitool = False",
        AGENTS,
    ),
]
