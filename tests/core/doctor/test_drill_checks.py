"""What a drill makes of its facts."""

import pytest
from core.doctor.test_checks import FAILURE, HEALTHY, OK, UNKNOWN, WARNING, WHY, lock, logind
from msgspec import structs

from lastcall.doctor.drill_checks import OF_THE_HOST, OF_THE_SHUTDOWN, run_drill_checks
from lastcall.doctor.drill_facts import DrillFacts, DrillVolume, KubeletUnitFacts, TrafficFacts
from lastcall.model.shutdown import PhaseRecord, PodRecord, ShutdownMode, ShutdownRecord


def pod(name, *, phase=0, grace=30.0, asked=30):
    return PodRecord(uid=name, namespace="d", name=name, priority=0, phase=phase, grace=grace, asked=asked, started=0.0)


def record(*pods):
    return ShutdownRecord(
        id="x",
        node="n1",
        boot_id="b",
        how="drill",
        mode=ShutdownMode.OBSERVE,
        wall=0.0,
        boottime=0.0,
        requested=30.0,
        granted=30.0,
        deadline=30.0,
        lock=True,
        phases=(PhaseRecord(priority=0, seconds=20, given=4.0), PhaseRecord(priority=100, seconds=10)),
        pods=pods,
    )


def unit(load="loaded", active="active", can_stop=True):
    return {"kubelet_unit": KubeletUnitFacts(name="kubelet.service", load=load, active=active, can_stop=can_stop)}


def traffic(*serving, settle=0.5, source="the default", limit=2.0):
    facts = TrafficFacts(serving=frozenset(serving), settle_seconds=settle, source=source, limit_seconds=limit)
    return {"traffic": facts}


def volumes(*problems):
    return {"volumes": tuple(DrillVolume(pod="d/db", title=f"v{n}", problem=one) for n, one in enumerate(problems))}


GOOD = DrillFacts(host=HEALTHY, record=record(pod("web"), pod("db", phase=1)), **unit(), **traffic(), **volumes())
BOTH = structs.replace(HEALTHY, logind=logind(lock("lastcall", pid=900), lock("kubelet")))


WITHOUT_THEM = " are without them, and 500ms more (the default); at most 1s in phase 1, 2s in phase 2"


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "text"),
    [
        ("kubelet", {}, OK, "kubelet.service runs, and would be stopped"),
        ("kubelet", {"host": BOTH}, FAILURE, "the kubelet holds a delay lock: it ends the pods, too"),
        ("kubelet", {"host": structs.replace(HEALTHY, logind=WHY)}, OK, "would be stopped"),
        ("kubelet", {"kubelet_unit": None}, WARNING, "no unit is stopped"),
        ("kubelet", {"kubelet_unit": WHY}, UNKNOWN, "it was not to be found out"),
        ("kubelet", unit(load="not-found", active="inactive"), WARNING, "there is no kubelet.service"),
        ("kubelet", unit(active="failed"), WARNING, "kubelet.service does not run"),
        ("kubelet", unit(can_stop=False), FAILURE, "kubelet.service refuses to be stopped"),
        ("time", {}, OK, "all 2 pods get the time that they ask for"),
        ("time", {"record": record()}, OK, "no pods run here"),
        (
            "time",
            {"record": record(pod("web", grace=29.5), pod("b", grace=5.0), pod("a", grace=0.0))},
            WARNING,
            "2 of 3 pods get less time than they ask for, and may be killed: d/a, d/b",
        ),
        ("traffic", {}, OK, "no pod receives traffic from a Service"),
        ("traffic", {"traffic": WHY}, UNKNOWN, "no SIGTERM would wait: it was not to be found out"),
        ("traffic", traffic("web", limit=0.0), WARNING, "traffic.limitSeconds is 0"),
        (
            "traffic",
            traffic("web", "db", "elsewhere"),
            OK,
            "2 of 2 pods receive traffic from Services: their SIGTERM waits until the EndpointSlices" + WITHOUT_THEM,
        ),
        ("volumes", {}, OK, "no pod that is replaced elsewhere has a volume"),
        ("volumes", {"volumes": WHY}, UNKNOWN, "it was not to be found out"),
        ("volumes", volumes("", ""), OK, "the drivers of all 2 volumes"),
        ("volumes", volumes("", "silent"), WARNING, "1 of 2 volumes would stay mounted: v1 of d/db: silent"),
    ],
)
def test_each_check(name, changes, verdict, text):
    found = OF_THE_SHUTDOWN[name](structs.replace(GOOD, **changes))
    assert found.verdict is verdict
    assert text in found.message
    assert bool(found.fix) is (verdict in (WARNING, FAILURE)), "what is wrong has a remedy"


def test_all_of_them_in_their_order():
    checks = run_drill_checks(GOOD)
    assert [one.name for one in checks] == [*OF_THE_HOST, *OF_THE_SHUTDOWN]
    assert {one.verdict for one in checks} == {OK}


def test_an_agent_that_is_not_armed_is_a_failure():
    unarmed = structs.replace(GOOD, host=structs.replace(HEALTHY, logind=logind()))
    [agent] = [one for one in run_drill_checks(unarmed) if one.name == "agent"]
    assert (agent.verdict, "is not armed" in agent.message) == (FAILURE, True)
