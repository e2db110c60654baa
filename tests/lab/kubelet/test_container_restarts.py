"""Containers that end on the lab's kubelet: pauses, restart policies and deadlines."""

from support.lab.virtual_node import on_node

from lastcall_lab.apiserver.values.object_meta import parse_seconds
from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.kubelet.base.settings import KubeletSettings

FOR_EVER = float("inf")


@on_node({"main": ContainerScript(lives=1, code=3)})
async def test_pauses_grow_from_ten_seconds_to_five_minutes(node):
    await node.started("web")
    await node.until(lambda: node.container("web")["restartCount"] >= 8, 3000)
    starts = [at for at, what in node.deliveries("web") if what == "start"]
    between = [round(after - before) for before, after in zip(starts, starts[1:], strict=False)]
    assert between[:8] == [1, 11, 21, 41, 81, 161, 301, 301]


@on_node({"main": ContainerScript(lives=1, code=3)})
async def test_what_a_pause_looks_like(node):
    await node.started("web")

    def waiting():
        return node.container("web")["state"].get("waiting", {})

    await node.until(lambda: waiting().get("reason") == "CrashLoopBackOff", 30)
    uid = node.uids["web"]
    assert waiting()["message"] == f"back-off 10s restarting failed container=main pod=web_default({uid})"
    assert node.container("web")["lastState"]["terminated"]["exitCode"] == 3
    assert node.container("web")["lastState"]["terminated"]["reason"] == "Error"
    assert node.phase("web") == "Running"
    assert not node.ready("web")
    await node.clock.sleep(1)
    said = f"Back-off restarting failed container main in pod web_default({uid})"
    assert ("BackOff", said) in node.events("web")


@on_node({"main": [ContainerScript(lives=1, code=1)] * 4 + [ContainerScript(lives=700, code=1), ContainerScript()]})
async def test_who_runs_for_ten_minutes_begins_with_the_first_pause(node):
    await node.started("web")
    await node.until(lambda: node.container("web")["restartCount"] == 5, 2000)
    starts = [at for at, what in node.deliveries("web") if what == "start"]
    assert round(starts[5] - starts[4]) == 700


@on_node({"main": ContainerScript(lives=5, code=0)})
async def test_on_failure_success_is_the_end(node):
    await node.create("job", restartPolicy="OnFailure")
    await node.until(lambda: node.phase("job") == "Succeeded", 20)
    status = node.status("job")
    assert status["containerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert node.conditions("job")["Ready"]["reason"] == "PodCompleted"
    assert node.conditions("job")["Initialized"]["status"] == "True"
    assert node.conditions("job")["PodReadyToStartContainers"]["status"] == "False"


@on_node({"main": [ContainerScript(lives=5, code=1), ContainerScript(lives=5, code=0)]})
async def test_on_failure_failure_is_not(node):
    await node.create("job", restartPolicy="OnFailure")
    await node.until(lambda: node.phase("job") == "Succeeded", 20)
    assert node.container("job")["restartCount"] == 1
    assert node.container("job")["lastState"]["terminated"]["exitCode"] == 1


@on_node({"one": ContainerScript(lives=5, code=1), "two": ContainerScript(lives=50)})
async def test_never_is_over_when_all_have_ended(node):
    await node.create("job", {"name": "one"}, {"name": "two"}, restartPolicy="Never")
    await node.clock.sleep(20)
    assert node.phase("job") == "Running"
    await node.until(lambda: node.phase("job") == "Failed", 60)
    assert "reason" not in node.status("job")


@on_node(
    settings=KubeletSettings(backoff_first=1, backoff_longest=4), behave={"main": ContainerScript(lives=0, code=1)}
)
async def test_the_constants_can_be_others(node):
    await node.started("web")
    await node.until(lambda: node.container("web")["restartCount"] >= 5, 60)
    starts = [at for at, what in node.deliveries("web") if what == "start"]
    assert [round(b - a) for a, b in zip(starts, starts[1:], strict=False)][:5] == [0, 1, 2, 4, 4]


@on_node({"main": ContainerScript(lives=FOR_EVER)})
async def test_active_deadline(node):
    await node.started("job", activeDeadlineSeconds=20, restartPolicy="Never")
    await node.until(lambda: node.phase("job") == "Failed", 60)
    assert node.status("job")["reason"] == "DeadlineExceeded"
    assert parse_seconds(node.container("job")["state"]["terminated"]["finishedAt"]) - parse_seconds(
        node.status("job")["startTime"]
    ) in (19, 20, 21)
