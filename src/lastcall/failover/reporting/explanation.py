"""Explains why a pod or a node is not failed over yet, what is awaited, and when at the latest (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lastcall.failover.decisions import (
    decision_table,
    fencer_choice,
    marking,
    node_return,
    remaining,
    steps,
    suspicion,
)
from lastcall.failover.decisions.case import Case, CasePod, FencerState
from lastcall.failover.decisions.steps import Done, Step, Wait
from lastcall.failover.evidence import awaited_proofs
from lastcall.failover.evidence.assessment import BootState, BootVerdict
from lastcall.model import duration
from lastcall.model.drain_mark import describe_drain
from lastcall.model.fence_policy import FailoverMode


@dataclass(frozen=True)
class Hurdle:
    """An obstacle. ``until``: when it ends or is checked again; None if unknown."""

    why: str
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """An explanation in sentences without a full stop; times on the clock of the Case."""

    about: str
    """``node n1`` or ``pod shop/db-0``."""
    next: str
    """The next action in a few words."""
    hurdles: tuple[Hurdle, ...] = ()
    """All current obstacles, the decisive one first, or why nothing has to be done; empty if an action follows now."""
    known: tuple[str, ...] = ()
    """What is known about the node's boot and the fencers."""
    proofs: tuple[Hurdle, ...] = ()
    """The proofs that would show that the boot is over."""
    left: str = ""
    """What remains to fail over, and what is stuck."""

    def with_hurdle(self, why: str) -> "Explanation":
        """The same with one more obstacle before all others; unchanged if ``why`` is empty."""
        if not why:
            return self
        return replace(self, next="nothing is done", hurdles=(Hurdle(why), *self.hurdles))

    @property
    def resolved_by(self) -> float | None:
        """When all obstacles have ended or are checked again, or a proof is due; None if unknown."""
        times = [one.until for one in self.hurdles]
        known = [at for at in times if at is not None]
        if not known or len(known) < len(times):
            return None
        return min([max(known), *(one.until for one in self.proofs if one.until is not None)])


_ORDERS: dict[type, str] = {
    steps.AskTarget: "asked which machine it stands for",
    steps.AskPower: "asked for the status",
    steps.SwitchOff: "told to switch off",
    steps.SwitchOn: "told to switch on",
}


_LAST: tuple[decision_table.Rule, ...] = (
    marking.claim_if_dead,
    suspicion.nothing_to_fail_over,
    node_return.finish_failover,
)
"""Rules after which no further obstacle matters while they make the node wait."""


def explain_node(case: Case, now: float) -> Explanation:
    """Explains the state of a node."""
    step, rule = decision_table.decide(case, now), _deciding_rule(case, now)
    if _is_well(case, rule):
        return _explain_well_node(case, now)
    hurdles = tuple(_list_hurdles(case, step, now))
    done = _was_proved_before(case) and not remaining.has_anything_to_remove(case)
    tainted = marking.manual_taint_note(case)
    said = not tainted or any(tainted in one.why for one in hurdles)
    return Explanation(
        about=f"node {case.name}",
        next=_next_action(step, case, rule),
        hurdles=hurdles,
        known=(*_list_known(case), *([] if said else [tainted])),
        proofs=() if done else tuple(_list_awaited_proofs(case)),
        left=remaining.remaining_text(case),
    )


def _deciding_rule(case: Case, now: float) -> decision_table.Rule:
    """The rule that decides: the first with an answer."""
    return next(rule for rule in decision_table.TABLE[decision_table.situation_of(case)] if rule(case, now) is not None)


def _is_well(case: Case, rule: decision_table.Rule) -> bool:
    """Whether it is alive and Ready, and nothing is begun or announced, so that silence does not matter."""
    if rule is not suspicion.wait_for_silence or case.mark is not None or case.heard is None:
        return False
    alive = case.verdict is not None and case.verdict.state is BootState.ALIVE
    ready = case.node is not None and case.node.ready == "True"
    return (
        alive and ready and case.held_until is None and not case.gone and not remaining.has_out_of_service_taint(case)
    )


def _explain_well_node(case: Case, now: float) -> Explanation:
    assert case.policy
    ago = duration.format_elapsed(now - case.quiet_since)
    observes = ", and only observes" if case.policy.mode is FailoverMode.OBSERVE else ""
    fencers = () if case.devices else ("its policy names no fencer",)
    return Explanation(
        about=f"node {case.name}",
        next="nothing has to be failed over",
        hurdles=(Hurdle(f"node {case.name} is well: it is Ready, and was heard of {ago} ago"),),
        known=(
            *_list_known(case),
            *fencers,
            "its condition Ready is True",
            f"policy {case.policy.name} holds for it{observes}",
        ),
    )


