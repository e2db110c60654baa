"""The doctor's checks of the cluster: early detachment of volumes, and obstacles to failover (pure)."""

from collections.abc import Sequence

from lastcall.doctor.facts import HostFacts, HostFile, UnknownFact
from lastcall.doctor.finding import Finding, ok, unknown, warning
from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall.model.controller_manager import NO_TIMEOUT, PROGRAM, ControllerManager, managers_in_pod


def check_force_detach(facts: HostFacts) -> Finding:
    """Whether kube-controller-manager detaches volumes from machines that may still write.

    By default it does so six minutes after a node became not Ready, which may be before lastcall has its proof.
    """
    if isinstance(facts.controllers, UnknownFact):
        return unknown(f"not known: {facts.controllers.reason}")
    here = () if isinstance(facts.manifests, UnknownFact) else facts.manifests
    found = [*(facts.controllers or ()), *(one for file in here for one in _managers_in_manifest(file))]
    if not found:
        return unknown(*_not_found_message(facts))
    unsafe = [one.where for one in found if one.detaches_on_timeout]
    if unsafe:
        return warning(
            f"after six minutes {PROGRAM} detaches volumes from a node that is not Ready, off or not: {', '.join(unsafe)}",
            f"start it with --{NO_TIMEOUT}; until then a failover that takes longer comes too late",
        )
    return ok(_detach_message(found))


def check_fence_policies(facts: HostFacts) -> Finding:
    """Whether a FencePolicy is rejected, or has a lost node that is not fenced, according to its conditions."""
    if isinstance(facts.policies, UnknownFact):
        return unknown(f"not known: {facts.policies.reason}")
    if facts.policies is None:
        return ok("not checked without --kubeconfig: they do not affect the shutdown of this machine")
    if not facts.policies:
        return ok("there is no FencePolicy: lastcall fails over no node")
    unmet = [f"FencePolicy {one.name}: {why}" for one in facts.policies for why in one.unmet]
    if unmet:
        names = ", ".join(one.name for one in facts.policies if one.unmet)
        return warning(
            f"nodes are not failed over: {'; '.join(unmet)}",
            f"kubectl describe fencepolicies {names.replace(',', '')}; lastcall failover explain NODE says what is awaited",
        )
    return ok("every FencePolicy is accepted, and none reports that a fencer fails or that a limit holds back fencing")


def _detach_message(found: Sequence[ControllerManager]) -> str:
    if any(one.runs_attach_detach for one in found):
        return f"{PROGRAM} detaches nothing because time has passed"
    return f"the attach-detach controller of {PROGRAM} is off: lastcall controller needs --attach-detach own"


def _not_found_message(facts: HostFacts) -> tuple[str, str]:
    if facts.controllers is None:
        why = f"not known: no {PROGRAM} is a static pod of this machine, and the cluster was not asked"
        return why, "give --kubeconfig, or run doctor on a node of the control plane"
    why = f"not known: no {PROGRAM} is a pod in kube-system; it runs elsewhere, or a provider runs it"
    return why, f"ask the provider of the control plane whether {PROGRAM} has --{NO_TIMEOUT}"


def _managers_in_manifest(file: HostFile) -> list[ControllerManager]:
    """The managers in a static pod's manifest; the kubelet, too, ignores an unreadable file."""
    try:
        documents = decoding.parse_documents(file.data, file.path)
    except InvalidInput:
        return []
    specs = [one.get("spec") for one in documents if isinstance(one, dict)]
    return [one for spec in specs if isinstance(spec, dict) for one in managers_in_pod(spec, file.path)]
