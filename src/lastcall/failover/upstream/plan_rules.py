"""The options of a plan."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PlanRules:
    """Facts that a snapshot lacks, and which rules apply; the defaults are those of kube-controller-manager 1.36."""

    upstream: bool = False
    """Apply kube-controller-manager's rules unchanged, without lastcall's caution."""
    finished: int = 12500
    """``--terminated-pod-gc-threshold``: the number of finished pods to keep; all of them if it is not above 0."""
    quarantine_elapsed: bool = False
    """Missing nodes have been missing for 40 seconds, and a live read has not found them."""
    detach_timeout_elapsed: bool = False
    """Volumes that no pod needs have been unneeded for 6 minutes."""
    force_on_timeout: bool = True
    """The negation of ``--disable-force-detach-on-timeout``."""
    comparisons: bool = False
    """The feature gate TaintTolerationComparisonOperators: the operators Gt and Lt of tolerations."""

    @property
    def allows_timeout_detach(self) -> bool:
        """Whether volumes may be force-detached after the timeout."""
        return self.detach_timeout_elapsed and self.force_on_timeout
