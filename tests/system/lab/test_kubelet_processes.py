"""The lab's kubelet with real processes: an API server in this process, one node."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.lab.real_node import RealNode, ready, restarted, running

from lastcall.adapters.kube.resources import CONFIG_MAPS, EVENTS, PODS
from lastcall.errors import InvalidInput
from lastcall_lab.kubelet.node.manifest_files import ManifestFiles

SERVER = """
import http.server, os, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500 if os.path.exists(os.environ["VOLUME_SHARED"] + "/sick") else 200)
        self.end_headers()
    def log_message(self, *_): pass
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
http.server.HTTPServer((os.environ["POD_IP"], int(os.environ["PORT"])), Handler).serve_forever()
"""


@pytest.fixture
async def node(tmp_path):
    node = RealNode(tmp_path)
    await node.begin()
    try:
        yield node
    finally:
        await node.end()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def gated(directory):
    """The beginning of a script, which goes on when the file ``gate`` is there."""
    return f"while ! [ -e {directory}/gate ]; do sleep 0.1; done;"


def can_make_namespaces():
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return not subprocess.run(["unshare", *user, "--mount", "true"], capture_output=True, check=False).returncode


needs_namespaces = pytest.mark.skipif(not can_make_namespaces(), reason="this machine allows no mount namespaces")


async def reasons(node):
    """Of the events about pods."""
    found = await node.client.list(EVENTS, namespace="default")
    return {one["reason"] for one in found.items}


OBEDIENT = "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.1; done"


async def test_a_process_runs_as_a_pod_and_ends(node):
    await node.create("web", OBEDIENT)
    status = await node.until(ready)
    assert status["podIP"].startswith("127.")
    await node.client.delete(PODS, "web", namespace="default")
    await node.gone()


async def test_logs_of_this_run_and_the_one_before(node):
    await node.create("web", "echo one; echo two; exit 3")
    await node.until(restarted)
    assert await node.logs(previous=True) == b"one\ntwo\n"
    assert await node.logs(previous=True, tail=1) == b"two\n"
    await node.until(lambda status: status["containerStatuses"][0]["lastState"])
    stamped = await node.logs(previous=True, timestamps=True)
    assert all(line.startswith(b"20") for line in stamped.splitlines())


async def test_a_log_is_followed(node, tmp_path):
    await node.create("web", f"{gated(tmp_path)} for n in 1 2 3; do echo $n; sleep 0.5; done", restartPolicy="Never")
    await node.until(running)
    following = asyncio.create_task(node.logs(follow=True))
    (tmp_path / "gate").touch()
    assert await asyncio.wait_for(following, 60) == b"1\n2\n3\n"
    await node.until(lambda status: status["phase"] == "Succeeded")


async def test_programs_beside_a_process(node):
    await node.create("web", OBEDIENT, container={"env": [{"name": "GREETING", "value": "good night"}]})
    await node.until(running)
    assert await node.execute(["sh", "-c", 'echo "$GREETING, $POD_NAME"; exit 5']) == (b"good night, web\n", 5)
    assert await node.execute(["sh", "-c", "tr a-z A-Z"], stdin=b"aloud\n") == (b"ALOUD\n", 0)
    said, code = await node.execute(["sh", "-c", "tty && echo there; exit 4"], tty=True)
    assert b"/dev/pts/" in said
    assert b"there" in said
    assert code == 4
    with pytest.raises(InvalidInput, match="container not found"):
        await node.kubelet.api.execute(await node.pod("web"), "other", ["true"], stdin=False, tty=False)


async def test_a_terminal_has_a_shell_that_can_be_interrupted(node):
    await node.create("web", OBEDIENT)
    await node.until(running)
    execution = await node.kubelet.api.execute(await node.pod("web"), "main", ["sleep", "1000"], stdin=True, tty=True)
    execution.resize(100, 30)
    ended = asyncio.ensure_future(execution.wait())
    for _ in range(240):  # until its program has the terminal, on a busy machine too
        await execution.write(b"\x03")
        await asyncio.sleep(0.25)
        if ended.done():
            break
    assert await asyncio.wait_for(ended, 10) == 130


async def test_a_program_hears_the_signals_that_a_lab_in_the_background_ignores(node):
    await node.create("web", OBEDIENT)
    await node.until(running)
    asked = ["sh", "-c", "trap 'exit 7' INT; kill -INT $$; exit 0"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        execution = await node.kubelet.api.execute(await node.pod("web"), "main", asked, stdin=False, tty=False)
        assert await asyncio.wait_for(execution.wait(), 60) == 7
    finally:
        signal.signal(signal.SIGINT, before)


async def test_a_program_dies_with_who_has_asked(node):
    await node.create("web", OBEDIENT)
    await node.until(running)
    execution = await node.kubelet.api.execute(await node.pod("web"), "main", ["sleep", "1000"], stdin=False, tty=False)
    execution.kill()
    assert await asyncio.wait_for(execution.wait(), 60) == 137


async def test_volumes_are_where_the_variables_say(node):
    await node.client.create(CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": {"a": "1"}}, namespace="default")
    mounts = [{"name": "conf", "mountPath": "/etc/conf"}, {"name": "tmp-data", "mountPath": "/data"}]
    await node.create(
        "web",
        'cat "$VOLUME_CONF/a"; echo; echo kept > "$VOLUME_TMP_DATA/file"; cat $VOLUME_TMP_DATA/file; sleep 1000',
        container={"volumeMounts": mounts},
        volumes=[{"name": "conf", "configMap": {"name": "conf"}}, {"name": "tmp-data", "emptyDir": {}}],
    )
    await node.until(running)
    async with asyncio.timeout(60):
        while await node.logs() != b"1\nkept\n":
            await asyncio.sleep(0.1)


MOUNTED = [
    {"name": "conf", "mountPath": "/etc/conf"},
    {"name": "tmp-data", "mountPath": "/data"},
    {"name": "conf", "mountPath": "/var/run/secrets/lab.example/only-a", "subPath": "a"},
]
VOLUMES = [{"name": "conf", "configMap": {"name": "conf"}}, {"name": "tmp-data", "emptyDir": {}}]


@needs_namespaces
async def test_volumes_are_at_their_mount_paths(node):
    """Also for a program beside the container and for a probe; the machine's own tree stays as it is."""
    await node.client.create(CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": {"a": "1"}}, namespace="default")
    look = ["sh", "-c", "cat /etc/conf/a /data/file && test -f /etc/hostname"]
    await node.create(
        "web",
        "echo kept > /data/file; cat /etc/conf/a /data/file /var/run/secrets/lab.example/only-a; exec sleep 1000",
        container={"volumeMounts": MOUNTED, "readinessProbe": {"exec": {"command": look}, "periodSeconds": 1}},
        volumes=VOLUMES,
    )
    await node.until(ready)
    assert await node.execute(look) == (b"1kept\n", 0)
    assert await node.execute(["sh", "-c", "echo more >> /data/file; cat $VOLUME_TMP_DATA/file"]) == (
        b"kept\nmore\n",
        0,
    )
    assert await node.logs() == b"1kept\n1"
    assert not any(Path(path).exists() for path in ("/etc/conf", "/data", "/var/run/secrets/lab.example"))
    assert "VolumesNotShown" not in await reasons(node)


@needs_namespaces
async def test_the_token_is_where_clients_look_for_it(node):
    """As the API server's admission has it mounted."""
    authority = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "an authority"}}
    await node.client.create(CONFIG_MAPS, authority, namespace="default")
    await node.create("web", "exec sleep 1000", automountServiceAccountToken=True)
    await node.until(running)
    where = "/var/run/secrets/kubernetes.io/serviceaccount"
    out, code = await node.execute(["sh", "-c", f"cd {where} && ls && test -s token && cat namespace"])
    assert (out.split(), code) == ([b"ca.crt", b"namespace", b"token", b"default"], 0)


