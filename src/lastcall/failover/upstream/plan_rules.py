"""By which rules a plan is made."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PlanRules:
    """What a snapshot cannot tell, and which rules hold; the defaults are those of kube-controller-manager 1.36."""

    upstream: bool = False
    """The rules of kube-controller-manager as they are, without lastcall's caution."""
    finished: int = 12500
    """``--terminated-pod-gc-threshold``: so many finished pods are kept; all of them if it is not above 0."""
    quarantine_elapsed: bool = False
    """Nodes that are missing have been missing for 40 seconds, and a live look has not found them."""
    detach_timeout_elapsed: bool = False
    """Volumes that no pod wants have been unwanted for 6 minutes."""
    force_on_timeout: bool = True
    """Not ``--disable-force-detach-on-timeout``."""
    comparisons: bool = False
    """The feature gate TaintTolerationComparisonOperators: the operators Gt and Lt of tolerations."""

    @property
    def allows_timeout_detach(self) -> bool:
        """Whether volumes may be detached because the time is over."""
        return self.detach_timeout_elapsed and self.force_on_timeout
