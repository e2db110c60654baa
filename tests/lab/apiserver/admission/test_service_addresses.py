"""Which addresses Services get: what is taken is what the Services have that are there."""

import pytest
from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import SERVICES
from lastcall.errors import LastcallError
from lastcall_lab.apiserver.admission.service_addresses import _ServiceIndex
from lastcall_lab.apiserver.storage.store import StorageKey, Store


def put(store, name, *addresses):
    key = StorageKey("services", "n", name)
    old = store.get(key)
    obj = {"metadata": {"name": name}, "spec": {"clusterIPs": list(addresses)}}
    store.put(key, obj, expected=old.revision if old else None)


def remove(store, name):
    key = StorageKey("services", "n", name)
    store.delete(key, store.get(key).to_object(), expected=store.get(key).revision)


def service(name):
    return {"metadata": {"name": name, "namespace": "n"}}


@pytest.mark.parametrize("compact", [False, True])
def test_what_others_have_is_taken_as_it_is_now(compact):
    store = Store()
    put(store, "a", "10.96.0.1")
    services = _ServiceIndex(store)
    assert set(services.addresses_of_others(service("b"))) == {"10.96.0.1"}
    put(store, "b", "10.96.0.2")
    put(store, "a", "10.96.0.3")
    put(store, "c", "10.96.0.4")
    remove(store, "c")
    if compact:
        store.compact(store.revision - 1)
    assert set(services.addresses_of_others(service("c"))) == {"10.96.0.2", "10.96.0.3"}
    assert set(services.addresses_of_others(service("a"))) == {"10.96.0.2"}
    remove(store, "b")
    assert set(services.addresses_of_others(service("c"))) == {"10.96.0.3"}
    assert [key.name for key in services.specs()] == ["a"]


@on_node()
async def test_an_address_is_free_again_when_its_service_is_gone(node):
    def wanted(name):
        return {"metadata": {"name": name}, "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 80}]}}

    await node.client.create(SERVICES, wanted("a"), namespace="default")
    with pytest.raises(LastcallError, match="provided IP is already allocated"):
        await node.client.create(SERVICES, wanted("b"), namespace="default")
    await node.client.delete(SERVICES, "a", namespace="default")
    made = await node.client.create(SERVICES, wanted("b"), namespace="default")
    assert made["spec"]["clusterIPs"] == ["10.96.7.7"]
