"""Which of the pods that a drain finds on its nodes it removes (pure)."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from lastcall.drain.decisions.pod_progress import PodTarget, choose_targets
from lastcall.drain.planning.pod_filters import FilterFacts, FilterFate, filter_pod
from lastcall.drain.planning.tiers import arrange_tiers, find_dns_pods, is_depended_on
from lastcall.model.base import Facts
from lastcall.model.drain_facts import DrainPod, pod_name
from lastcall.model.label_selector import Matcher, select_everything
from lastcall.model.node_pods import DnsService


class ChosenPods(Facts, frozen=True):
    """``refused`` are texts about pods that came after the plan, and that no option lets go. ``criteria`` says what stays."""

    targets: tuple[PodTarget, ...]
    refused: tuple[tuple[str, str], ...] = ()
    """The node, and ``namespace/name`` with the reason."""
    criteria: str = ""


PodChooser = Callable[[Iterable[DrainPod]], ChosenPods]


def make_chooser(facts: FilterFacts, dns: Sequence[DnsService], selects: Matcher = select_everything) -> PodChooser:
    """Chooses by the filters and the tiers of the plan."""

    def choose(pods: Iterable[DrainPod]) -> ChosenPods:
        judged = [(pod, filter_pod(pod, facts)) for pod in pods if selects(pod.metadata.labels or {})]
        evicted = [pod for pod, verdict in judged if verdict.fate is FilterFate.EVICT]
        names = find_dns_pods(evicted, dns)
        depended = frozenset(pod.metadata.uid for pod in evicted if pod_name(pod) in names or is_depended_on(pod))
        targets = choose_targets(arrange_tiers(evicted, dns), grace=facts.settings.grace_period, depended=depended)
        stays = Counter(verdict.why for _, verdict in judged if verdict.fate is FilterFate.SKIP)
        said = "; ".join(f"{count} stay: {why}" for why, count in sorted(stays.items()))
        return ChosenPods(
            targets=tuple(targets),
            refused=tuple(
                (pod.spec.node_name, f"{pod.key}: {verdict.why}")
                for pod, verdict in judged
                if verdict.fate is FilterFate.REFUSE
            ),
            criteria=said or "no pods stay",
        )

    return choose
