"""What the doctor makes of a host: facts and the verdict of the check that they concern."""

import json
import math
from datetime import UTC, datetime

import msgspec
import pytest
from support.doctor.peer_cases import ASKED as ASKED_FOR_PEERS
from support.doctor.peer_cases import PEERS

from lastcall.doctor import all_checks
from lastcall.doctor.facts import (
    AttemptResult,
    GuardInstallation,
    HostFacts,
    HostFile,
    KubeletFacts,
    LogindState,
    PolicyFacts,
    PriorityFacts,
    ServiceUnit,
    StateDirFacts,
    SystemdWatchdogUse,
    UnknownFact,
    WatchdogFacts,
)
from lastcall.doctor.finding import Check, CheckVerdict
from lastcall.doctor.host_checks import TARGETS
from lastcall.model.controller_manager import ControllerManager
from lastcall.ports.node import DropIn, Inhibitor, PrioritySource

OK, WARNING, FAILURE, UNKNOWN = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILURE, CheckVerdict.UNKNOWN
WHY = UnknownFact(reason="it was not to be found out")
KUBELET_HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
AGENT_HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def file(text, path="/etc/lastcall/agent.yaml"):
    return HostFile(path=path, data=text.encode())


def asks(seconds, head=AGENT_HEAD):
    return file(f"{head}shutdownGracePeriod: {seconds}s\nshutdownGracePeriodCriticalPods: 10s\n")


def lock(who, *, what="shutdown", mode="delay", pid=7):
    return Inhibitor(what=what, who=who, why="a reason", mode=mode, uid=0, pid=pid)


def logind(*locks, granted=30.0, preparing=False, scheduled=""):
    return LogindState(granted=granted, preparing=preparing, scheduled=scheduled, inhibitors=locks)


def drop_in(name, value, directory="/etc/systemd/logind.conf.d"):
    return DropIn(path=f"{directory}/{name}", value=value)


def guarded(*policies, withdrawn=False):
    return GuardInstallation(is_installed=True, failure_policies=policies, is_withdrawn=withdrawn)


def static(name, operation="DELETE", resource="pods", *, listed=False):
    """A file from which an API server loads a webhook."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}
    hook = {"name": "a.example.com", "rules": [rule]}
    found = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": name}, "webhooks": [hook]}
    return file(json.dumps({"kind": "List", "items": [found]} if listed else found), "/m/hooks.yaml")


def kubelet(config=KUBELET_HEAD, *, state=None):
    config = (file(config, "/var/lib/kubelet/config.yaml"),) if isinstance(config, str) else config
    return KubeletFacts(pid=42, started=NOON.timestamp(), arguments=("kubelet",), config=config, state=state)


def seen(start, end="0001-01-01T00:00:00Z"):
    """The kubelet's state file, as Go writes times."""
    text = msgspec.json.encode({"startTime": start, "endTime": end}).decode()
    return file(text, "/var/lib/kubelet/graceful_node_shutdown_state")


def place(message="/var/lib/lastcall can be written", *, works=True, free=2**30, inodes=10**6, volatile=False):
    usable = AttemptResult(works=works, message=message)
    return StateDirFacts(usable=usable, free_bytes=free, free_inodes=inodes, volatile=volatile)


def pod(priority_class, number=""):
    return f"apiVersion: v1\nkind: Pod\nspec:\n  priorityClassName: {priority_class}\n{number}"


SAFE = "--disable-force-detach-on-timeout"


def manager(*arguments):
    return ControllerManager(where="pod kube-system/kcm", arguments=("kube-controller-manager", *arguments))


def manifest(*arguments):
    command = ["/usr/local/bin/kube-controller-manager", *arguments]
    found = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "kcm", "command": command}]}}
    return file(msgspec.json.encode(found).decode(), "/manifests/kcm.yaml")


def service(kill_mode="control-group", stored=0, *environment):
    return ServiceUnit(
        name="lastcall-agent.service", kill_mode=kill_mode, stored_descriptors=stored, environment=environment
    )


