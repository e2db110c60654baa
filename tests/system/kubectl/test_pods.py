"""The unmodified kubectl and what runs in pods: logs, exec, cp, attach, run; through the API server to a node."""

import time
from pathlib import Path

import pytest
from support.kube.kubectl import items, kubectl, lab, pod  # noqa: F401  (fixtures)

from lastcall_lab.apiserver.subresources.pod_streams import DIAL_SECONDS

pytestmark = pytest.mark.timeout(180)

NO_ANSWER = "dial tcp 127.0.0.9:10250: i/o timeout\n"
DEFAULTED = 'Defaulted container "main" out of: main, beside\n'


@pytest.fixture
def web(kubectl):  # noqa: F811
    """kubectl in a namespace with two pods that run."""
    kubectl("create -f -", given=items(pod("web"), pod("pair", containers=["main", "beside"])))
    kubectl.until("get pods", lambda said: said.count("Running") == 2)
    return kubectl


# -- logs --------------------------------------------------------------------------------------------------------------


def test_logs(web):
    assert web("logs web") == "main says one\nmain says two\nmain says three\n"
    assert web("logs web --tail=1") == "main says three\n"
    assert web("logs web --tail=1 --timestamps") == "2026-01-02T03:04:05.000000006Z main says three\n"
    assert web("logs web --limit-bytes=4 --tail=1") == "main"
    assert web("logs web --follow --tail=1") == "main says three\nmain says four\n"


def test_logs_of_several_containers(web):
    assert web.run("logs pair --tail=1") == ("main says three\n", DEFAULTED, 0)
    assert web("logs pair -c beside --tail=1") == "beside says three\n"
    said = web("logs pair --all-containers --prefix --tail=1").splitlines()
    assert {*said} == {"[pod/pair/main] main says three", "[pod/pair/beside] beside says three"}
    assert web("logs -l app=web --tail=1 --prefix") == "[pod/web/main] main says three\n"


def test_logs_that_cannot_be_had(web):
    assert (
        web.fails("logs none")
        == f'error: error from server (NotFound): pods "none" not found in namespace "{web.namespace}"\n'
    )
    assert web.fails("logs pair -c third") == "error: container third is not valid for pod pair out of: main, beside\n"
    assert web.fails("logs web --previous") == (
        'Error from server (BadRequest): previous terminated container "main" in pod "web" not found\n'
    )
    web("create -f -", given=pod("lost", node="", nodeSelector={"no": "such"}))
    assert web("logs lost") == ""


# -- exec, attach, cp --------------------------------------------------------------------------------------------------


def test_exec(web):
    assert web("exec web -- sh -c 'echo $POD in $CONTAINER'") == "web in main\n"
    assert web.run("exec pair -- sh -c 'echo $CONTAINER'") == ("main\n", DEFAULTED, 0)
    assert web("exec pair -c beside -- sh -c 'echo $CONTAINER'") == "beside\n"
    said = web.run("exec web -- sh -c 'echo out; echo err >&2; exit 3'")
    assert said == ("out\n", "err\ncommand terminated with exit code 3\n", 3)


def test_exec_with_input(web):
    assert web("exec -i web -- cat", given="to be said again\n" * 1000) == "to be said again\n" * 1000
    assert web("exec -i web -- wc -c", given="x" * 200_000).strip() == "200000"


def test_exec_goes_on_until_the_client_goes(web, tmp_path):
    trace = tmp_path / "trace"
    script = f"echo $$ > {trace}; echo begun; sleep 600"
    with web.running("exec web -- sh -c", script) as running:
        running.until("begun")
    process = Path(f"/proc/{trace.read_text().strip()}")
    end = time.monotonic() + 60
    while process.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_exec_that_cannot_be(web):
    said = web.fails("exec web -- no-such-program")
    assert said.startswith("error: Internal error occurred: error executing command in container: ")
    assert "no-such-program" in said
    assert web.fails("exec none -- true") == 'Error from server (NotFound): pods "none" not found\n'
    assert web.fails("exec web") == "error: you must specify at least one command for the container\n"
    assert "container third is not valid for pod pair" in web.fails("exec pair -c third -- true")
    web("create -f -", given=pod("lost", node="", nodeSelector={"no": "such"}))
    assert "pod lost does not have a host assigned" in web.fails("exec lost -- true")


def test_copy(web, tmp_path):
    here, there, back = tmp_path / "here", tmp_path / "there", tmp_path / "back"
    here.mkdir()
    (here / "a").write_bytes(bytes(range(256)) * 1000)
    (here / "b").write_text("second")
    there.mkdir()
    web("cp", here, f"web:{there}")
    assert (there / "here" / "a").read_bytes() == (here / "a").read_bytes()
    web("cp", f"web:{there}/here/b", back)
    assert back.read_text() == "second"
    assert web.fails("cp /no/such/file web:/tmp/x") == "error: /no/such/file doesn't exist in local filesystem\n"


def test_attach(web):
    said = web.run("attach web")
    assert (said.out, said.code) == ("main says four\n", 0)
    assert "container third is not valid for pod pair" in web.fails("attach pair -c third")


def test_port_forward_says_how_else(web):
    said = web.fails("port-forward web 18080:80")
    assert "unable to upgrade connection: port-forward is not served by the lab: " in said
    assert "kubectl get pods -o wide" in said


def test_run_and_remove(web):
    overrides = '{"spec":{"nodeName":"n1"}}'
    said = web.run("run once --image=web:1 --rm -i --restart=Never --overrides", overrides, "--command", "--", "true")
    assert said.code == 0
    assert f'pod "once" deleted from {web.namespace} namespace\n' in said.out
    assert web("get pod once --ignore-not-found") == ""


def test_debug_adds_a_container(web, lab):  # noqa: F811
    said = web.run("debug web --image=tools:1 --container=look --profile=general -- sh")
    assert said.code == 0
    [added] = lab.stored("pods", web.namespace, "web")["spec"]["ephemeralContainers"]
    assert (added["name"], added["image"], added["command"]) == ("look", "tools:1", ["sh"])


def test_a_node_that_does_not_answer(web, lab):  # noqa: F811
    lab.node("silent")
    web("create -f -", given=pod("deaf", node="silent"))
    web.until("get pod deaf", lambda said: "Running" in said)
    lab.remove_node("silent")
    began = time.monotonic()
    assert web.fails("logs deaf") == (
        f'Error from server: Get "https://127.0.0.9:10250/containerLogs/{web.namespace}/deaf/main": {NO_ANSWER}'
    )
    assert web.fails("exec deaf -- true") == (
        "error: Internal error occurred: error sending request: Post"
        f' "https://127.0.0.9:10250/exec/{web.namespace}/deaf/main": {NO_ANSWER}'
    )
    assert time.monotonic() - began >= 2 * DIAL_SECONDS


def test_a_node_that_answers_in_time(web, lab):  # noqa: F811
    lab.node("slow")
    web("create -f -", given=pod("late", node="slow"))
    web.until("get pod late", lambda said: "Running" in said)
    kubelet = lab.hide("slow")
    with web.running("exec late -- echo here") as running:
        time.sleep(1)
        lab.show("slow", kubelet)
        running.until("here")
