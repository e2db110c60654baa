"""What happens and what must hold, as sentences: read and written by one table each (pure)."""

from collections.abc import Mapping, Sequence

import msgspec

from lastcall_lab.simulation.scenario import Expectation, Goal, ScenarioEvent, Verb
from lastcall_lab.simulation.scenario_text import sentence_forms
from lastcall_lab.simulation.scenario_text.sentence_forms import SentenceForm

_AMOUNT = {"part": "amount", "by": "amount", "up_to": "amount", "number": "amount"}
_LIMIT = {"lasts": "limit", "number": "limit"}


def _event_form(verb: Verb, text: str, about: str) -> SentenceForm[Verb]:
    return SentenceForm(verb, text, about, _AMOUNT)


def _goal_form(goal: Goal, text: str, about: str) -> SentenceForm[Goal]:
    return SentenceForm(goal, text, about, _LIMIT)


EVENTS: Sequence[SentenceForm[Verb]] = (
    _event_form(
        Verb.ROLL,
        "reboot {nodes} one after the other[, {number} at a time][, each for {lasts}]",
        "each is rebooted when the one before is ready again and every workload is whole; off for 20s unless it is said",
    ),
    _event_form(
        Verb.REBOOT,
        "reboot {nodes}[ for {lasts}]",
        "the button is pressed; when the machine is off it stays off so long (20s unless it is said), and is switched on",
    ),
    _event_form(
        Verb.SHUT_DOWN,
        "shut down {nodes}[ for {lasts}]",
        "the button is pressed; the machine stays off, or is switched on so long after it went off",
    ),
    _event_form(Verb.CANCEL, "cancel the shutdown of {nodes}", "as `shutdown -c` does: the machine stays up"),
    _event_form(
        Verb.SPOT,
        "reclaim {nodes}[ with {lasts} notice]",
        "the button is pressed, and so much later the power is cut, whatever still runs; 120s unless it is said",
    ),
    _event_form(Verb.POWER_CUT, "cut the power of {nodes}[ for {lasts}]", "the plug is pulled: nothing on it runs on"),
    _event_form(Verb.HANG, "hang {nodes}[ for {lasts}]", "its kubelet answers nobody; its pods run on, and write"),
    _event_form(
        Verb.PARTITION,
        "cut {nodes} off from the control plane[ for {lasts}]",
        "everything on it runs on, and nobody hears of it",
    ),
    _event_form(Verb.NO_STORAGE, "cut {nodes} off from the storage[ for {lasts}]", "every write to a volume fails"),
    _event_form(
        Verb.DRAIN,
        "drain {nodes}[ for {lasts}]",
        "as `kubectl drain --ignore-daemonsets`; so long after it is empty it is uncordoned",
    ),
    _event_form(
        Verb.LASTCALL_DRAIN,
        "drain {nodes} with lastcall[ within {up_to}][, then {on_timeout}][, {surge}]",
        "one run of `lastcall drain --ignore-daemonsets --delete-emptydir-data`; DURATION is its `--timeout`, and POLICY its"
        " `--on-timeout`: `stop`, `delete` or `force`; `with surge` is `--surge`. The nodes stay cordoned",
    ),
    _event_form(
        Verb.KILL_DRAIN,
        "kill the drains[ after {number} step{s}][ for {lasts}]",
        "SIGKILL for each run of `lastcall drain`, at once or after so many more of its steps; the same command is given"
        " again so much later, 5s unless it is said",
    ),
    _event_form(
        Verb.TAKE_RIGHT,
        "take the right to {right} from the drains[ for {lasts}]",
        "each run of `lastcall drain` gets 403 for what needs it, for instance `create pods/eviction`; open watches go on",
    ),
    _event_form(
        Verb.KILL_GUARD,
        "kill the guard[ after {number} step{s}][ for {lasts}]",
        "the replica of lastcall's guard that leads, at once or after so many more of its steps; started again after 2s"
        " unless it is said",
    ),
    _event_form(Verb.STOP_GUARDS, "stop the guards[ for {lasts}]", "all replicas"),
    _event_form(
        Verb.APPS_STALL,
        "stall the applications[ for {lasts}]",
        "of all guarded workloads: what they prepare stands still",
    ),
    _event_form(Verb.APPS_SILENT, "silence the applications[ for {lasts}]", "they answer no guard"),
    _event_form(
        Verb.APPS_SLOW,
        "delay the applications by {up_to}[ for {lasts}]",
        "each of their answers to a guard takes so long",
    ),
    _event_form(
        Verb.APPS_FLAP,
        "have the applications flap[ for {lasts}]",
        "what they prepare stands still and goes on, by turns, ten times; for 20s unless it is said",
    ),
    _event_form(Verb.APPS_FORGET, "have the applications forget", "what they have prepared does not stand any more"),
    _event_form(
        Verb.APPS_LIE,
        "have the applications lie[ for {lasts}]",
        "they answer each guard that they are ready, whatever is prepared",
    ),
    _event_form(Verb.UNCORDON, "uncordon {nodes}", "as `kubectl uncordon`, whoever has cordoned it"),
    _event_form(Verb.CORDON, "cordon {nodes}[ for {lasts}]", "as `kubectl cordon`, and then `kubectl uncordon`"),
    _event_form(
        Verb.OUT_OF_SERVICE,
        "taint {nodes} out of service[ for {lasts}]",
        "as an administrator does by hand for a machine that is off: `node.kubernetes.io/out-of-service`",
    ),
    _event_form(
        Verb.KILL_AGENT,
        "kill the agent of {nodes}[ after {number} step{s}][ for {lasts}]",
        "SIGKILL for kubelet and agent, or for the agent alone if it is `lastcall-beside-kubelet`; at once or after so many"
        " more steps; started again after 2s unless it is said",
    ),
    _event_form(
        Verb.KILL_KUBELET,
        "kill the kubelet of {nodes}",
        "SIGKILL; its unit starts it again after 10s. Unless it is `lastcall-beside-kubelet`, the agent dies with it",
    ),
    _event_form(
        Verb.START_KUBELET,
        "start the kubelet of {nodes}",
        "somebody starts its unit, also if the agent has stopped it for a shutdown; nothing if it runs",
    ),
    _event_form(
        Verb.KILL_HOLDER, "kill the lock holder of {nodes}", "the process that keeps the lock beside the agent"
    ),
    _event_form(Verb.RESTART_LOGIND, "restart logind of {nodes}", "it forgets a shutdown under way"),
    _event_form(Verb.LOSE_BUS, "stop D-Bus of {nodes}[ for {lasts}]", "and logind with it; for 5s unless it is said"),
    _event_form(
        Verb.RUNTIME_AWAY,
        "stop the runtime of {nodes}[ for {lasts}]",
        "nothing answers for the containers, which run on; for 10s unless it is said",
    ),
    _event_form(Verb.DISK_FULL, "fill the disk of {nodes}[ for {lasts}]", "the agent can write nothing down"),
    _event_form(
        Verb.CLOCK_STEP,
        "step the clock of {nodes} by {by}[ for {lasts}]",
        "its wall clock; `-1h` sets it back",
    ),
    _event_form(
        Verb.CLOCK_DRIFT,
        "let the clock of {nodes} drift by {by}[ for {lasts}]",
        "its wall clock goes wrong little by little, by so much in all, and is then set right; for 1m unless it is said",
    ),
    _event_form(
        Verb.DISK_SLOW,
        "slow the disk of {nodes} by {up_to}[ for {lasts}]",
        "so much later than usual is safe what the agent writes down",
    ),
    _event_form(Verb.API_DOWN, "stop the API server[ for {lasts}]", "nobody reaches it"),
    _event_form(
        Verb.API_RESTART,
        "restart the API server[ for {lasts}]",
        "it ends, and is there again so much later; 1s unless it is said",
    ),
    _event_form(Verb.API_COMPACT, "compact the history", "who watches the API server hears 410 Gone, and lists again"),
    _event_form(
        Verb.API_ERRORS,
        "refuse {part} of requests[ of {nodes}][ for {lasts}]",
        "with 409, 429, 500 or a broken connection",
    ),
    _event_form(
        Verb.REQUESTS_LOST,
        "lose all requests[ of {nodes}][ for {lasts}]",
        "none arrives at the API server; watches that are open go on",
    ),
    _event_form(
        Verb.ANSWERS_LOST,
        "lose all answers[ to {nodes}][ for {lasts}]",
        "what is asked for is done, and who asked hears neither of that nor of anything that is watched",
    ),
    _event_form(
        Verb.STALE_LISTS,
        "serve lists that are {up_to} old[ to {nodes}][ for {lasts}]",
        "to lastcall's own programs, as an API server does whose cache is so far behind; watches begin where the list ended."
        " Kubelets and controllers of Kubernetes name the revision that they know, and get nothing older",
    ),
    _event_form(
        Verb.STALE_STARTS,
        "serve first lists that are {up_to} old[ to {nodes}][ for {lasts}]",
        "the same for programs that start: as with kubelets and controllers of Kubernetes before 1.35, only what one asks"
        " for first may be older than what it knew before",
    ),
    _event_form(
        Verb.ETCD_RESTORE,
        "restore etcd[ {lasts} later]",
        "from a backup that is made at this time, 30s later unless it is said; the control plane's controllers start anew",
    ),
    _event_form(
        Verb.API_SLOW,
        "delay answers by up to {up_to}[ to {nodes}][ for {lasts}]",
        "each of the API server's by a time of its own",
    ),
    _event_form(
        Verb.API_TORN,
        "tear {part} of answers[ to {nodes}][ for {lasts}]",
        "the connection breaks in the middle of one: what was asked for is done, and who asked does not know it",
    ),
    _event_form(
        Verb.WATCH_LATE,
        "delay watches by up to {up_to}[ of {nodes}][ for {lasts}]",
        "each event by a time of its own",
    ),
    _event_form(Verb.WATCH_DOUBLE, "repeat {part} of watch events[ of {nodes}][ for {lasts}]", "they come twice"),
    _event_form(
        Verb.WATCH_TORN,
        "tear {part} of watch events[ of {nodes}][ for {lasts}]",
        "the watch breaks off in the middle of one",
    ),
    _event_form(
        Verb.WATCH_LOST,
        "lose {part} of watch events[ of {nodes}][ for {lasts}]",
        "the watch stays open, and nobody misses them; then the API server starts again, and all list anew",
    ),
    _event_form(
        Verb.WATCH_SILENT,
        "silence watches[ of {nodes}][ for {lasts}]",
        "they stay open, and nothing comes through any more",
    ),
    _event_form(
        Verb.KILL_CONTROLLERS,
        "kill the controllers[ for {lasts}]",
        "all of the control plane's; others take over after 15s unless it is said",
    ),
    _event_form(
        Verb.DATAGRAMS_DOUBLE,
        "repeat {part} of datagrams[ for {lasts}]",
        "by which watchdogs ask their peers: they arrive twice, late, and overtake each other",
    ),
    _event_form(
        Verb.PAUSE_CONTROLLERS,
        "freeze the controllers[ for {lasts}]",
        "all of the control plane's, as by SIGSTOP; for 15s unless it is said; then they go on with what they knew",
    ),
    _event_form(
        Verb.PAUSE_FAILOVER,
        "freeze the failover controller[ for {lasts}]",
        "the one of lastcall's that leads, as by SIGSTOP; for 30s unless it is said; then it goes on with what it knew",
    ),
    _event_form(
        Verb.CLOCK_FAILOVER,
        "step the clock of the failover controllers by {by}[ for {lasts}]",
        "the wall clock of all of lastcall's",
    ),
    _event_form(
        Verb.POLICY_SUSPECT,
        "edit the policy to suspect after {up_to}[ for {lasts}]",
        "its `suspectAfter`, for all nodes",
    ),
    _event_form(
        Verb.POLICY_OBSERVE,
        "edit the policy to observe[ for {lasts}]",
        "its `mode`: lastcall fences nothing any more",
    ),
    _event_form(
        Verb.KILL_FAILOVER,
        "kill the failover controller[ after {number} step{s}][ for {lasts}]",
        "the one of lastcall's that leads, at once or after so many more of its steps; started again after 2s unless it is"
        " said",
    ),
    _event_form(Verb.STOP_FAILOVER, "stop the failover controllers[ for {lasts}]", "all of lastcall's"),
    _event_form(
        Verb.CUT_FAILOVER,
        "cut the failover controller off from the API server[ for {lasts}]",
        "the one of lastcall's that leads, and that believes for a while that it still does",
    ),
    _event_form(
        Verb.BMC_SAYS_ON,
        "have the BMC of {nodes} say on[ for {lasts}]",
        "whatever is true, its status is that the machine is on; it switches as it should",
    ),
    _event_form(
        Verb.BMC_SAYS_OFF,
        "have the BMC of {nodes} say off[ for {lasts}]",
        "whatever is true, its status is that the machine is off; it switches as it should",
    ),
    _event_form(Verb.BMC_DEAF, "have the BMC of {nodes} answer nobody[ for {lasts}]", "it does nothing either"),
    _event_form(
        Verb.BMC_STUCK,
        "have the BMC of {nodes} switch nothing[ for {lasts}]",
        "it answers that it has, and its status is true",
    ),
    _event_form(
        Verb.BMC_LATE,
        "delay the BMC of {nodes} by {up_to}[ for {lasts}]",
        "each of its answers; after 10s nobody waits for one any more",
    ),
    _event_form(
        Verb.BMC_WIRED,
        "wire the BMC of {nodes} to {other}[ for {lasts}]",
        "it tells of that machine, and switches that one",
    ),
)
"""What can be said to happen. Where machines may be named and are not, all programs are meant."""