@needs_namespaces
async def test_a_hook_sees_the_volumes_and_sigterm_arrives(node):
    """The namespaces change nothing about the end of a pod."""
    said = node.directory / "said"
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook > /data/hook"]}}}
    await node.create(
        "web",
        f'trap "cat /data/hook > {said}; exit 3" TERM; while :; do sleep 0.1; done',
        container={"volumeMounts": [{"name": "tmp-data", "mountPath": "/data"}], "lifecycle": hook},
        volumes=VOLUMES[1:],
        terminationGracePeriodSeconds=60,
    )
    await node.until(running)
    await node.client.delete(PODS, "web", namespace="default")
    await node.gone()
    assert said.read_text() == "hook\n"


async def test_volumes_that_cannot_be_shown_are_told(node):
    """A volume over the directory in which the volumes themselves are."""
    volume = str(node.directory)
    mounts = [{"name": "tmp-data", "mountPath": volume}]
    await node.create(
        "web",
        "echo here > $VOLUME_TMP_DATA/file; exec sleep 1000",
        container={"volumeMounts": mounts},
        volumes=VOLUMES[1:],
    )
    await node.until(running)
    assert await node.execute(["sh", "-c", "cat $VOLUME_TMP_DATA/file"]) == (b"here\n", 0)
    async with asyncio.timeout(60):
        while "VolumesNotShown" not in await reasons(node):
            await asyncio.sleep(0.05)


