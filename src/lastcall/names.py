"""All names that users can see or match on: labels, annotations, taints, conditions, reasons, finalizers, metrics.

``python -m lastcall.names`` prints the reference page; ``--check FILE`` compares it with the committed one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Name:
    """A name with its kind and its meaning."""

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
API_VERSION = _define_name("API version", f"{GROUP}/v1alpha1", "the API version of all kinds that lastcall defines")
AGENT_CONFIGURATION = _define_name("kind", "AgentConfiguration", "the agent's configuration file")
GUARD_CONFIGURATION = _define_name("kind", "GuardConfiguration", "the guard's configuration file")
NODE_SHUTDOWN = _define_name(
    "kind",
    "NodeShutdown",
    "the record of a node's shutdown; `lastcall report -o json` prints it, the agent writes it under its Node's name",
)
FENCE_POLICY = _define_name("kind", "FencePolicy", "how lost nodes may be fenced and failed over; cluster-scoped")
GUARD_POLICY = _define_name(
    "kind", "GuardPolicy", "which pods of a namespace are deleted only after their application has prepared"
)

PRIORITY_ANNOTATION = _define_name(
    "annotation",
    f"{GROUP}/priority",
    "on a pod: its priority as a number, for a runtime without pod priorities; the pod's spec takes precedence",
)
SETTLE_SECONDS = _define_name(
    "label, annotation",
    f"{GROUP}/settle-seconds",
    "label on a namespace: new pods there are prepared for their end; it and the annotation on a pod say for how many seconds a `sleep` hook delays SIGTERM, 0 for none",
)
SLEEP_ADDED = _define_name(
    "annotation",
    f"{GROUP}/sleep-seconds-added",
    "on a pod, set by the policy or webhook lastcall-settle: the seconds of the `sleep` hook that it has added",
)
FAILOVER_ANNOTATION = _define_name(
    "annotation",
    f"{GROUP}/failover",
    "on a pod: `Disabled` forbids lastcall to force-delete it; on a Node: lastcall's mark during its failover",
)

MACHINE_SERIAL = _define_name(
    "annotation",
    f"{GROUP}/machine-serial",
    "on a Node, set by a person: the serial number of its machine, which is compared with the fence device's",
)
ACKNOWLEDGED_DEAD = _define_name(
    "annotation",
    f"{GROUP}/acknowledged-dead",
    "on a Node, set by a person: the boot ID of its powered-off machine, and the last renewal of its Lease; `lastcall failover acknowledge` writes it",
)

FENCED = _define_name(
    "annotation",
    f"{GROUP}/fenced",
    "on a Node, as JSON: the boots that lastcall had powered off, and when each fencing ended; kept for an hour",
)

NODE_SHUTDOWN_MARK = _define_name(
    "annotation",
    f"{GROUP}/node-shutdown",
    "on a Node, as JSON: the boot that shuts down, when its machine is gone, and whether its agent cordoned the Node; removed when that is undone",
)

AGENT_STANDING = _define_name(
    "annotation",
    f"{GROUP}/agent",
    "on a Node, as JSON: whether its agent is armed, with how many seconds, in which mode, and when it said so; `lastcall status` reads it",
)

AGENT_USER = _define_name(
    "user",
    "system:serviceaccount:lastcall-system:lastcall-agent",
    "the agent's own identity; its token is bound to its pod, and so to its node",
)
GUARD_ENABLED = _define_name(
    "label",
    f"{GROUP}/guard-enabled",
    "on a Namespace: `true` has deletions and evictions of its pods reviewed by the guard",
)
GUARD_ANNOTATION = _define_name(
    "annotation", f"{GROUP}/guard", "on a pod: the GuardPolicy of its namespace that guards it, whatever that selects"
)
GUARD_BYPASS_UNTIL = _define_name(
    "annotation",
    f"{GROUP}/guard-bypass-until",
    "on a pod, Namespace or Node: until then (RFC 3339) the guard allows every deletion, and the audit log says so",
)
GUARD_READY = _define_name(
    "condition",
    f"{GROUP}/GuardReady",
    "on a pod that is guarded: True while its application can do without it, else the state of its preparation",
)
GUARD_WITHDRAWN = _define_name(
    "annotation",
    f"{GROUP}/guard-withdrawn",
    "on the ValidatingWebhookConfiguration `lastcall-guard`: its webhooks, while the controller has withdrawn them",
)
GUARD_UNINSTALL = _define_name(
    "ConfigMap",
    "lastcall-guard-uninstall",
    "in lastcall-system: while it is created the guard ends all holds and undoes its preparations; the chart's uninstallation does so",
)
DRAIN_SURGE = _define_name(
    "annotation",
    f"{GROUP}/drain-surge",
    "on a Deployment, ReplicaSet, ReplicationController or HorizontalPodAutoscaler: what a drain has changed for a time, and the value before",
)
DRAIN_MARK = _define_name(
    "annotation",
    f"{GROUP}/drain",
    "on a Node, as JSON: who drains it, why, since when, and whether that drain has cordoned it; removed when it is drained",
)
OWNER_REASON = _define_name(
    "annotation", f"{GROUP}/reason", "on a Lease in lastcall-drains: why its holder has the node to itself"
)
GUARD_RELEASER = _define_name(
    "user",
    "system:serviceaccount:lastcall-system:lastcall-guard-releaser",
    "the guard's own identity for deletions that it allows",
)
GUARD_USER = _define_name(
    "user", "system:serviceaccount:lastcall-system:lastcall-guard", "the guard's own identity for everything else"
)
GUARD_RESPONDER = _define_name(
    "responder",
    f"{GROUP}/guard",
    "in `spec.evictionResponders` of a pod: its evictions by EvictionRequests wait until its application has prepared",
)
DRAIN_REQUESTER = _define_name(
    "requester", f"{GROUP}/drain", "in `spec.requester` of an EvictionRequest: it is lastcall's own"
)

SYSTEM_NAMESPACE = _define_name("namespace", "lastcall-system", "the namespace of lastcall's own objects")
NODES_NAMESPACE = _define_name(
    "namespace",
    "lastcall-nodes",
    "the namespace of the Leases that agents write; controllers elect their leader in another one",
)
DRAINS_NAMESPACE = _define_name(
    "namespace",
    "lastcall-drains",
    "the namespace of the Leases `node-NODE`, each held by whoever drains that node with `lastcall drain`",
)
VIEWER = _define_name(
    "ClusterRole", "lastcall-viewer", "permits what lastcall's commands read of a cluster; bound to nobody by itself"
)
METRICS_READER = _define_name(
    "ServiceAccount",
    "lastcall-metrics-reader",
    "in lastcall-system, with a ClusterRole of this name: may read the agents' metrics over TLS",
)
DRAINER = _define_name(
    "ClusterRole, Role",
    "lastcall-drainer",
    "permits `lastcall drain`, the Role its Leases in lastcall-drains; bound to nobody by themselves",
)
WATCHDOG = _define_name(
    "annotation",
    f"{GROUP}/watchdog",
    "on a node's Lease in lastcall-nodes, as JSON: whether its agent's watchdog is armed, for which boot, and how",
)
PEERS_HEARD = _define_name(
    "annotation",
    f"{GROUP}/peers-heard",
    "on a node's Lease in lastcall-nodes, as JSON: nodes without the API server that its agent heard by UDP within a minute",
)
STORAGE_LEASE = _define_name(
    "annotation",
    f"{GROUP}/storage-lease",
    "on a node's Lease in lastcall-nodes, as JSON: its lease on shared storage, and the leases of other nodes that it reads there",
)
PEERS_SECRET = _define_name(
    "Secret",
    "lastcall-watchdog-peers",
    "in lastcall-system: the keys with which agents authenticate each other's messages",
)
PEERS_KEY = _define_name(
    "key of a Secret",
    "key",
    "in lastcall-watchdog-peers: the key that signs; all other keys of the Secret are accepted too",
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
    "annotation",
    "io.kubernetes.pod.deletionGracePeriod",
    "on containers: the grace period of a pod that is being deleted",
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
MIRROR_ANNOTATION = _define_name(
    "annotation",
    "kubernetes.io/config.mirror",
    "on mirror pods, set by the kubelet: the uid of the static pod's sandbox",
)

POD_ADDRESS = _define_name(
    "annotation", f"{GROUP}/pod-address", "on the lab's sandboxes, which use the host's network: the pod's own address"
)

# Written for other tools that empty nodes; ``lastcall drain`` reads them.
KARPENTER_DO_NOT_DISRUPT = _define_name(
    "annotation",
    "karpenter.sh/do-not-disrupt",
    "on a pod or a Node: `true` keeps Karpenter from disrupting it, and blocks `lastcall drain`",
)
SAFE_TO_EVICT = _define_name(
    "annotation",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "on a pod: `false` keeps cluster-autoscaler from removing its node, and blocks `lastcall drain`",
)
PREFER_NO_EVICTION = _define_name(
    "annotation",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    "on a pod, with any value: keeps the descheduler from evicting it, and blocks `lastcall drain`",
)
CLUSTER_API_DRAIN = _define_name(
    "label",
    "cluster.x-k8s.io/drain",
    "on a pod, of Cluster API: `skip` leaves it on its node, `wait-completed` has a drain wait until it has completed",
)

BALANCER_MARKS = _define_name(
    "annotation",
    f"{GROUP}/balancer-marks",
    "on a Node that is drained: which of `label` and `taint` the drain has set for external load balancers; removed with them",
)
BALANCER_EXCLUSION = _define_name(
    "label",
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "on a Node: external load balancers leave it out; a drain sets it by option",
)
TO_BE_DELETED = _define_name(
    "taint",
    "ToBeDeletedByClusterAutoscaler",
    "on a Node: kube-proxy's `/healthz` answers 503, so load balancers send no new connections (KEP-3836); a drain sets it by option",
)
OUT_OF_SERVICE = _define_name(
    "taint",
    "node.kubernetes.io/out-of-service",
    "on a Node whose machine is off and stays off, as verified by whoever set it (KEP-2268)",
)

# Written by the kubelet during a node shutdown (pkg/kubelet/nodeshutdown, pkg/kubelet/kubelet_node_status.go).
READY = _define_name("condition", "Ready", "of nodes and pods")
NOT_READY_REASON = _define_name("reason", "KubeletNotReady", "of the node's Ready=False during its shutdown")
NOT_READY_MESSAGE = _define_name("message", "node is shutting down", "of the node's Ready=False during its shutdown")
CONTAINERS_READY = _define_name("condition", "ContainersReady", "of pods")
SHUTDOWN_IN_PROGRESS = _define_name(
    "condition", "GracefulNodeShutdownInProgress", "True on a Node that shuts down (KEP-5683)"
)
SOURCES_FAIL = _define_name(
    "condition",
    "DeadlineSourcesUnreachable",
    "True on a Node while a source of `deadlines` has not answered for a minute",
)
INTERRUPTION_LIKELY = _define_name(
    "condition",
    "InterruptionLikely",
    "True on a Node while a source of `deadlines` warns without a notice: a rebalance recommendation, a machine on battery",
)
WARNING_CORDON = _define_name(
    "annotation",
    f"{GROUP}/cordoned-by-warning",
    "on a Node that lastcall cordoned because of a rebalance recommendation; removed when that is undone",
)
DRAIN_IN_PROGRESS = _define_name("condition", "DrainInProgress", "True on a Node while its pods are removed (KEP-5683)")
DRAINED = _define_name(
    "condition", "Drained", "True on a Node whose pods were removed as the last drain was asked to (KEP-5683)"
)
DRAIN_STARTED = _define_name(
    "reason", "LastcallDrainStarted", "of DrainInProgress=True and Drained=False while `lastcall drain` runs"
)
DRAIN_COMPLETED = _define_name(
    "reason", "LastcallDrainCompleted", "of Drained=True: the message has the criteria, such as which pods stay"
)
DRAIN_FAILED = _define_name(
    "reason", "LastcallDrainFailed", "of Drained=False after a drain that failed or ran out of time"
)
DRAIN_INTERRUPTED = _define_name(
    "reason", "LastcallDrainInterrupted", "of Drained=False after a drain that a person or a signal has ended"
)
DRAIN_UNCORDONED = _define_name(
    "reason", "LastcallUncordoned", "of Drained=False after a drain has failed and has uncordoned the Node"
)
READY_REASON = _define_name("reason", "KubeletReady", "of the node's Ready=True")
READY_MESSAGE = _define_name("message", "lastcall's node is ready", "of the node's Ready=True")
TERMINATED_REASON = _define_name("reason", "Terminated", "of a pod that was terminated because its node shuts down")
TERMINATED_MESSAGE = _define_name(
    "message",
    "Pod was terminated in response to imminent node shutdown.",
    "of a pod with the reason Terminated, and of its DisruptionTarget",
)
DISRUPTION_TARGET = _define_name(
    "condition", "DisruptionTarget", "True on a pod that was terminated because its node shuts down"
)
TERMINATION_BY_KUBELET = _define_name("reason", "TerminationByKubelet", "of DisruptionTarget")
REFUSED_REASON = _define_name(
    "reason",
    "NodeShutdown",
    "of a pod that was rejected during its node's shutdown, and of the Node's conditions during it",
)
REFUSED_MESSAGE = _define_name(
    "message", "Pod was rejected as the node is shutting down.", "of a pod with the reason NodeShutdown"
)
SHUTDOWN_EVENT = _define_name("reason", "Shutdown", "of the node's events when a shutdown begins or is cancelled")
RETURN_EVENT = _define_name("reason", "MachineReturned", "of the node's event when its machine is back from a shutdown")

KUBELET_STATE_FILE = _define_name(
    "file",
    "graceful_node_shutdown_state",
    "start and end of the last shutdown, in the kubelet's format; in --state-dir",
)
LOGIND_DROP_IN = _define_name("file", "zz-lastcall.conf", "in /etc/systemd/logind.conf.d: raises InhibitDelayMaxSec")
KUBELET_LOCK_WHO = _define_name(
    "inhibitor",
    "kubelet",
    "of the kubelet's own delay lock (pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go)",
)
LOCK_WHO = _define_name("inhibitor", "lastcall", "the name under which `systemd-inhibit --list` shows the delay lock")

KUBELET_START = "lastcall-kubelet-start"
KUBELET_TIMER = _define_name(
    "unit",
    f"{KUBELET_START}.timer",
    "exists while lastcall keeps the kubelet stopped, and starts it if nothing else does",
)
_define_name(
    "unit", f"{KUBELET_START}.service", "activated by the timer; its only effect is to want the kubelet's unit"
)

HOST_LOCK = _define_name(
    "unit",
    "lastcall-lock.service",
    "exists during a shutdown if the agent runs in a pod: has a copy of the delay lock, which the end of the pod's container leaves",
)
HOST_RESUME = _define_name(
    "unit",
    "lastcall-resume.service",
    "exists during a shutdown if the agent runs in a pod: starts the kubelet, which restarts the agent, if its container ends",
)

# Metrics. The first two are the kubelet's (pkg/kubelet/metrics).
M_START = _define_name(
    "metric", "kubelet_graceful_shutdown_start_time_seconds", "gauge: when the last shutdown began, since 1970"
)
M_END = _define_name(
    "metric", "kubelet_graceful_shutdown_end_time_seconds", "gauge: when the last shutdown ended, since 1970"
)
M_ARMED = _define_name("metric", "lastcall_agent_armed", "gauge: 1 while a delay lock is held")
M_REQUESTED = _define_name("metric", "lastcall_agent_requested_seconds", "gauge: the sum of the configured phases")
M_GRANTED = _define_name(
    "metric",
    "lastcall_agent_granted_seconds",
    "gauge: the delay that logind grants (InhibitDelayMaxSec); +Inf if unlimited",
)
M_DEGRADED = _define_name("metric", "lastcall_agent_degraded", "gauge: 1 while logind grants less than requested")
M_LOGIND = _define_name("metric", "lastcall_agent_logind_reachable", "gauge: 1 while logind answers")
M_RETRIES = _define_name(
    "metric", "lastcall_agent_logind_retries_total", "counter: attempts to reach logind or to take the lock"
)
M_RELOAD = _define_name(
    "metric", "lastcall_agent_config_reload_success", "gauge: 1 if the last (re)load of the configuration succeeded"
)
M_SHUTDOWNS = _define_name("metric", "lastcall_shutdowns_total", "counter: shutdowns by `outcome`")
M_PODS = _define_name("metric", "lastcall_shutdown_pods_total", "counter: pods terminated by a shutdown, by `outcome`")
M_CUT_SHORT = _define_name(
    "metric", "lastcall_shutdown_pods_cut_short_total", "counter: pods killed before the end of their grace period"
)
M_PHASE = _define_name(
    "metric",
    "lastcall_shutdown_phase_duration_seconds",
    "gauge: duration of each phase of the last shutdown, by `priority`",
)
M_RESUMED = _define_name(
    "metric", "lastcall_shutdown_resumed_total", "counter: shutdowns that a restarted agent resumed"
)
M_WITHDRAWAL = _define_name(
    "metric",
    "lastcall_shutdown_traffic_withdrawal_seconds",
    "histogram: from a pod's announcement at a shutdown until its EndpointSlices are without it",
)
M_PROPAGATION = _define_name(
    "metric",
    "lastcall_traffic_propagation_seconds",
    "histogram: from a change of endpoints at the node's kube-proxy until its rules follow; seen while a drain reads `/metrics/traffic`",
)
M_TRAFFIC_READ = _define_name(
    "metric",
    "lastcall_traffic_read_timestamp_seconds",
    "gauge, at `/metrics/traffic`: the node's time when the page was made, since 1970",
)
M_SYNC_QUEUED = _define_name(
    "metric",
    "lastcall_proxy_sync_queued_timestamp_seconds",
    "gauge, at `/metrics/traffic`: when the last change reached the node's kube-proxy, since 1970",
)
M_SYNC_FINISHED = _define_name(
    "metric",
    "lastcall_proxy_sync_finished_timestamp_seconds",
    "gauge, at `/metrics/traffic`: when the last synchronization of the node's kube-proxy ended, since 1970",
)
M_SYNC_LONGEST = _define_name(
    "metric",
    "lastcall_proxy_sync_longest_seconds",
    "gauge, at `/metrics/traffic`: an upper bound of the duration of its synchronizations",
)
M_SYNC_PENDING = _define_name(
    "metric",
    "lastcall_proxy_sync_pending_changes",
    "gauge, at `/metrics/traffic`: changes of endpoints that no synchronization has begun to apply",
)
M_PROXY_LATENCY = _define_name(
    "metric",
    "lastcall_proxy_latency_seconds",
    "gauge, at `/metrics/traffic`: so long the node's kube-proxy took to follow 99 % of the changes since it started",
)
M_POD_CONNECTIONS = _define_name(
    "metric",
    "lastcall_pod_connections",
    "gauge, at `/metrics/traffic`: established TCP connections to a pod of the node, by its `address`",
)
M_CONNECTIONS_COMPLETE = _define_name(
    "metric",
    "lastcall_pod_connections_complete",
    "gauge, at `/metrics/traffic`: 1 if an address without `lastcall_pod_connections` has no connections; 0 if those are unknown",
)
M_RULES_NAME = _define_name(
    "metric",
    "lastcall_traffic_rules_name_pod",
    "gauge, at `/metrics/traffic?address=ADDRESS`, while kube-proxy does not tell: 1 if NAT rules of the node's kernel send"
    " connections to this `address` of a pod, 0 if none does",
)
M_IDENTITY = _define_name(
    "metric",
    "lastcall_agent_identity_usable",
    "gauge: 1 while an identity for the API server has the rights that the agent needs of it, by `identity`: node, own",
)
M_RUNTIME = _define_name(
    "metric",
    "lastcall_shutdown_runtime_answers",
    "gauge: 0 during a shutdown while the container runtime has not answered for two seconds, else 1",
)
M_HOW = _define_name(
    "metric", "lastcall_shutdown_kind", "gauge: 1 for the kind of the last shutdown, by `how`, as logind names it"
)
M_NOTICE = _define_name(
    "metric",
    "lastcall_shutdown_notice_time_seconds",
    "gauge: when the machine shuts down by the notice of each `source`, since 1970; 0 without a notice",
)
M_SOURCE = _define_name(
    "metric", "lastcall_deadline_source_answers", "gauge: 1 while a source of deadlines answers, by `source`"
)
M_SOURCE_WARNING = _define_name(
    "metric",
    "lastcall_deadline_source_warns",
    "gauge: 1 while a source warns without a notice, by `source`: a rebalance recommendation, a machine on battery",
)
M_WATCHDOG_ARMED = _define_name(
    "metric", "lastcall_watchdog_armed", "gauge: 1 while the node's Lease states that its watchdog is armed"
)
M_WATCHDOG_BOUND = _define_name(
    "metric",
    "lastcall_watchdog_bound_seconds",
    "gauge: time after its last renewal by which the node has reset itself; 0 while the Lease promises nothing",
)
M_WATCHDOG_NODES = _define_name(
    "metric",
    "lastcall_watchdog_counted_nodes",
    "gauge: the nodes a majority of which may let this one live on without the API server; 0 while none are counted",
)
M_WATCHDOG_RENEWALS = _define_name(
    "metric", "lastcall_watchdog_renewals_total", "counter: renewals of the node's Lease, by `outcome`"
)
M_WATCHDOG_WITHHELD = _define_name(
    "metric",
    "lastcall_watchdog_withheld_total",
    "counter: due pets of the watchdog that were withheld because the lease had expired",
)

# The failover controller's. The first three are kube-controller-manager's (pkg/controller/podgc/metrics, .../attachdetach/metrics).
M_FORCE_DELETES = _define_name(
    "metric", "pod_gc_collector_force_delete_pods_total", "counter: pods force-deleted, by `namespace` and `reason`"
)
M_FORCE_DELETE_ERRORS = _define_name(
    "metric",
    "pod_gc_collector_force_delete_pod_errors_total",
    "counter: failed forced deletions, by `namespace` and `reason`",
)
M_FORCED_DETACHES = _define_name(
    "metric",
    "attach_detach_controller_attachdetach_controller_forced_detaches",
    "gauge: volumes force-detached since the start of this process, by `reason`",
)
M_STEPS = _define_name(
    "metric",
    "lastcall_failover_step_duration_seconds",
    "histogram: how long nodes were in each step of their failover, by `step`; waiting time counts",
)
M_STEP_NODES = _define_name(
    "metric", "lastcall_failover_step_nodes", "gauge: nodes that are in each step now, by `step`"
)
M_ACTIONS = _define_name("metric", "lastcall_failover_action_duration_seconds", "histogram: duration of each `action`")
M_EVIDENCE = _define_name(
    "metric",
    "lastcall_failover_evidence_total",
    "counter: boots judged to be over, by the `kind` of the deciding evidence",
)
M_FENCE_ANSWERS = _define_name(
    "metric",
    "lastcall_failover_fence_answers_total",
    "counter: power states reported by fences, by `answer`: ON, OFF, UNKNOWN",
)
M_ORDERS = _define_name(
    "metric",
    "lastcall_failover_orders_total",
    "counter: orders to fences, by `order` (off, on) and `outcome` (Accepted, Failed)",
)
M_NODES = _define_name(
    "metric",
    "lastcall_failover_nodes",
    "gauge: nodes by `state`: All, InTrouble (observed closely), Marked (under failover)",
)
M_NOT_FENCED = _define_name(
    "metric",
    "lastcall_failover_not_fenced_nodes",
    "gauge: lost nodes that are not fenced now, by `reason`: a limit such as PerDomain, or Fencers if these fail or are refused",
)
M_BROKEN_OFF = _define_name(
    "metric",
    "lastcall_failover_broken_off_total",
    "counter: internal errors that interrupted the failover of a node; it restarts after a pause",
)
M_LEADS = _define_name("metric", "lastcall_failover_leads", "gauge: 1 while this controller leads")
M_GUARD_WITHDRAWN = _define_name(
    "metric",
    "lastcall_guard_webhooks_withdrawn",
    "gauge: 1 while the guard's webhooks are withdrawn; only the controller that leads says so",
)

# The guard.
M_GUARD_REVIEWS = _define_name(
    "metric",
    "lastcall_guard_reviews_total",
    "counter: answers of the guard, by `operation` (delete, eviction), `allowed` and the `reason` in the audit log",
)
M_GUARD_REVIEW_SECONDS = _define_name(
    "metric", "lastcall_guard_review_duration_seconds", "histogram: seconds of an answer of the guard, by `operation`"
)
M_GUARD_HELD = _define_name(
    "metric", "lastcall_guard_held_pods", "gauge: pods that are held, by `state`; only the guard that leads counts them"
)
M_GUARD_LEADS = _define_name("metric", "lastcall_guard_leads", "gauge: 1 while this guard leads")
E_PREPARING = _define_name(
    "reason", "PreparingForDeletion", "of an event on a held pod and its owner: its application prepares"
)
E_READY = _define_name("reason", "ReadyForDeletion", "of an event on a held pod and its owner: it may be deleted now")
E_STALLED = _define_name(
    "reason", "PreparationStalled", "of an event on a held pod and its owner: a person is needed; the message says why"
)
E_UNHEALTHY = _define_name(
    "reason",
    "ApplicationUnhealthy",
    "of an event on a held pod and its owner: the application is short of members, so nothing is prepared",
)
E_RELEASED = _define_name(
    "reason", "PreparationReleased", "of an event on a held pod and its owner: the preparation has ended or was undone"
)
E_HOLD_LIMIT = _define_name(
    "reason", "HoldLimitExceeded", "of an event on a held pod and its owner: it was held for longer than `holdLimit`"
)
E_WITHDRAWN = _define_name(
    "reason",
    "WebhooksWithdrawn",
    "of an event on the ValidatingWebhookConfiguration `lastcall-guard`: no guard answers, so deletions are not held",
)
E_RESTORED = _define_name(
    "reason",
    "WebhooksRestored",
    "of an event on the ValidatingWebhookConfiguration `lastcall-guard`: a guard answers again, so deletions are held",
)

# The events of ``lastcall drain``; those of a Node have the reasons of its conditions.
E_EVICTION_FAILED = _define_name(
    "reason", "EvictionFailed", "of a pod's event: `lastcall drain` has given it up; the message says why"
)

# The failover controller's events.
E_BEGUN = _define_name(
    "reason", "FailoverBegun", "of a Node's event: lastcall has marked the node and begins its failover"
)
E_SWITCHING_OFF = _define_name("reason", "FenceOff", "of a Node's event: a fencer is ordered to power its machine off")
E_SWITCHING_ON = _define_name(
    "reason", "FenceOn", "of a Node's event: a fencer is ordered to power its machine on again"
)
E_FENCING_FAILED = _define_name("reason", "FenceFailed", "of a Node's event: an order to a fencer failed")
E_NOT_FENCED = _define_name(
    "reason",
    "NotFenced",
    "of a Node's event: the node is lost, and a limit forbids fencing it, or its fencers fail or are refused",
)
E_DEAD = _define_name(
    "reason", "NodeDead", "of a Node's event: the boot is proved to be over, and the node gets the out-of-service taint"
)
E_OVER = _define_name("reason", "FailoverOver", "of a Node's event: lastcall's mark is removed from the node")
E_WOULD = _define_name(
    "reason", "WouldFailOver", "of a Node's event: the failover that would begin without `mode: Observe`"
)
E_REMOVED = _define_name(
    "reason",
    "RemovedByForce",
    "of a pod's event: its node is dead, and the pod was force-deleted; names further pods of its namespace",
)
E_ANEW = _define_name(
    "reason", "PodsMadeAnew", "of a Node's event: the node is dead, and controllers recreate the removed pods on it"
)


def reference_page() -> str:
    """The reference page, in Markdown."""
    lines = [
        "# Names",
        "",
        "Generated from `src/lastcall/names.py` by `python -m lastcall.names`: all labels, annotations, conditions, reasons,",
        "messages, files and metrics that users can see or match on.",
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
        sys.stderr.write(f"{arguments[1]} differs from names.py; run: python -m lastcall.names > {arguments[1]}\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
