"""The guard's webhooks are withdrawn and come back exactly, whoever writes the configuration meanwhile."""

from copy import deepcopy

import pytest

from lastcall.manifests.guard_webhooks import FAIL, guard_webhook_configuration, service_client, url_client
from lastcall.model.guard_webhooks import (
    CopyState,
    forget_copy,
    put_back_webhooks,
    read_webhook_state,
    replace_withdrawn_webhooks,
    withdraw_webhooks,
    withdrawn_webhooks,
)
from lastcall.names import GUARD_WITHDRAWN

OWNERS = [{"manager": "helm", "operation": "Apply"}]
OTHERS = [{"manager": "lastcall-controller", "operation": "Update"}]


def installed(**how):
    """As it is applied: without what the guard writes."""
    found = guard_webhook_configuration(service_client("lastcall-system"), failure_policy=FAIL, **how)
    return deepcopy({**found, "metadata": {**found["metadata"], "annotations": {"a": "b"}, "managedFields": OWNERS}})


def completed(configuration=None):
    """With path and authority, and a field that lastcall does not know."""
    found = configuration or installed()
    for one in found["webhooks"]:
        one["clientConfig"]["caBundle"] = "UEVN"
        one["clientConfig"]["service"]["path"] = "/review/token"
        one["later"] = {"of": "Kubernetes", "ä": None}
    return found


def written(configuration):
    """As the API server has it after another client's write: the fields have other owners."""
    return {**configuration, "metadata": {**configuration["metadata"], "managedFields": OTHERS}}


def test_what_is_withdrawn_comes_back_exactly():
    found = completed()
    withdrawn = withdraw_webhooks(found)
    assert withdrawn["webhooks"] == []
    assert withdrawn["metadata"]["annotations"]["a"] == "b"
    back = put_back_webhooks(written(withdrawn))
    assert back["webhooks"] == found["webhooks"]
    assert GUARD_WITHDRAWN in back["metadata"]["annotations"], "until the owners are back, too"
    assert forget_copy(written(back)) == found


def test_webhooks_that_are_applied_again_keep_what_the_guard_wrote():
    """They replace the copy: whoever writes them does it later."""
    old = withdraw_webhooks(completed())
    again = installed()
    again["webhooks"][0]["timeoutSeconds"] = 7
    mixed = {**written(old), "webhooks": again["webhooks"]}
    for found in (put_back_webhooks(mixed)["webhooks"], withdrawn_webhooks(withdraw_webhooks(mixed))):
        assert found[0]["timeoutSeconds"] == 7
        for one in found:
            assert one["clientConfig"]["caBundle"] == "UEVN"
            assert one["clientConfig"]["service"]["path"] == "/review/token"
    assert forget_copy(mixed)["metadata"]["managedFields"] == OTHERS, "the owners of before are those of other webhooks"


@pytest.mark.parametrize("other", [service_client("elsewhere"), url_client("https://guard.example/review")])
def test_webhooks_at_another_place_get_nothing_of_the_copy(other):
    mixed = {**withdraw_webhooks(completed()), "webhooks": guard_webhook_configuration(other)["webhooks"]}
    assert put_back_webhooks(mixed)["webhooks"] == mixed["webhooks"]


def test_authority_and_path_of_an_applied_webhook_win():
    again = completed()
    again["webhooks"][0]["clientConfig"] |= {"caBundle": "bmV3"}
    again["webhooks"][0]["clientConfig"]["service"]["path"] = "/other"
    mixed = {**withdraw_webhooks(completed()), "webhooks": again["webhooks"]}
    assert put_back_webhooks(mixed)["webhooks"] == again["webhooks"]


def test_the_copy_can_be_changed():
    withdrawn = withdraw_webhooks(completed())
    wanted = [{**one, "timeoutSeconds": 9} for one in withdrawn_webhooks(withdrawn)]
    changed = replace_withdrawn_webhooks(withdrawn, wanted)
    assert withdrawn_webhooks(changed) == wanted
    assert changed["webhooks"] == []
    assert forget_copy(put_back_webhooks(written(changed)))["metadata"]["managedFields"] == OWNERS


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "7", "{}", '{"webhooks":[]}', '{"webhooks":[7]}', '{"webhooks":[{"name":"a"}]}']
)
def test_a_copy_that_cannot_be_read(text):
    found = {**installed(), "webhooks": []}
    found["metadata"]["annotations"][GUARD_WITHDRAWN] = text
    assert read_webhook_state(found).copy is CopyState.UNREADABLE
    assert withdrawn_webhooks(found) == []
    assert GUARD_WITHDRAWN not in forget_copy(found)["metadata"]["annotations"]
    assert forget_copy(found)["metadata"]["managedFields"] == OWNERS


def test_the_state():
    found = installed()
    state = read_webhook_state(found)
    assert (state.in_force, state.is_behind_service, state.copy) == (True, True, CopyState.NONE)
    withdrawn = read_webhook_state(withdraw_webhooks(found))
    assert (withdrawn.in_force, withdrawn.copy) == (False, CopyState.WHOLE)
    elsewhere = {**found, "webhooks": guard_webhook_configuration(url_client("https://guard.example"))["webhooks"]}
    assert not read_webhook_state(elsewhere).is_behind_service
    assert not read_webhook_state({"metadata": {}}).in_force, "as it was created by hand"