HEALTHY = HostFacts(
    uid=0,
    booted=True,
    systemd_version="257.13-1~deb13u1",
    targets=dict.fromkeys(TARGETS, "loaded"),
    agent_unit=None,
    logind=logind(lock("lastcall", pid=900)),
    lock=AttemptResult(works=True, message="a delay lock was taken and given back"),
    limit_files=(drop_in("zz-lastcall.conf", "30"),),
    drop_in=AttemptResult(works=True, message="the drop-in can be written"),
    config=asks(30),
    state_dir=place(),
    agent=900,
    runtime=AttemptResult(works=True, message="containerd 2.1.9 answers"),
    kubelet=kubelet(),
    manifests=(file(pod("system-node-critical", "  priority: 2000001000\n"), "/manifests/api.yaml"),),
    controllers=(manager(SAFE),),
    policies=(PolicyFacts(name="workers"),),
    priorities=PriorityFacts(sources={"kube-system/dns": PrioritySource.WATCH}),
    node_identity=(),
    own_identity=(),
)


def from_sources(*sources, api=None):
    return {"priorities": PriorityFacts(sources={f"shop/p{n}": s for n, s in enumerate(sources)}, api=api)}


LOST = "it may not list endpointslices: no SIGTERM waits for Services"
IDENTITIES = [
    ("identities", {}, OK, "the node's identity and the agent's own have their rights"),
    ("identities", {"own_identity": None}, OK, "the agent's own was not checked without --kubeconfig"),
    ("identities", {"own_identity": (LOST,)}, WARNING, f"does not suffice: own: {LOST};"),
    (
        "identities",
        {"node_identity": ("a", "b"), "own_identity": WHY},
        WARNING,
        "node: a; node: b; own: it was not to be",
    ),
    ("identities", {"node_identity": None, "own_identity": None}, OK, "there is no identity for the API server"),
    ("identities", {"node_identity": WHY}, UNKNOWN, "node: it was not to be found out"),
]

W, C, M, R, D = PrioritySource
PRIORITIES = [
    ("priorities", {}, OK, "1 pod: 1 from the API"),
    (
        "priorities",
        from_sources(W, C, M, M, R),
        OK,
        "5 pods: 1 from the API, 1 from the checkpoint, 2 from manifests, 1",
    ),
    ("priorities", from_sources(), OK, "no pods run here"),
    ("priorities", from_sources(C, api=WHY), OK, "1 from the checkpoint; the API does not tell: it was not to be"),
    (
        "priorities",
        from_sources(W, D),
        WARNING,
        "2 pods: 1 from the API; taken for 0, so that they end first: shop/p1;",
    ),
    (
        "priorities",
        from_sources(D, api=WHY),
        WARNING,
        "1 pod: none known; taken for 0, so that they end first: shop/p0;",
    ),
    ("priorities", from_sources(*[D] * 7), WARNING, "shop/p4 and 2 more"),
    ("priorities", {"priorities": WHY}, UNKNOWN, "it was not to be found out"),
]


def device(**parts):
    return WatchdogFacts(**{"name": "watchdog0", "identity": "iTCO_wdt", "nowayout": False, **parts})


def use(**parts):
    return SystemdWatchdogUse(**{"running": 0.0, "rebooting": 0.0, "hidden": False, **parts})


def asks_for_dog(field=""):
    return file(f"{AGENT_HEAD}shutdownGracePeriod: 30s\nwatchdog: {{{field}}}\n")


DOG = {"config": asks_for_dog(), "watchdogs": (device(shortest=2, longest=600),), "watchdog_use": use()}
NO_SYSTEMD = {"booted": False, "systemd_version": WHY, "logind": WHY, "targets": WHY, "agent_unit": WHY, "lock": WHY}
NO_AGENT = {"agent": None, "logind": logind(granted=5.0), "limit_files": ()}
BOTH = logind(lock("lastcall"), lock("kubelet", pid=42))
EARLIER, LATER = "2026-11-21T11:59:00Z", "2026-11-21T13:00:00.123456789+00:00"
MASKED = {**dict.fromkeys(TARGETS, "loaded"), "poweroff.target": "masked"}
TWO_GATES = [
    file(f"{KUBELET_HEAD}featureGates: {{GracefulNodeShutdown: true, Other: true}}\n", "/drop/10.conf"),
    file(f"{KUBELET_HEAD}shutdownGracePeriod: 0s\n", "/drop/20.conf"),
]

