"""Kubeconfig files, the credentials they name, and the pod's own."""

import asyncio
import base64
import json
import os
import signal
import stat
import sys

import pytest
import yaml
from support.virtual_time.manual_clock import Hand

from lastcall import errors
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.credentials import Credential, FileCredentials
from lastcall.adapters.kube.exec_plugin import ExecConfig, ExecPlugin

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def config(cluster=None, user=None, **rest):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://example.com:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        **rest,
    }


def write(path, content):
    path.write_text(yaml.safe_dump(content))
    return path


def load(path, **rest):
    return kubeconfig.load_kubeconfig([path], Hand(), **rest)


async def test_a_token_and_inline_data(tmp_path):
    data = {"certificate-authority-data": encoded(PEM), "tls-server-name": "other"}
    access = load(write(tmp_path / "config", config(data, {"token": "secret"})))
    assert (access.endpoint.host, access.endpoint.port, access.endpoint.authority) == ("example.com", 6443, PEM)
    assert access.endpoint.server_name == "other"
    assert (await access.credentials.current_credential()).token == "secret"
    assert access.namespace == "default"


async def test_relative_paths_are_those_of_the_file(tmp_path):
    for name in ("ca.pem", "me.pem", "me.key", "token"):
        (tmp_path / name).write_text(f"{name}\n")
    user = {"client-certificate": "me.pem", "client-key": "me.key", "tokenFile": "token"}
    access = load(write(tmp_path / "config", config({"certificate-authority": "ca.pem"}, user)))
    assert access.endpoint.authority == "ca.pem\n"
    credential = await access.credentials.current_credential()
    assert (credential.token, credential.certificate, credential.key) == ("token", "me.pem\n", "me.key\n")


async def test_a_context_chooses_cluster_user_and_namespace(tmp_path):
    content = config()
    content["clusters"].append({"name": "c2", "cluster": {"server": "http://10.0.0.1:8080/k8s/"}})
    content["contexts"].append({"name": "there", "context": {"cluster": "c2", "user": "u", "namespace": "work"}})
    access = load(write(tmp_path / "config", content), context="there")
    assert (access.endpoint.secure, access.endpoint.prefix, access.namespace) == (False, "/k8s", "work")


async def test_several_files_are_one_and_the_first_counts(tmp_path):
    one = write(tmp_path / "one", {"current-context": "here", "users": [{"name": "u", "user": {"token": "first"}}]})
    two = write(tmp_path / "two", config(user={"token": "second"}))
    access = kubeconfig.find_access(Hand(), {"KUBECONFIG": f"{one}:{two}:{tmp_path / 'none'}"})
    assert (await access.credentials.current_credential()).token == "first"


async def test_basic_authentication_and_impersonation_become_headers(tmp_path):
    user = {"username": "a", "password": "b", "as": "bob", "as-uid": "7", "as-groups": ["x", "y"]}
    headers = (await load(write(tmp_path / "config", config(user=user))).credentials.current_credential()).headers
    assert headers == [
        ("authorization", f"Basic {encoded('a:b')}"),
        ("impersonate-user", "bob"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "x"),
        ("impersonate-group", "y"),
    ]


