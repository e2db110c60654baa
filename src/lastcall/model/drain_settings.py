"""What ``lastcall drain`` was asked for (pure); the options of ``kubectl drain`` under kubectl's names."""

from lastcall.model.base import Facts


class DrainSettings(Facts, frozen=True):
    """The options that decide which pods go, and what may hold them."""

    force: bool = False
    """Pods without a controller go too, and those of a DaemonSet that does not exist."""
    ignore_daemonsets: bool = False
    """Pods of DaemonSets stay, and are no obstacle."""
    delete_emptydir_data: bool = False
    """Pods with emptyDir volumes go too."""
    disable_eviction: bool = False
    """Pods are deleted, so that no PodDisruptionBudget counts."""
    grace_period: int | None = None
    """Seconds for each pod to end; None for the pod's own."""
    skip_wait_for_delete_timeout: int = 0
    """Pods whose deletionTimestamp is older than so many seconds are not waited for; 0 for none."""
    ignore_opt_outs: bool = False
    """What keeps other tools from evicting a pod does not hold it."""
    surge: bool = False
    """Where a budget lets no pod go, its workload gets one more pod for a time."""