TABLE = [
    # name, what is different, verdict, what the message or the fix says
    ("user", {}, OK, "root"),
    ("user", {"uid": 1000}, WARNING, "uid 1000 is not root"),
    ("systemd", {}, OK, "257.13-1~deb13u1"),
    ("systemd", {"systemd_version": "v245.4"}, OK, "v245.4"),
    ("systemd", {"systemd_version": "239-82.el8"}, WARNING, "older than 245"),
    ("systemd", {"systemd_version": "unreleased"}, UNKNOWN, "'unreleased'"),
    ("systemd", {"systemd_version": WHY}, UNKNOWN, "it was not to be found out"),
    ("systemd", NO_SYSTEMD, FAILURE, "systemd does not run on this host"),
    ("logind", {}, OK, "answers"),
    ("logind", {"logind": WHY}, FAILURE, "systemctl status dbus systemd-logind"),
    ("logind", NO_SYSTEMD, FAILURE, "there is none without systemd"),
    ("shutdown", {}, OK, "none is scheduled"),
    ("shutdown", {"logind": logind(scheduled="reboot")}, WARNING, "a reboot is scheduled"),
    ("shutdown", {"logind": logind(scheduled="poweroff", preparing=True)}, WARNING, "a poweroff is under way"),
    ("shutdown", {"logind": logind(preparing=True)}, WARNING, "a shutdown is under way"),
    ("shutdown", {"logind": WHY}, UNKNOWN, "while logind does not answer"),
    ("configuration", {}, OK, "AgentConfiguration asks for 30s in phases of 20 s, 10 s"),
    ("configuration", {"config": WHY}, UNKNOWN, "--config FILE"),
    ("configuration", {"config": file("kind: Pod")}, FAILURE, "/etc/lastcall/agent.yaml: kind:"),
    ("configuration", {"config": file(KUBELET_HEAD)}, WARNING, "asks for no time"),
    ("configuration", {"config": file(f"{AGENT_HEAD}mode: Observe\nshutdownGracePeriod: 9s")}, WARNING, "Observe"),
    ("configuration", {"config": asks(10, KUBELET_HEAD)}, WARNING, "but: "),
    ("delay-limit", {}, OK, "logind grants 30 s, as /etc/systemd/logind.conf.d/zz-lastcall.conf says"),
    ("delay-limit", {"config": file(KUBELET_HEAD)}, OK, "logind grants 30 s"),
    ("delay-limit", NO_AGENT, WARNING, "start the agent, which raises it"),
    ("delay-limit", {**NO_AGENT, "limit_files": (drop_in("99-kubelet.conf", "5"),)}, WARNING, "99-kubelet.conf"),
    (
        "delay-limit",
        {**NO_AGENT, "limit_files": (drop_in("logind.conf", "5", "/etc/systemd"),)},
        WARNING,
        "which raises it",
    ),
    (
        "delay-limit",
        {**NO_AGENT, "limit_files": (drop_in("zzz.conf", "5", "/usr/lib/systemd/logind.conf.d"),)},
        FAILURE,
        "make an empty file /etc/systemd/logind.conf.d/zzz.conf",
    ),
    ("delay-limit", {**NO_AGENT, "drop_in": AttemptResult(works=False, message="no")}, FAILURE, "set it yourself"),
    ("delay-limit", {**NO_AGENT, "drop_in": WHY}, FAILURE, "set it yourself"),
    ("delay-limit", {**NO_AGENT, "agent": 900}, FAILURE, "logind grants 5 s of the 30 s asked for"),
    ("delay-limit", {"logind": logind(granted=math.inf)}, OK, "infinity"),
    ("delay-limit", {"logind": logind(granted=math.inf), "systemd_version": "252.38"}, FAILURE, "cannot power off"),
    ("delay-limit", {"config": WHY}, UNKNOWN, "what is asked for is not known"),
    ("delay-limit", {"limit_files": WHY}, UNKNOWN, "which file sets it is not known"),
    ("delay-limit", {"logind": WHY}, UNKNOWN, "while logind does not answer"),
    ("drop-in", {}, OK, "can be written"),
    ("drop-in", {"drop_in": AttemptResult(works=False, message="read-only")}, OK, "read-only, and need not be"),
    ("drop-in", {**NO_AGENT, "drop_in": AttemptResult(works=False, message="read-only")}, WARNING, "as root"),
    ("drop-in", {"config": WHY, "drop_in": AttemptResult(works=False, message="read-only")}, WARNING, "as root"),
    ("drop-in", {"drop_in": WHY}, UNKNOWN, "not known"),
    ("lock", {}, OK, "lastcall (pid 900) holds"),
    ("lock", {"logind": logind()}, OK, "taken and given back"),
    ("lock", {"logind": logind(), "lock": AttemptResult(works=False, message="refused")}, FAILURE, "refused"),
    ("lock", {"logind": logind(), "lock": WHY}, UNKNOWN, "it was not to be found out"),
    ("lock", {"logind": WHY}, UNKNOWN, "while logind does not answer"),
    ("other-locks", {}, OK, "no other program"),
    ("other-locks", {"logind": BOTH}, OK, "no other program"),
    ("other-locks", {"logind": logind(lock("NM", what="sleep", mode="block"))}, OK, "no other program"),
    ("other-locks", {"logind": logind(lock("upgrades", what="sleep:shutdown"))}, OK, "'upgrades' (pid 7, delay"),
    ("other-locks", {"logind": logind(lock("dpkg", mode="block"))}, WARNING, "'dpkg' (pid 7, block: a reason)"),
    (
        "other-locks",
        {"logind": logind(lock("dpkg", mode="block")), "systemd_version": "252"},
        OK,
        "'dpkg' (pid 7, block",
    ),
    ("other-locks", {"logind": logind(lock("dpkg", mode="block")), "systemd_version": WHY}, WARNING, "dpkg"),
    ("other-locks", {"logind": WHY}, UNKNOWN, "while logind does not answer"),
    ("targets", {}, OK, "none of poweroff.target, reboot.target"),
    ("targets", {"targets": MASKED}, FAILURE, "systemctl unmask poweroff.target"),
    ("targets", {"targets": WHY}, UNKNOWN, "it was not to be found out"),
    ("targets", NO_SYSTEMD, UNKNOWN, "while systemd does not answer"),
    ("commands", {}, OK, "systemctl poweroff --force"),
    ("commands", {"systemd_version": "251"}, OK, "systemctl start poweroff.target"),
    ("commands", {"systemd_version": "250.9"}, WARNING, "root's `shutdown -h now`"),
    ("commands", {"systemd_version": WHY}, UNKNOWN, "systemctl poweroff --force"),
    ("agent", {}, OK, "pid 900) runs and is armed"),
    ("agent", {"agent": 0}, OK, "the agent runs and is armed"),
    ("agent", {"agent": None, "logind": logind()}, WARNING, "systemctl start lastcall-agent"),
    ("agent", {"agent": None}, WARNING, "a lock is held for one (pid 900)"),
    ("agent", {"logind": logind()}, FAILURE, "not armed"),
    ("agent", {"logind": logind(lock("lastcall", mode="block"))}, FAILURE, "not armed"),
    ("agent", {"logind": logind(), "config": WHY}, FAILURE, "not armed"),
    ("agent", {"logind": logind(preparing=True)}, OK, "needs no lock now"),
    ("agent", {"logind": logind(), "config": file(KUBELET_HEAD)}, OK, "needs no lock now"),
    ("agent", {"logind": WHY}, UNKNOWN, "the agent (pid 900) runs"),
    ("agent", {"logind": WHY, "agent": None}, WARNING, "no agent runs"),
    ("agent", {"agent": WHY}, UNKNOWN, "it was not to be found out"),
    ("unit", {}, OK, "not installed"),
    ("unit", {"agent_unit": service(stored=2)}, OK, "descriptor store"),
    ("unit", {"agent_unit": service("process")}, OK, "a process of its own"),
    ("unit", {"agent_unit": service()}, FAILURE, "KillMode=control-group and FileDescriptorStoreMax=0"),
    ("unit", {"agent_unit": service(stored=1)}, FAILURE, "set FileDescriptorStoreMax=2"),
    (
        "unit",
        {"agent_unit": service(stored=2), "systemd_version": "252"},
        FAILURE,
        "does not know its descriptor store",
    ),
    ("unit", {"agent_unit": service("control-group", 2, "FDSTORE=2"), "systemd_version": "252"}, OK, "store"),
    ("unit", {"agent_unit": WHY}, UNKNOWN, "it was not to be found out"),
    ("unit", NO_SYSTEMD, UNKNOWN, "while systemd does not answer"),
    ("state-dir", {}, OK, "1024 MiB are free"),
    ("state-dir", {"state_dir": place(inodes=None)}, OK, "can be written"),
    ("state-dir", {"state_dir": place("it is the kubelet's", works=False)}, FAILURE, "it is the kubelet's"),
    ("state-dir", {"state_dir": place(free=2**20)}, FAILURE, "only 1024 KiB are free"),
    ("state-dir", {"state_dir": place(inodes=3)}, FAILURE, "room for only 3 files"),
    ("state-dir", {"state_dir": place(volatile=True)}, WARNING, "in memory"),
    ("state-dir", {"state_dir": WHY}, UNKNOWN, "it was not to be found out"),
    ("runtime", {}, OK, "containerd 2.1.9"),
    (
        "runtime",
        {"runtime": AttemptResult(works=False, message="no such file")},
        FAILURE,
        "--container-runtime-endpoint",
    ),
    (
        "runtime",
        {"runtime": AttemptResult(works=False, message="no such file")},
        FAILURE,
        "no such file; start the container runtime",
    ),
    (
        "runtime",
        {"uid": 1000, "runtime": AttemptResult(works=False, message="Permission denied")},
        FAILURE,
        "Permission denied; run lastcall doctor as root; if it says the same, start the container runtime",
    ),
    ("runtime", {"runtime": WHY}, UNKNOWN, "it was not to be found out"),
    ("kubelet", {}, OK, "is not configured for graceful shutdown"),
    ("kubelet", {"kubelet": None}, OK, "no kubelet runs here"),
    ("kubelet", {"kubelet": kubelet(())}, OK, "is not configured for graceful shutdown"),
    ("kubelet", {"logind": BOTH}, FAILURE, "(pid 42) holds a delay lock beside lastcall"),
    ("kubelet", {"logind": logind(lock("kubelet", pid=42))}, WARNING, "it ends the pods itself"),
    ("kubelet", {"kubelet": None, "logind": BOTH}, FAILURE, "both would end the pods"),
    ("kubelet", {"kubelet": kubelet((asks(30, KUBELET_HEAD),))}, WARNING, "may be after its next start"),
    (
        "kubelet",
        {"kubelet": kubelet((asks(30, KUBELET_HEAD),)), "logind": logind()},
        FAILURE,
        "asks for 30s and holds no delay lock: it never armed",
    ),
    (
        "kubelet",
        {"kubelet": kubelet((asks(30, KUBELET_HEAD),)), "logind": logind(preparing=True)},
        UNKNOWN,
        "during a shutdown",
    ),
    ("kubelet", {"kubelet": kubelet((asks(30, KUBELET_HEAD), TWO_GATES[0]))}, WARNING, "asks for 30s"),
    (
        "kubelet",
        {"kubelet": kubelet((file(f"{KUBELET_HEAD}shutdownGracePeriod: 30s"), *TWO_GATES))},
        OK,
        "is not configured for graceful shutdown",
    ),
    ("kubelet", {"kubelet": kubelet(f"{KUBELET_HEAD}shutdownGracePeriod: x")}, UNKNOWN, "shutdownGracePeriod"),
    ("kubelet", {"kubelet": kubelet("- a list")}, UNKNOWN, "must be a mapping"),
    ("kubelet", {"kubelet": kubelet(WHY)}, UNKNOWN, "its configuration cannot be read"),
    ("kubelet", {"kubelet": WHY}, UNKNOWN, "whether one runs is not known"),
    ("kubelet", {"logind": WHY}, UNKNOWN, "while logind does not answer"),
    ("kubelet-state", {}, OK, "has seen no shutdown"),
    ("kubelet-state", {"kubelet": None}, OK, "no kubelet runs here"),
    ("kubelet-state", {"kubelet": kubelet(state=seen("0001-01-01T00:00:00Z"))}, OK, "if there was one"),
    ("kubelet-state", {"kubelet": kubelet(state=seen(EARLIER))}, OK, "has started since"),
    ("kubelet-state", {"kubelet": kubelet(state=seen(LATER))}, FAILURE, "systemctl restart kubelet"),
    (
        "kubelet-state",
        {"kubelet": kubelet(state=seen(LATER, EARLIER)), "logind": BOTH},
        FAILURE,
        "still in the shutdown of 2026-11-21T13:00:00+00:00",
    ),
    ("kubelet-state", {"kubelet": kubelet(state=seen(LATER, LATER))}, FAILURE, "NotReady"),
    ("kubelet-state", {"kubelet": kubelet(state=seen(LATER, LATER)), "logind": BOTH}, OK, "has recovered from"),
    (
        "kubelet-state",
        {"kubelet": kubelet(state=seen(LATER)), "logind": logind(preparing=True)},
        OK,
        "a shutdown is under way",
    ),
    ("kubelet-state", {"kubelet": kubelet(state=seen(LATER)), "logind": WHY}, UNKNOWN, "logind does not answer"),
    ("kubelet-state", {"kubelet": kubelet(state=seen("noon"))}, UNKNOWN, "graceful_node_shutdown_state cannot be"),
    ("kubelet-state", {"kubelet": kubelet(state=WHY)}, UNKNOWN, "it was not to be found out"),
    ("kubelet-state", {"kubelet": WHY}, UNKNOWN, "it was not to be found out"),
    ("watchdog", {}, OK, "the configuration asks for none"),
    ("watchdog", {"config": WHY}, UNKNOWN, "without a configuration"),
    ("watchdog", {"config": file("kind: x")}, UNKNOWN, "while the configuration is not valid"),
    ("watchdog", DOG, OK, "iTCO_wdt: (60 s lease + 3 * 15 s timeout) * 1.01 = 106.05 s after its last renewal"),
    (
        "watchdog",
        {**DOG, "config": asks_for_dog("device: /dev/watchdog1")},
        FAILURE,
        "no watchdog1 (there is: watchdog0)",
    ),
    ("watchdog", {**DOG, "watchdogs": ()}, FAILURE, "there is no watchdog0 (there is: none)"),
    ("watchdog", {**DOG, "watchdogs": WHY}, UNKNOWN, "it was not to be found out"),
    ("watchdog", {**DOG, "watchdogs": (device(shortest=20, longest=60),)}, FAILURE, "from 20 to 60 s, not 15 s"),
    ("watchdog", {**DOG, "watchdogs": (device(shortest=1, longest=10),)}, FAILURE, "from 1 to 10 s, not 15 s"),
    ("watchdog", {**DOG, "watchdogs": (device(shortest=16),)}, FAILURE, "from 16 to any s"),
    (
        "watchdog",
        {**DOG, "watchdogs": (device(identity="Software Watchdog"),)},
        WARNING,
        "a machine whose kernel hangs",
    ),
    ("watchdog", {**DOG, "watchdogs": (device(nowayout=True),)}, WARNING, "load its driver without nowayout"),
    ("watchdog", {**DOG, "watchdog_use": use(running=30)}, FAILURE, "set RuntimeWatchdogSec=0"),
    ("watchdog", {**DOG, "watchdog_use": use(rebooting=600)}, WARNING, "at a reboot systemd pets it for up to 10m0s"),
    ("watchdog", {**DOG, "watchdog_use": use(hidden=True)}, FAILURE, "PrivateDevices=yes"),
    ("watchdog", {**DOG, "watchdog_use": WHY}, UNKNOWN, "whether systemd uses it is not known"),
    *PEERS,
    ("static-pods", {}, OK, "all 1 manifests right"),
    ("static-pods", {"manifests": ()}, OK, "there are no static pods"),
    ("static-pods", {"manifests": (file(pod("mine")), file("a: ["), file("text"))}, OK, "all 3 manifests"),
    (
        "static-pods",
        {"manifests": (file(pod("system-node-critical"), "/manifests/api.yaml"), file(pod("mine"), "/m/other"))},
        WARNING,
        "(lastcall would not): /manifests/api.yaml",
    ),
    ("static-pods", {"manifests": (file(pod("system-cluster-critical")),)}, WARNING, "2000000000 for"),
    ("static-pods", {"manifests": WHY}, UNKNOWN, "it was not to be found out"),
    *IDENTITIES,
    *PRIORITIES,
    ("force-detach", {}, OK, "detaches nothing because time has passed"),
    (
        "force-detach",
        {"controllers": (manager(),)},
        WARNING,
        "off or not: pod kube-system/kcm; start it with --disable-",
    ),
    ("force-detach", {"controllers": (manager(f"{SAFE}=false"),)}, WARNING, "pod kube-system/kcm"),
    ("force-detach", {"controllers": (manager(SAFE), manager())}, WARNING, "pod kube-system/kcm"),
    ("force-detach", {"controllers": (manager("--controllers=*,-attachdetach"),)}, OK, "needs --attach-detach own"),
    ("force-detach", {"controllers": WHY}, UNKNOWN, "it was not to be found out"),
    ("force-detach", {"controllers": ()}, UNKNOWN, "it runs elsewhere, or a provider runs it"),
    ("force-detach", {"controllers": None}, UNKNOWN, "the cluster was not asked; give --kubeconfig"),
    ("force-detach", {"controllers": None, "manifests": WHY}, UNKNOWN, "the cluster was not asked"),
    ("force-detach", {"controllers": None, "manifests": (manifest(), file("a: ["))}, WARNING, "/manifests/kcm.yaml"),
    ("force-detach", {"controllers": None, "manifests": (manifest(SAFE),)}, OK, "detaches nothing"),
    ("fence-policies", {}, OK, "none reports that a fencer fails or that a limit holds back fencing"),
    ("fence-policies", {"policies": ()}, OK, "fails over no node"),
    ("fence-policies", {"policies": None}, OK, "not checked without --kubeconfig"),
    ("fence-policies", {"policies": WHY}, UNKNOWN, "it was not to be found out"),
    (
        "fence-policies",
        {"policies": (PolicyFacts(name="a"), PolicyFacts(name="b", unmet=("fencer bmc of node n1: no answer",)))},
        WARNING,
        "not failed over: FencePolicy b: fencer bmc of node n1: no answer; kubectl describe fencepolicies b; lastcall",
    ),
    ("guard", {}, OK, "not checked without --kubeconfig"),
    ("guard", {"guard": WHY}, UNKNOWN, "it was not to be found out"),
    ("guard", {"guard": GuardInstallation()}, OK, "no deletion is held"),
    (
        "guard",
        {"guard": guarded("Ignore", "Ignore")},
        OK,
        "a DELETE passes unprepared, and PodDisruptionBudgets hold evic",
    ),
    ("guard", {"guard": guarded("Ignore", "Fail")}, OK, "deletions are refused, until lastcall controller withdraws"),
    ("guard", {"guard": guarded()}, WARNING, "the guard has no webhooks; apply the guard's manifests"),
    (
        "guard",
        {"guard": guarded(withdrawn=True)},
        WARNING,
        "withdrawn: no deletion is held; kubectl -n lastcall-system get",
    ),
    ("guard", {"guard": guarded("Fail"), "static_webhooks": WHY}, UNKNOWN, "it was not to be found out"),
    (
        "guard",
        {"static_webhooks": (static("a.static.k8s.io"),)},
        WARNING,
        "withdraw while their guard does not answer: a.sta",
    ),
    (
        "guard",
        {"static_webhooks": (static("a.static.k8s.io", "CREATE", "pods/eviction"),)},
        WARNING,
        "in /m/hooks.yaml; move",
    ),
    (
        "guard",
        {"static_webhooks": (static("a.static.k8s.io", "*", "*/*"),)},
        WARNING,
        "a.static.k8s.io in /m/hooks.yaml",
    ),
    (
        "guard",
        {"static_webhooks": (static("a.static.k8s.io", listed=True),)},
        WARNING,
        "a.static.k8s.io in /m/hooks.yaml",
    ),
    (
        "guard",
        {"static_webhooks": (static("a.static.k8s.io", "CREATE", "pods"),)},
        OK,
        "not checked without --kubeconfig",
    ),
    ("guard", {"static_webhooks": (static("a.static.k8s.io", "DELETE", "services"),)}, OK, "not checked without"),
    ("guard", {"static_webhooks": (static("a.example.com"), file("a: ["))}, OK, "not checked without --kubeconfig"),
]