WRONG = {
    "no server": (config({"server": ""}), "cluster c: server: must be set"),
    "a proxy": (config({"proxy-url": "http://proxy"}), "proxy-url: http://proxy: proxies are not supported"),
    "trust and no trust": (
        config({"insecure-skip-tls-verify": True, "certificate-authority-data": encoded(PEM)}),
        "insecure-skip-tls-verify: cannot be true beside a certificate authority",
    ),
    "no base64": (config({"certificate-authority-data": "!"}), "certificate-authority-data: not base64"),
    "a certificate without key": (config(user={"client-certificate": "x"}), "both or neither must be set"),
    "an old plugin": (
        config(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
        "exec.apiVersion: client.authentication.k8s.io/v1alpha1: must be one of",
    ),
    "a plugin that asks": (
        config(
            user={
                "exec": {
                    "command": "x",
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "interactiveMode": "Always",
                }
            }
        ),
        "exec.interactiveMode: Always",
    ),
    "a removed provider": (config(user={"auth-provider": {"name": "gcp"}}), "auth-provider: was removed"),
    "no context": (config(**{"current-context": "nowhere"}), 'contexts: there is no "nowhere" (there is: here)'),
    "no current context": (config(**{"current-context": ""}), "current-context: is empty"),
    "an unknown user": (config(users=[]), 'users: there is no "u", which context "here" names'),
    "a list instead of a mapping": (config(clusters={}), "clusters"),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_file_and_field(tmp_path, content, said):
    path = write(tmp_path / "config", content)
    with pytest.raises(errors.InvalidInput) as caught:
        load(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_without_any_configuration_it_says_where_it_looked(tmp_path):
    with pytest.raises(errors.InvalidInput, match=str(tmp_path)):
        kubeconfig.find_access(Hand(), {"HOME": str(tmp_path)})
    with pytest.raises(errors.InvalidInput, match="cannot be read"):
        kubeconfig.find_access(Hand(), {}, kubeconfig=str(tmp_path / "none"))


async def test_the_pods_own_token_is_read_again(tmp_path):
    for name, text in (("token", "one"), ("ca.crt", PEM), ("namespace", "work\n")):
        (tmp_path / name).write_text(text)
    clock = Hand()
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    access = kubeconfig.in_cluster_access(clock, environ, directory=tmp_path)
    assert (access.endpoint.netloc, access.namespace) == ("[fd00::1]:6443", "work")
    assert (await access.credentials.current_credential()).token == "one"
    (tmp_path / "token").write_text("two")
    assert (await access.credentials.current_credential()).token == "one"
    clock.now += 61
    assert (await access.credentials.current_credential()).token == "two"


async def test_a_refused_token_is_read_again_at_once(tmp_path):
    path = tmp_path / "token"
    path.write_text("one")
    credentials = FileCredentials(Credential(), Hand(), token_file=path)
    one = await credentials.current_credential()
    assert not credentials.mark_refused(one)
    await credentials.current_credential()
    path.write_text("two")
    assert credentials.mark_refused(one)
    two = await credentials.current_credential()
    assert two.token == "two"
    assert credentials.mark_refused(one), "another request that was sent with the old one"
    assert not credentials.mark_refused(two)
    path.unlink()
    assert not credentials.mark_refused(two)
    with pytest.raises(errors.Unavailable, match="token"):
        await credentials.current_credential()


# -- plugins -----------------------------------------------------------------------------------------------------------

V1, BETA = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


def plugin(tmp_path, script, *, version=V1, clock=None, **rest):
    path = tmp_path / "plugin"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecPlugin(ExecConfig(version, str(path), **rest), clock or Hand())


def says(version=V1, **status):
    return f"print({json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})!r})"


@pytest.mark.parametrize("version", [V1, BETA])
async def test_a_plugin_gives_a_token(tmp_path, version):
    credential = await plugin(tmp_path, says(version, token="t"), version=version).current_credential()
    assert credential.token == "t"


async def test_a_plugin_gives_a_certificate(tmp_path):
    credential = await plugin(tmp_path, says(clientCertificateData="c", clientKeyData="k")).current_credential()
    assert (credential.token, credential.certificate, credential.key) == ("", "c", "k")


async def test_a_plugin_is_told_the_cluster_its_arguments_and_its_environment(tmp_path):
    script = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "said = ' '.join([*sys.argv[1:], os.environ['MINE'], info['spec']['cluster']['server'], info['apiVersion']])\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential', 'status': {'token': said}}))"
    )
    asked = plugin(tmp_path, script, args=["a", "b"], env={"MINE": "m"}, cluster={"server": "https://s"})
    assert (await asked.current_credential()).token == f"a b m https://s {V1}"


async def test_a_plugin_is_asked_again_when_its_credential_ends_or_is_refused(tmp_path):
    count = tmp_path / "count"
    count.write_text("")
    script = (
        f"open({str(count)!r}, 'a').write('x')\n"
        f"number = len(open({str(count)!r}).read())\n"
        "status = {'token': str(number), 'expirationTimestamp': '1970-01-01T00:10:00Z'}\n"
        f"print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': status}}))"
    )
    clock = Hand()
    asked = plugin(tmp_path, script, clock=clock)
    assert [(await asked.current_credential()).token for _ in range(2)] == ["1", "1"]
    clock.now = 595
    assert (await asked.current_credential()).token == "2"
    clock.now = 0
    second = await asked.current_credential()
    assert asked.mark_refused(second)
    assert (await asked.current_credential()).token == "3"
    assert asked.mark_refused(second), "another request that was sent with the old one"
    assert (await asked.current_credential()).token == "3"


async def test_a_plugin_is_asked_once_for_all_and_goes_on_when_somebody_gives_up(tmp_path):
    count = tmp_path / "count"
    asked = plugin(tmp_path, f"open({str(count)!r}, 'a').write('x'); time.sleep(1)\n{says(token='t')}")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await asked.current_credential()
    assert [one.token for one in await asyncio.gather(asked.current_credential(), asked.current_credential())] == [
        "t",
        "t",
    ]
    assert count.read_text() == "x"


FAULTS = {
    "it fails": ("sys.exit('no ticket')", errors.Unavailable, "failed with 1: no ticket"),
    "no JSON": ("print('hello')", errors.NotPermitted, "gave no ExecCredential"),
    "another version": (says(BETA, token="t"), errors.NotPermitted, f"instead of ExecCredential of {V1}"),
    "nothing in it": (says(), errors.NotPermitted, "neither a token nor a certificate"),
    "no time": (says(token="t", expirationTimestamp="soon"), errors.NotPermitted, "gave no ExecCredential"),
}


@pytest.mark.parametrize(("script", "error", "said"), FAULTS.values(), ids=FAULTS)
async def test_a_plugin_that_goes_wrong_says_how(tmp_path, script, error, said):
    with pytest.raises(error, match=said):
        await plugin(tmp_path, script).current_credential()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_plugin_that_writes_too_much_is_ended(tmp_path, stream):
    pid = tmp_path / "pid"
    writes = f"for _ in range(20): sys.{stream}.write('x' * 2**20)"  # no more, for whoever reads all of it
    script = f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n{writes}\ntime.sleep(100)"
    with pytest.raises(errors.Unavailable, match="gave an output of more than 10 MiB"):
        await plugin(tmp_path, script, timeout=20).current_credential()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_a_long_output_is_read_whole(tmp_path):
    token = "x" * 2**20
    assert (await plugin(tmp_path, says(token=token)).current_credential()).token == token


async def test_a_plugin_is_given_up_though_a_child_keeps_its_pipes(tmp_path):
    child = "import subprocess\nchild = subprocess.Popen(['sleep', '100'])\n"
    pid = tmp_path / "pid"
    hangs = f"{child}open({str(pid)!r}, 'w').write(str(child.pid))\ntime.sleep(100)"
    try:
        with pytest.raises(errors.Unavailable, match="said nothing for"):
            await asyncio.wait_for(plugin(tmp_path, hangs, timeout=10).current_credential(), 60)
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


async def test_a_plugin_that_is_missing_or_hangs(tmp_path):
    with pytest.raises(errors.NotPermitted, match="get it there"):
        await ExecPlugin(ExecConfig(V1, str(tmp_path / "none"), hint="get it there"), Hand()).current_credential()
    with pytest.raises(errors.Unavailable, match="said nothing for"):
        await plugin(tmp_path, "time.sleep(60)", timeout=0.5).current_credential()


async def test_the_exec_part_of_a_file(tmp_path):
    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin" / "plugin"
    script = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "status = {'token': json.dumps(info['spec']['cluster'])}\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential', 'status': status}))"
    )
    path.write_text(f"#!{sys.executable}\nimport json, os\n{script}\n")
    path.chmod(0o700)
    part = {"command": "./bin/plugin", "apiVersion": V1, "provideClusterInfo": True, "interactiveMode": "Never"}
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = {"certificate-authority-data": encoded(PEM), "extensions": [extension]}
    access = load(write(tmp_path / "config", config(cluster, {"exec": part})))
    told = json.loads((await access.credentials.current_credential()).token)
    assert told == {
        "server": "https://example.com:6443",
        "certificate-authority-data": encoded(PEM),
        "config": {"audience": "a"},
    }
