"""Whether an agent's identities suffice, asked of the lab's API server with RBAC and the Node authorizer."""

import asyncio
import logging
from random import Random

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.credentials import Credential, FileCredentials, StaticCredentials
from lastcall.adapters.kube.identity_check import find_problems, node_rights, own_rights
from lastcall.adapters.kube.resources import NAMESPACES, NODES, dict_resource
from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.manifests.agent import agent_access_objects
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.wiring import identities
from lastcall.wiring.identities import Identity, IdentityWatch
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN, UserInfo
from lastcall_lab.control_plane.identities import kubelet_identity

AGENT = UserInfo(
    f"system:serviceaccount:{SYSTEM_NAMESPACE}:lastcall-agent", ("system:serviceaccounts", "system:authenticated")
)
NODE = "n1"
VALID = StaticCredentials(Credential(token="t"))
NODE_LOST = (
    "it may not patch nodes/status: the Node does not become NotReady at a shutdown",
    "it may not delete pods: replacements of its pods do not start at a shutdown",
)
OWN_LOST = (
    "it may not patch nodeshutdowns: a shutdown is not recorded at the API server",
    "it may not list endpointslices: no SIGTERM waits for Services",
)


class World:
    def __init__(self):
        self.server = ApiServer(SystemClock(), Random(1), authorization=AuthorizationMode.RBAC)
        self.admin = self.client(ADMIN)

    def client(self, user):
        return Client(InProcessTransport(self.server, user), manager="test")

    async def grant(self, *, own_node):
        await self.admin.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await self.admin.create(NODES, {"metadata": {"name": NODE}})
        for obj in agent_access_objects(own_node=own_node):
            group, _, version = obj["apiVersion"].rpartition("/")
            plural = f"{obj['kind'].lower()}s".replace("policys", "policies")
            where = obj["metadata"].get("namespace", "")
            await self.admin.create(dict_resource(group, version, plural), obj, namespace=where)

    async def problems(self, user, rights, credentials=VALID):
        return await find_problems(self.client(user), credentials, rights, node=NODE)


async def test_the_kubelets_identity_suffices_for_the_node_alone():
    world = World()
    await world.grant(own_node=False)
    assert await world.problems(kubelet_identity(NODE), node_rights(NODE)) == ()
    assert await world.problems(kubelet_identity(NODE), own_rights(NODE)) == OWN_LOST


@pytest.mark.parametrize(("own_node", "lost"), [(True, ()), (False, NODE_LOST)])
async def test_the_service_account_suffices_for_both_with_its_policy(own_node, lost):
    world = World()
    await world.grant(own_node=own_node)
    assert await world.problems(AGENT, own_rights(NODE)) == ()
    assert await world.problems(AGENT, node_rights(NODE)) == lost


async def test_an_identity_without_any_right():
    world = World()
    found = await world.problems(UserInfo("nobody", ("system:authenticated",)), own_rights(NODE))
    assert found == OWN_LOST
    [found] = await world.problems(UserInfo("nobody", ()), own_rights(NODE))
    assert found.startswith("the API server refuses it: ")


async def test_a_credential_that_is_gone_is_a_problem_and_a_silent_server_is_none(tmp_path):
    world = World()
    gone = FileCredentials(Credential(), SystemClock(), token_file=tmp_path / "token")
    [found] = await world.problems(AGENT, own_rights(NODE), gone)
    assert found.startswith(f"it has no credential: {tmp_path}/token cannot be read")

    class Silent:
        async def request(self, *_, **__):
            raise Unavailable("the connection broke")

    with pytest.raises(Unavailable):
        await find_problems(Client(Silent()), VALID, own_rights(NODE), node=NODE)


async def test_a_lost_right_is_logged_once_and_shown_until_it_is_back(monkeypatch, caplog):
    monkeypatch.setattr(identities, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(identities, "AGAIN_SECONDS", 0.01)
    world, shown = World(), []
    await world.grant(own_node=False)
    own = Identity(world.client(AGENT), VALID, own_rights(NODE))
    find = {"own": lambda: own, "node": lambda: None}
    watch = IdentityWatch(find, lambda name, ok: shown.append((name, ok)), node=NODE, clock=SystemClock())
    bindings = dict_resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
    binding = await world.admin.get(bindings, "lastcall-agent")

    async def until_shown(value):
        shown.clear()
        async with asyncio.timeout(60):
            while ("own", value) not in shown:
                await asyncio.sleep(0.01)

    with caplog.at_level(logging.INFO):
        running = asyncio.create_task(watch.run())
        await until_shown(True)
        await world.admin.delete(bindings, "lastcall-agent")
        await until_shown(False)
        shown.clear()
        await until_shown(False)
        del binding["metadata"]["resourceVersion"], binding["metadata"]["uid"]
        await world.admin.create(bindings, binding)
        await until_shown(True)
        await cancel_and_wait(running)
    assert ("node", False) in shown, "there is none"
    lines = [one.getMessage() for one in caplog.records if one.name == "lastcall.wiring.identities"]
    assert lines == [
        "the node identity for the API server does not suffice: there is none",
        f"the own identity for the API server does not suffice: {'; '.join(OWN_LOST)}",
        "the own identity for the API server suffices again",
    ]