def examined(**changes):
    return {check.name: check for check in all_checks.run_checks(msgspec.structs.replace(HEALTHY, **changes))}


@pytest.mark.parametrize(("name", "changes", "verdict", "words"), TABLE)
def test_facts_lead_to_a_verdict_and_a_word_on_it(name, changes, verdict, words):
    check = examined(**changes)[name]
    assert check.verdict is verdict, check
    assert words in f"{check.message}; {check.fix}"


@pytest.mark.parametrize("name", all_checks.CHECKS)
def test_every_check_can_be_well_and_unwell(name):
    verdicts = {verdict for checked, _, verdict, _ in TABLE if checked == name}
    assert OK in verdicts
    assert verdicts & {WARNING, FAILURE}


def test_a_healthy_host_passes_every_check_in_the_order_told():
    checks = all_checks.run_checks(HEALTHY)
    assert [check.name for check in checks] == list(all_checks.CHECKS)
    assert {check.verdict for check in checks} == {OK}


@pytest.mark.parametrize("changes", [changes for _, changes, _, _ in TABLE])
def test_each_check_is_one_line_and_says_what_to_mend(changes):
    for check in examined(**changes).values():
        assert check.message
        assert "\n" not in check.message + check.fix
        assert bool(check.fix) or check.verdict in (OK, UNKNOWN)
        assert not check.fix or check.verdict is not OK