def explain_pod(case: Case, pod: CasePod, now: float) -> Explanation:
    """Explains the state of one pod that is bound to the node of the case."""
    about = f"pod {pod.key}"
    if why := remaining.stay_reason(pod):
        return Explanation(about=about, next="it stays where it is", hurdles=(Hurdle(f"it {why}"),))
    if remaining.is_stuck(pod):
        why = f"it was removed by force, and its finalizers keep it: {', '.join(pod.finalizers)}"
        return Explanation(about=about, next="their owners have to remove them", hurdles=(Hurdle(why),))
    node = explain_node(case, now)
    own = tuple(_pod_remarks(case, pod))
    refused = (Hurdle(f"the API server refuses it: {pod.refused.why}", pod.refused.again),) if pod.refused else ()
    return Explanation(
        about=about,
        next=node.next,
        hurdles=(*refused, *node.hurdles),
        known=(*own, *node.known),
        proofs=node.proofs,
        left=node.left,
    )


def explain_unbound_pod(key: str) -> Explanation:
    """Explains a pod that is not bound to a node."""
    return Explanation(about=f"pod {key}", next="nothing is forced", hurdles=(Hurdle("it is not bound to a node"),))


def explain_orphaned_pod(case: Case, key: str, now: float) -> Explanation:
    """Explains a pod whose node does not exist."""
    return replace(explain_node(case, now), about=f"pod {key}", known=(f"it is bound to node {case.name}",), left="")


def _pod_remarks(case: Case, pod: CasePod) -> Iterator[str]:
    yield f"it is bound to node {case.name}, and {'is' if pod.terminating else 'is not'} terminating"
    if pod.uid in case.gone:
        yield "its node has said that it has ended it and unmounted its volumes: it needs no proof"


def _next_action(step: Step, case: Case, rule: decision_table.Rule) -> str:
    asked = any(one.judgement or one.unanswered or one.offs or one.answers for one in case.devices)
    if isinstance(step, steps.AskTarget | steps.AskPower | steps.SwitchOff) and not asked:
        return f"it is made sure now that its machine is off, by {step.fencer}"
    match step:
        case Done():
            return "nothing is done"
        case Wait():
            return _waiting_text(case, rule)
        case steps.AskTarget() | steps.AskPower() | steps.SwitchOff() | steps.SwitchOn():
            return f"{step.fencer} is {_ORDERS[type(step)]} now: {step.why}"
        case steps.Delete() | steps.ForceDelete():
            how = "by force" if isinstance(step, steps.ForceDelete) else "with their own grace"
            return f"{remaining.first_names(pod.key for pod in step.pods)} are deleted now {how}: {step.why}"
        case steps.Detach():
            return f"{remaining.first_names(one.name for one in step.attachments)} are deleted now: {step.why}"
        case steps.Mark():
            return f"its failover goes on now, with the mark on the Node: {step.why}"
        case steps.TaintNode():
            return f"the taint out-of-service is set now: {step.why}"
        case _:
            return f"what is ours is taken away now: {step.why}"


def _waiting_text(case: Case, rule: decision_table.Rule) -> str:
    if _is_failed_over(case, rule):
        return "it is failed over; its return is waited for"
    if (
        case.mark is None
        and rule is not decision_table.wait_if_untouchable
        and not remaining.has_anything_to_remove(case)
    ):
        return "nothing has to be failed over"
    return "nothing is done yet"


def _is_failed_over(case: Case, rule: decision_table.Rule) -> bool:
    """Whether everything is removed and our taint is set."""
    mark = case.mark
    if rule is not node_return.finish_failover or mark is None or not mark.tainted or not remaining.has_our_taint(case):
        return False
    return mark.powered_on or not remaining.patient_pods(case)


def _list_hurdles(case: Case, step: Step, now: float) -> Iterator[Hurdle]:
    """Every rule that makes the node wait now, up to the first one with an action or a final answer."""
    if isinstance(step, Done):
        yield Hurdle(step.why)
    if not isinstance(step, Wait):
        return
    if case.policy is None or decision_table.wait_if_barred(case):
        yield Hurdle(step.why, step.until)
        return
    first = _deciding_rule(case, now)
    for rule in decision_table.TABLE[decision_table.situation_of(case)]:
        found = rule(case, now)
        if isinstance(found, Wait):
            why = _current_hurdle(case, rule, found) if rule is first else _later_hurdle(case, rule, found)
            yield Hurdle(why, found.until if found.until is not None or not found.stuck else _fencer_retry_at(case))
        if found is not None and (rule in _LAST or not isinstance(found, Wait)):
            return