async def test_probes_by_http_make_ready_and_restart(node):
    port = free_port()
    probe = {"httpGet": {"port": port}, "periodSeconds": 1, "failureThreshold": 2, "timeoutSeconds": 10}
    container = {
        "command": [sys.executable, "-c", SERVER],
        "env": [{"name": "PORT", "value": str(port)}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
        "startupProbe": {**probe, "failureThreshold": 120},
        "livenessProbe": probe,
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    await node.create("web", "", container=container, volumes=[{"name": "shared", "emptyDir": {}}])
    await node.until(ready)
    assert await node.execute(["sh", "-c", 'touch "$VOLUME_SHARED/sick"']) == (b"", 0)
    status = await node.until(restarted)
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 0


async def test_a_new_kubelet_takes_processes_over(node):
    await node.create("web", OBEDIENT)
    before = await node.until(ready)
    await node.kill()
    node.boot()
    await asyncio.sleep(2)
    after = await node.until(ready)
    assert after["containerStatuses"] == before["containerStatuses"]
    assert after["podIP"] == before["podIP"]
    assert await node.logs() == b"hello\n"
    await node.client.delete(PODS, "web", namespace="default")
    await node.gone()


async def test_it_hears_how_processes_have_ended_meanwhile(node, tmp_path):
    await node.create("web", f"{gated(tmp_path)} exit 7", restartPolicy="Never")
    await node.until(running)
    await node.kill()
    (tmp_path / "gate").touch()
    await asyncio.sleep(2)
    node.boot()
    status = await node.until(lambda status: status["phase"] == "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7


async def test_it_kills_what_was_deleted_meanwhile(node):
    made = await node.create("web", OBEDIENT)
    await node.until(running)
    await node.kill()
    await node.client.delete(PODS, "web", namespace="default", grace=0)
    node.boot()
    async with asyncio.timeout(60):
        while await node.runtime.refresh_pods():
            await asyncio.sleep(0.1)
    assert made["metadata"]["uid"] not in node.kubelet.pods.workers


async def test_what_no_process_can_do_is_told(node):
    await node.create("web", "", container={"command": ["no-such-program"]})
    status = await node.until(lambda status: "CreateContainerError" in str(status))
    assert status["phase"] == "Pending"
    assert "no-such-program" in status["containerStatuses"][0]["state"]["waiting"]["message"]


async def test_a_static_pod_outlives_its_mirror_pod_and_its_kubelet(tmp_path):
    """It is there as long as its manifest, whoever deletes what the API server has of it, or kills its process."""
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    node = RealNode(tmp_path, manifests=ManifestFiles(manifests, "n1"))
    await node.begin()
    try:
        container = {"name": "main", "image": "none", "command": ["sh", "-c", OBEDIENT]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container]}}
        (manifests / "web.json").write_text(json.dumps(pod))
        while not any(one.to_object()["metadata"]["name"] == "web-n1" for one in node.server.store.objects("pods")):
            await node.clock.sleep(0.05)
        await node.until(ready, "web-n1")
        [live] = await node.runtime.refresh_pods()
        await node.kill()
        await node.client.delete(PODS, "web-n1", namespace="default", grace=0)
        node.boot()
        while not any(one.to_object()["metadata"]["name"] == "web-n1" for one in node.server.store.objects("pods")):
            await node.clock.sleep(0.05)
        await node.until(ready, "web-n1")
        [same] = await node.runtime.refresh_pods()
        assert same.containers == live.containers, "it has not been restarted"
        assert await node.logs("web-n1") == b"hello\n"
        await node.runtime.kill_container(same.containers["main"])
        await node.until(restarted, "web-n1")
        (manifests / "web.json").unlink()
        await node.gone("web-n1")
    finally:
        await node.end()