@pytest.mark.parametrize("field", [name for name in HostFacts.__struct_fields__ if name not in ("uid", "booted")])
def test_what_is_not_known_spoils_nothing_else(field):
    checks = examined(**{**DOG, **ASKED_FOR_PEERS, field: WHY})
    failed = {name for name, check in checks.items() if check.verdict is FAILURE}
    assert failed == ({"logind"} if field == "logind" else set())
    assert any(check.verdict is UNKNOWN for check in checks.values()) or field == "lock"


def test_nothing_known_at_all_is_told_without_a_crash():
    fields = [name for name in HostFacts.__struct_fields__ if name not in ("uid", "booted")]
    verdicts = {name: check.verdict for name, check in examined(**dict.fromkeys(fields, WHY)).items()}
    assert verdicts.pop("logind") is FAILURE
    assert verdicts.pop("user") is OK
    assert set(verdicts.values()) == {UNKNOWN}


def test_the_report_counts_and_is_plain_json():
    checks = [Check(name=str(n), verdict=verdict, message="m") for n, verdict in enumerate(CheckVerdict)]
    checks.append(Check(name="last", verdict=FAILURE, message="m", fix="f"))
    report = msgspec.json.decode(msgspec.json.encode(all_checks.build_report(checks)))
    assert (report["failures"], report["warnings"]) == (2, 1)
    assert report["checks"][-1] == {"name": "last", "verdict": "failure", "message": "m", "fix": "f"}
    assert report["checks"][0] == {"name": "0", "verdict": "ok", "message": "m", "fix": ""}
