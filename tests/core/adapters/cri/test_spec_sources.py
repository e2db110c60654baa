"""Which source completes a running pod, and what it gives to it."""

import pytest

from lastcall.adapters.cri.spec_sources import SpecSources, complete_from_api
from lastcall.model.pods import (
    Container,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    ObjectMetadata,
    OwnerReference,
    PersistentClaimSource,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
    list_sidecars,
)
from lastcall.ports.node import PrioritySource

HOOK = LifecycleHandler(exec=ExecAction(command=("leave",)))
OWNER = OwnerReference(kind="StatefulSet", name="web", uid="o-1", controller=True)
MAIN = Container(name="main", lifecycle=Lifecycle(pre_stop=HOOK, stop_signal="SIGUSR1"))
PROXY, MESH = Container(name="proxy", restart_policy="Always"), Container(name="mesh", restart_policy="Always")
INIT = Container(name="init")


def running(*names, annotations=None, **spec):
    """A pod as the runtime knows it."""
    return Pod(
        metadata=ObjectMetadata(name="web-0", namespace="shop", uid="u-1", annotations=annotations),
        spec=PodSpec(containers=tuple(Container(name=name) for name in names or ("main",)), **spec),
        status=PodStatus(phase="Running"),
    )


def api(priority=7, *, metadata=None, **spec):
    """The same pod in the API."""
    given = {"containers": (MAIN, Container(name="ended")), "init_containers": (INIT, PROXY, MESH), **spec}
    said = {"name": "web-0", "namespace": "shop", "uid": "u-1", "labels": {"app": "web"}, "owner_references": (OWNER,)}
    return Pod(metadata=ObjectMetadata(**{**said, **(metadata or {})}), spec=PodSpec(priority=priority, **given))


WATCH, CHECKPOINT = {"watched": {"u-1": api(1)}}, {"checkpoint": {"u-1": api(2)}}
MANIFEST = {"manifests": {("shop", "web-0"): api(3)}}
NO_NUMBER = {"manifests": {("shop", "web-0"): api(None)}}
OTHERS = {"watched": {"u-2": api(1)}, "checkpoint": {"u-3": api(2)}, "manifests": {("shop", "db"): api(3)}}


@pytest.mark.parametrize(
    ("sources", "annotated", "priority", "source"),
    [
        ({**WATCH, **CHECKPOINT, **MANIFEST}, 4, 1, PrioritySource.WATCH),
        ({**CHECKPOINT, **MANIFEST}, 4, 2, PrioritySource.CHECKPOINT),
        ({**OTHERS, **CHECKPOINT}, 4, 2, PrioritySource.CHECKPOINT),
        (MANIFEST, 4, 3, PrioritySource.MANIFEST),
        (NO_NUMBER, None, None, PrioritySource.MANIFEST),
        (NO_NUMBER, 4, 4, PrioritySource.RUNTIME),
        (OTHERS, 4, 4, PrioritySource.RUNTIME),
        (OTHERS, None, None, PrioritySource.DEFAULT),
        ({}, None, None, PrioritySource.DEFAULT),
        ({"watched": {"u-1": api(None)}}, 4, None, PrioritySource.WATCH),
    ],
)
def test_the_first_source_that_knows_the_pod_counts(sources, annotated, priority, source):
    pod, found = SpecSources(**sources).complete_pod(running(priority=annotated), "n1")
    assert (pod.spec.priority, found) == (priority, source)


def test_a_pod_of_the_same_name_and_another_uid_is_another_pod():
    pod, source = SpecSources(watched={"u-9": api(1)}).complete_pod(running(), "n1")
    assert (pod.spec.priority, source) == (None, PrioritySource.DEFAULT)


def test_the_api_gives_sidecars_hooks_signals_owners_labels_and_volumes():
    volumes = (Volume(name="data", persistent_volume_claim=PersistentClaimSource(claim_name="data-web-0")),)
    known = api(volumes=volumes, termination_grace_period_seconds=45)
    pod = complete_from_api(running("mesh", "main", "proxy", termination_grace_period_seconds=30), known)
    assert [one.name for one in list_sidecars(pod)] == ["proxy", "mesh"], "in the order of their start"
    [main] = pod.spec.containers
    assert (main.pre_stop, main.stop_signal) == (HOOK, "SIGUSR1")
    assert pod.metadata.owner_references == (OWNER,)
    assert pod.metadata.labels == {"app": "web"}
    assert pod.spec.volumes == volumes
    assert pod.spec.termination_grace_period_seconds == 45


@pytest.mark.parametrize(
    ("running_names", "containers", "init"),
    [
        (("main", "ended"), ["main", "ended"], ["proxy", "mesh"]),
        (("main",), ["main"], ["proxy", "mesh"]),
        (("init",), [], ["init", "proxy", "mesh"]),
        (("main", "debugger"), ["main", "debugger"], ["proxy", "mesh"]),  # an ephemeral container
    ],
)
def test_only_containers_that_run_are_listed(running_names, containers, init):
    pod = complete_from_api(running(*running_names), api())
    assert [one.name for one in pod.spec.containers] == containers
    assert [one.name for one in pod.spec.init_containers] == init


def test_the_runtime_names_a_static_pod_and_says_that_it_runs():
    mirror = api(metadata={"uid": "the mirror's", "name": "other"})
    pod = complete_from_api(running(annotations={"a": "b"}), with_phase(mirror, "Failed"))
    assert (pod.metadata.uid, pod.metadata.name, pod.metadata.annotations) == ("u-1", "web-0", {"a": "b"})
    assert not pod.is_finished, "its containers run"


def with_phase(pod, phase):
    return Pod(metadata=pod.metadata, spec=pod.spec, status=PodStatus(phase=phase))


@pytest.mark.parametrize(("said", "noted", "expected"), [(5, None, 5), (None, 9, 9), (5, 9, 5), (None, None, None)])
def test_the_grace_of_a_deletion_is_the_apis_or_else_the_runtimes(said, noted, expected):
    own = running()
    own = Pod(metadata=ObjectMetadata(name="w", uid="u-1", deletion_grace_period_seconds=noted), spec=own.spec)
    pod = complete_from_api(own, api(metadata={"deletion_grace_period_seconds": said}))
    assert pod.metadata.deletion_grace_period_seconds == expected
