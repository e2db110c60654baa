"""Every name that others can see or match on: labels, annotations, taints, conditions, reasons, finalizers, metrics.

``python -m lastcall.names`` prints the reference page; ``--check FILE`` compares it with the committed one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Name:
    """A name with what it is and where it comes from."""

    text: str
    kind: str
    meaning: str

    def __str__(self) -> str:
        return self.text


ALL: list[Name] = []


def _define_name(kind: str, text: str, meaning: str) -> str:
    ALL.append(Name(text=text, kind=kind, meaning=meaning))
    return text


GROUP = "lastcall.dev"
API_VERSION = _define_name("API version", f"{GROUP}/v1alpha1", "of every kind that lastcall defines")
AGENT_CONFIGURATION = _define_name("kind", "AgentConfiguration", "the agent's configuration file")
NODE_SHUTDOWN = _define_name(
    "kind",
    "NodeShutdown",
    "the record of one node's going down; `lastcall report -o json` prints it, the agent writes it under its Node's name",
)
FENCE_POLICY = _define_name(
    "kind", "FencePolicy", "how nodes that are lost may be fenced and failed over; cluster-scoped"
)

PRIORITY_ANNOTATION = _define_name(
    "annotation",
    f"{GROUP}/priority",
    "on a pod: its priority as a number, for a runtime that knows nothing of priorities; the pod's spec goes first",
)
FAILOVER_ANNOTATION = _define_name(
    "annotation",
    f"{GROUP}/failover",
    "on a pod: `Disabled` keeps lastcall from ever forcing it; on a node: lastcall's mark while it fails over",
)

MACHINE_SERIAL = _define_name(
    "annotation",
    f"{GROUP}/machine-serial",
    "on a Node, by a person: the serial number of its machine, which a fence device is held against",
)
ACKNOWLEDGED_DEAD = _define_name(
    "annotation",
    f"{GROUP}/acknowledged-dead",
    "on a Node, by a person: the boot id of its machine that is off, and the last renewal of its Lease; `lastcall failover acknowledge` writes it",
)

FENCED = _define_name(
    "annotation",
    f"{GROUP}/fenced",
    "on a Node, as JSON: which of its boots lastcall has had switched off, and when that was over; kept for an hour",
)

SYSTEM_NAMESPACE = _define_name("namespace", "lastcall-system", "where lastcall's own objects are")
NODES_NAMESPACE = _define_name(
    "namespace",
    "lastcall-nodes",
    "where agents write the Leases of their nodes; controllers elect their leader elsewhere",
)
WATCHDOG = _define_name(
    "annotation",
    f"{GROUP}/watchdog",
    "on a node's Lease in lastcall-nodes, as JSON: whether its agent's watchdog is armed, for which boot, and how",
)
PEERS_HEARD = _define_name(
    "annotation",
    f"{GROUP}/peers-heard",
    "on a node's Lease in lastcall-nodes, as JSON: of which nodes its agent has heard by UDP within a minute, that have lost the API server",
)
STORAGE_LEASE = _define_name(
    "annotation",
    f"{GROUP}/storage-lease",
    "on a node's Lease in lastcall-nodes, as JSON: its lease on shared storage, and what it reads there of other nodes' leases",
)
PEERS_SECRET = _define_name(
    "Secret", "lastcall-watchdog-peers", "in lastcall-system: the keys by which agents believe each other's messages"
)
PEERS_KEY = _define_name(
    "key of a Secret", "key", "in lastcall-watchdog-peers: the one that signs; all others there are believed too"
)

# Kubernetes' own labels and annotations on sandboxes and containers (pkg/kubelet/kuberuntime/labels.go).
POD_NAME = _define_name("label", "io.kubernetes.pod.name", "on sandboxes and containers, set by the kubelet")
POD_NAMESPACE = _define_name("label", "io.kubernetes.pod.namespace", "on sandboxes and containers, set by the kubelet")
POD_UID = _define_name("label", "io.kubernetes.pod.uid", "on sandboxes and containers, set by the kubelet")
CONTAINER_NAME = _define_name("label", "io.kubernetes.container.name", "on containers, set by the kubelet")
CONTAINER_GRACE = _define_name(
    "annotation", "io.kubernetes.pod.terminationGracePeriod", "on containers: the pod's terminationGracePeriodSeconds"
)
CONTAINER_DELETION_GRACE = _define_name(
    "annotation", "io.kubernetes.pod.deletionGracePeriod", "on containers: the grace of a pod that is being deleted"
)
CONTAINER_PRE_STOP = _define_name(
    "annotation", "io.kubernetes.container.preStopHandler", "on containers: the preStop hook as JSON"
)
CONTAINER_PORTS = _define_name("annotation", "io.kubernetes.container.ports", "on containers: the ports as JSON")
CONTAINER_RESTARTS = _define_name(
    "annotation", "io.kubernetes.container.restartCount", "on containers, set by the kubelet"
)
CONFIG_SOURCE = _define_name(
    "annotation", "kubernetes.io/config.source", "on sandboxes: `file` and `http` are static pods"
)

POD_ADDRESS = _define_name(
    "annotation", f"{GROUP}/pod-address", "on the lab's sandboxes, which have the host's network: the pod's own address"
)

OUT_OF_SERVICE = _define_name(
    "taint",
    "node.kubernetes.io/out-of-service",
    "on a node that is off and stays off, as somebody says who has made sure (KEP-2268)",
)

# What the kubelet writes when the node goes down (pkg/kubelet/nodeshutdown, pkg/kubelet/kubelet_node_status.go).
READY = _define_name("condition", "Ready", "of nodes and pods")
NOT_READY_REASON = _define_name("reason", "KubeletNotReady", "of the node's Ready=False while it goes down")
NOT_READY_MESSAGE = _define_name("message", "node is shutting down", "of the node's Ready=False while it goes down")
READY_REASON = _define_name("reason", "KubeletReady", "of the node's Ready=True")
READY_MESSAGE = _define_name("message", "lastcall's node is ready", "of the node's Ready=True")
TERMINATED_REASON = _define_name("reason", "Terminated", "of a pod that was ended because its node goes down")
TERMINATED_MESSAGE = _define_name(
    "message", "Pod was terminated in response to imminent node shutdown.", "of such a pod and its DisruptionTarget"
)
DISRUPTION_TARGET = _define_name(
    "condition", "DisruptionTarget", "True on a pod that was ended because its node goes down"
)
TERMINATION_BY_KUBELET = _define_name("reason", "TerminationByKubelet", "of DisruptionTarget")
REFUSED_REASON = _define_name("reason", "NodeShutdown", "of a pod that came when its node was going down")
REFUSED_MESSAGE = _define_name("message", "Pod was rejected as the node is shutting down.", "of such a pod")
SHUTDOWN_EVENT = _define_name("reason", "Shutdown", "of the node's events when a shutdown is seen or cancelled")

KUBELET_STATE_FILE = _define_name(
    "file",
    "graceful_node_shutdown_state",
    "start and end of the last shutdown, as the kubelet writes it; in --state-dir",
)
LOGIND_DROP_IN = _define_name("file", "zz-lastcall.conf", "in /etc/systemd/logind.conf.d: raises InhibitDelayMaxSec")
LOCK_WHO = _define_name("inhibitor", "lastcall", "the name under which `systemd-inhibit --list` shows the delay lock")

KUBELET_START = "lastcall-kubelet-start"
KUBELET_TIMER = _define_name(
    "unit", f"{KUBELET_START}.timer", "there while lastcall keeps the kubelet stopped: starts it if nobody else does"
)
_define_name(
    "unit", f"{KUBELET_START}.service", "what the timer activates; it wants the kubelet's unit and does nothing else"
)

# Metrics. The first two are the kubelet's (pkg/kubelet/metrics).
M_START = _define_name(
    "metric", "kubelet_graceful_shutdown_start_time_seconds", "gauge: when the last shutdown began, since 1970"
)
M_END = _define_name(
    "metric", "kubelet_graceful_shutdown_end_time_seconds", "gauge: when the last shutdown ended, since 1970"
)
M_ARMED = _define_name("metric", "lastcall_agent_armed", "gauge: 1 while a delay lock is held")
M_REQUESTED = _define_name("metric", "lastcall_agent_requested_seconds", "gauge: what the configured phases add up to")
M_GRANTED = _define_name(
    "metric", "lastcall_agent_granted_seconds", "gauge: what logind grants (InhibitDelayMaxSec); +Inf if unlimited"
)
M_DEGRADED = _define_name("metric", "lastcall_agent_degraded", "gauge: 1 while logind grants less than is asked for")
M_LOGIND = _define_name("metric", "lastcall_agent_logind_reachable", "gauge: 1 while logind answers")
M_RETRIES = _define_name(
    "metric", "lastcall_agent_logind_retries_total", "counter: attempts to reach logind or to take the lock"
)
M_RELOAD = _define_name(
    "metric", "lastcall_agent_config_reload_success", "gauge: 1 if the last (re)load of the configuration worked"
)
M_SHUTDOWNS = _define_name("metric", "lastcall_shutdowns_total", "counter: shutdowns by `outcome`")
M_PODS = _define_name("metric", "lastcall_shutdown_pods_total", "counter: pods ended by a shutdown, by `outcome`")
M_CUT_SHORT = _define_name(
    "metric", "lastcall_shutdown_pods_cut_short_total", "counter: pods killed with less grace than they asked for"
)
M_PHASE = _define_name(
    "metric",
    "lastcall_shutdown_phase_duration_seconds",
    "gauge: how long each phase of the last shutdown took, by `priority`",
)
M_RESUMED = _define_name(
    "metric", "lastcall_shutdown_resumed_total", "counter: shutdowns that a restarted agent went on with"
)
M_RUNTIME = _define_name(
    "metric",
    "lastcall_shutdown_runtime_answers",
    "gauge: 0 while a shutdown is under way and the container runtime has not answered for two seconds, else 1",
)
M_WATCHDOG_ARMED = _define_name(
    "metric", "lastcall_watchdog_armed", "gauge: 1 while the node's Lease says that its watchdog is armed"
)
M_WATCHDOG_BOUND = _define_name(
    "metric",
    "lastcall_watchdog_bound_seconds",
    "gauge: so long after its last renewal the node has reset itself; 0 while nothing is promised",
)
M_WATCHDOG_NODES = _define_name(
    "metric",
    "lastcall_watchdog_counted_nodes",
    "gauge: all nodes, of which a majority may let this one live on without the API server; 0 while none are counted",
)
M_WATCHDOG_RENEWALS = _define_name(
    "metric", "lastcall_watchdog_renewals_total", "counter: renewals of the node's Lease, by `outcome`"
)
M_WATCHDOG_WITHHELD = _define_name(
    "metric", "lastcall_watchdog_withheld_total", "counter: pets that were due and not given, as the lease was over"
)

# The failover controller's. The first three are kube-controller-manager's (pkg/controller/podgc/metrics, .../attachdetach/metrics).
M_FORCE_DELETES = _define_name(
    "metric", "pod_gc_collector_force_delete_pods_total", "counter: pods removed by force, by `namespace` and `reason`"
)
M_FORCE_DELETE_ERRORS = _define_name(
    "metric", "pod_gc_collector_force_delete_pod_errors_total", "counter: those of them that failed, by the same"
)
M_FORCED_DETACHES = _define_name(
    "metric",
    "attach_detach_controller_attachdetach_controller_forced_detaches",
    "gauge: volumes detached by force since this process began, by `reason`",
)
M_STEPS = _define_name(
    "metric",
    "lastcall_failover_step_duration_seconds",
    "histogram: how long nodes were in each step of their failover, by `step`; what is waited for in it counts",
)
M_STEP_NODES = _define_name(
    "metric", "lastcall_failover_step_nodes", "gauge: nodes that are in each step now, by `step`"
)
M_ACTIONS = _define_name(
    "metric", "lastcall_failover_action_duration_seconds", "histogram: how long it took to carry out each `action`"
)
M_EVIDENCE = _define_name(
    "metric",
    "lastcall_failover_evidence_total",
    "counter: boots judged to be over, by the `kind` of what has decided it",
)
M_FENCE_ANSWERS = _define_name(
    "metric",
    "lastcall_failover_fence_answers_total",
    "counter: answers of fences to the question for the status, by `answer`: ON, OFF, UNKNOWN",
)
M_ORDERS = _define_name(
    "metric",
    "lastcall_failover_orders_total",
    "counter: orders to fences, by `order` (off, on) and `outcome` (Accepted, Failed)",
)
M_NODES = _define_name(
    "metric",
    "lastcall_failover_nodes",
    "gauge: nodes by `state`: All, InTrouble (looked at closely), Marked (failed over)",
)
M_NOT_FENCED = _define_name(
    "metric",
    "lastcall_failover_not_fenced_nodes",
    "gauge: lost nodes that are not fenced now, by the `reason`: a limit such as PerDomain, or Fencers, which fail or are refused",
)
M_BROKEN_OFF = _define_name(
    "metric",
    "lastcall_failover_broken_off_total",
    "counter: mistakes of lastcall itself that broke off what it did about a node; it is begun anew after a pause",
)
M_LEADS = _define_name("metric", "lastcall_failover_leads", "gauge: 1 while this controller leads")

# The failover controller's events.
E_BEGUN = _define_name(
    "reason", "FailoverBegun", "of a Node's event: lastcall has marked it, and begins to fail it over"
)
E_SWITCHING_OFF = _define_name("reason", "FenceOff", "of a Node's event: a fencer is told to switch its machine off")
E_SWITCHING_ON = _define_name("reason", "FenceOn", "of a Node's event: a fencer is told to switch its machine on again")
E_FENCING_FAILED = _define_name("reason", "FenceFailed", "of a Node's event: a fencer has not done what it was told")
E_NOT_FENCED = _define_name(
    "reason",
    "NotFenced",
    "of a Node's event: it is lost, and a limit stands against fencing it, or its fencers fail or are refused",
)
E_DEAD = _define_name(
    "reason", "NodeDead", "of a Node's event: its boot is proved to be over, and it is tainted out-of-service"
)
E_OVER = _define_name("reason", "FailoverOver", "of a Node's event: lastcall has nothing on it any more")
E_WOULD = _define_name("reason", "WouldFailOver", "of a Node's event: with `mode: Observe`, what would have been begun")
E_REMOVED = _define_name(
    "reason",
    "RemovedByForce",
    "of a pod's event: its node is gone, and its object was removed; names others of its namespace",
)
E_ANEW = _define_name(
    "reason", "PodsMadeAnew", "of a Node's event: it is gone, and others make anew the pods that are removed"
)


def reference_page() -> str:
    """The reference page, in Markdown."""
    lines = [
        "# Names",
        "",
        "Made from `src/lastcall/names.py` by `python -m lastcall.names`; every label, annotation, condition, reason,",
        "message, file and metric that others can see or match on.",
        "",
    ]
    for kind in dict.fromkeys(name.kind for name in ALL):
        lines += [f"## {kind[0].upper()}{kind[1:]}", "", "| name | meaning |", "|---|---|"]
        lines += [f"| `{name.text}` | {name.meaning} |" for name in ALL if name.kind == kind]
        lines.append("")
    return "\n".join(lines)


def _main(arguments: list[str]) -> int:
    if arguments[:1] != ["--check"]:
        sys.stdout.write(reference_page())
        return 0
    with open(arguments[1], encoding="utf-8") as file:  # noqa: PTH123  (pathlib is not imported here)
        same = file.read() == reference_page()
    if not same:
        sys.stderr.write(f"{arguments[1]} is not what names.py says: python -m lastcall.names > {arguments[1]}\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