EXPECTATIONS: Sequence[SentenceForm[Goal]] = (
    _goal_form(Goal.REQUESTS_LOST, "{subject} loses at most {number} request{s}", "of those that its clients make"),
    _goal_form(Goal.REQUESTS_LOST, "{subject} loses no request", "the same, with 0"),
    _goal_form(
        Goal.DOWN_FOR,
        "{subject} is down for at most {lasts}",
        "in all: no pod serves, nobody leads, or, of a StatefulSet, one of its pods does not serve",
    ),
    _goal_form(Goal.DOWN_FOR, "{subject} is never down", "the same, with 0"),
    _goal_form(
        Goal.WRITES_LOST, "{subject} loses at most {number} write{s}", "of those that its pods had acknowledged"
    ),
    _goal_form(Goal.WRITES_LOST, "{subject} loses no write", "the same, with 0"),
    _goal_form(Goal.RUNS, "{subject} runs at the end", "all the pods that it wants are ready"),
    _goal_form(Goal.STUCK, "{subject} is stuck at the end", "it does not run, and waits for what will not come"),
    _goal_form(
        Goal.ENDED_IN_TIME,
        "every pod[ of {subject}] ends before the power goes",
        "no pod was still running on a machine that went off",
    ),
    _goal_form(
        Goal.ENDED_BY_ITSELF,
        "every pod[ of {subject}] ends by itself",
        "no container got SIGKILL or lost its power, and none that got SIGTERM still runs at the end",
    ),
    _goal_form(Goal.FENCED, "lastcall fences at most {number} machine{s}", "whose BMC was told to switch off"),
    _goal_form(Goal.FENCED, "lastcall fences no machine", "the same, with 0"),
)
"""What can be said to hold."""


def parse_event(sentence: str, at: float) -> ScenarioEvent:
    """What a sentence says that happens at ``at``; ValueError if it is not understood."""
    verb, values = sentence_forms.read_sentence(sentence, EVENTS)
    return ScenarioEvent(at=at, verb=verb, **values)


def event_sentence(event: ScenarioEvent) -> str:
    """The sentence; what means nothing to its verb is not said."""
    return sentence_forms.write_sentence(event.verb, _field_values(event), EVENTS)


def parse_expectation(sentence: str) -> Expectation:
    """What a sentence expects; ValueError if it is not understood."""
    goal, values = sentence_forms.read_sentence(sentence, EXPECTATIONS)
    return Expectation(goal=goal, **values)


def expectation_sentence(expectation: Expectation) -> str:
    """The sentence."""
    return sentence_forms.write_sentence(expectation.goal, _field_values(expectation), EXPECTATIONS)


def _field_values(facts: ScenarioEvent | Expectation) -> Mapping[str, object]:
    return msgspec.structs.asdict(facts)