def _fencer_retry_at(case: Case) -> float | None:
    """When the first unusable fencer is created again."""
    return min((one.again for one in case.devices if one.again is not None), default=None)


def _current_hurdle(case: Case, rule: decision_table.Rule, found: Wait) -> str:
    """The obstacle of the deciding rule, without what the first line already says."""
    switching = case.policy is not None and case.policy.power_on and case.mark is not None and case.mark.switched_off
    if switching or not _is_failed_over(case, rule):
        return found.why
    missing = remaining.first_names(name for name, ready in case.replacements.items() if not ready)
    elsewhere = f"; not Ready yet elsewhere: {missing}" if missing else ""
    return f"node {case.name} has not booted again{elsewhere}"


def _later_hurdle(case: Case, rule: decision_table.Rule, found: Wait) -> str:
    """The obstacle of a rule that would decide after the current ones; it is not presented as the current state."""
    if rule is marking.mark_node and case.policy:
        return f"after that: policy {case.policy.name} only observes"
    return f"after that: {found.why}" if rule is marking.wait_without_fencer else found.why


def _list_awaited_proofs(case: Case) -> Iterator[Hurdle]:
    """Without a fencer no OFF can come, so an acknowledgement is the way out; its command is given once."""
    node, verdict = case.node, case.verdict
    for one in verdict.awaited if verdict else ():
        if case.devices or one.what != awaited_proofs.ANYTHING:
            yield Hurdle(one.what, one.at)
            continue
        silent = node is not None and node.boot_id and node.ready != "True" and not marking.manual_taint_note(case)
        command = f", by {marking.acknowledge_command(case)}" if silent else ""
        yield Hurdle(f"{awaited_proofs.WITHOUT_FENCERS}{command}", one.at)


def _list_known(case: Case) -> Iterator[str]:
    if case.verdict:
        yield _boot_text(case, case.verdict)
    if mark := case.mark:
        done = [
            f"{mark.fencer} was told to switch it off" if mark.switched_off else "",
            "the taint out-of-service is lastcall's" if mark.tainted else "",
            "it was told to switch on again" if mark.powered_on else "",
        ]
        since = f"it is marked by {mark.by} since {mark.began}, for boot {mark.boot_id}"
        yield "; ".join([since, *(one for one in done if one)])
    if case.node and case.node.drain:
        yield f"{describe_drain(case.node.drain)}, which failover does not wait for"
    for device in case.devices:
        if said := _fencer_text(device):
            yield said
    if unasked := [one.name for one in case.devices if not _fencer_text(one)]:
        yield f"its policy's fencers: {', '.join(unasked)}"


def _boot_text(case: Case, verdict: BootVerdict) -> str:
    reasons = "; ".join(verdict.reasons)
    if _was_proved_before(case):
        return f"boot {verdict.boot_id} is over: lastcall had a proof of that when it set its taint ({reasons})"
    return f"boot {verdict.boot_id} is {verdict.state.value}: {reasons}"


def _was_proved_before(case: Case) -> bool:
    """Whether our taint, which requires a proof, is set for the current boot, and no sign of its life contradicts it.

    A reader of objects alone does not see the proof: no object records the answer of a fencer.
    """
    mark, verdict = case.mark, case.verdict
    if mark is None or verdict is None or verdict.state is not BootState.UNKNOWN:
        return False
    return mark.tainted and mark.boot_id == verdict.boot_id and remaining.has_our_taint(case)


def _fencer_text(device: FencerState) -> str:
    """What is known about a fencer; empty if nothing is."""
    if device.trouble:
        return f"fencer {device.name} cannot be used: {device.trouble}"
    if device.judgement and not device.judgement.allows_fencing(unchecked=device.unchecked):
        return f"fencer {device.name} is not used: {device.judgement.why}"
    if not device.offs:
        error = fencer_choice.last_error(device)
        return (
            f"fencer {device.name} has failed: {error}, attempts: {fencer_choice.attempt_count(device)}"
            if error
            else ""
        )
    failed = f", and failed: {device.offs[-1].error}" if device.offs[-1].error else ""
    return f"fencer {device.name} was told to switch off{failed}"
