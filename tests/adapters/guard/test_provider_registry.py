"""Providers by their names."""

from importlib.metadata import EntryPoint

import pytest

from lastcall.adapters.guard.provider_registry import GROUP, ProviderRegistry
from lastcall.errors import InvalidInput, LastcallError
from lastcall.model.guard_policy import GuardPolicy, GuardPolicyMeta, GuardSpec

MADE = []


class Factory:
    def __init__(self):
        MADE.append(self)

    def check_settings(self, settings):
        return [f"spec.provider.mine.x: {settings['x']}: wrong"] if settings.get("x") else []

    def make_provider(self, settings, access):
        return settings, access


def registry(*entries):
    installed = [EntryPoint(name, value, GROUP) for name, value in entries]
    return ProviderRegistry(lambda namespace: f"access to {namespace}", installed=installed)


def policy(provider):
    return GuardPolicy(metadata=GuardPolicyMeta(name="p", namespace="shop"), spec=GuardSpec(provider=provider))


def mine():
    import sys

    sys.modules["the_provider_of_a_test"] = sys.modules[__name__]
    return registry(("mine", "the_provider_of_a_test:Factory"), ("broken", "no.such.module:X"))


def test_the_installed_ones():
    found = ProviderRegistry(lambda namespace: None)
    assert {"exec", "http", "redis", "redis-sentinel"} <= set(found.names)
    for name in found.names:
        assert found.check_provider({name: {"no-such-field": 1}})


def test_a_provider_with_its_settings_and_the_access_of_its_namespace():
    found, before = mine(), len(MADE)
    assert found.make_policy_provider(policy({"mine": {"y": 1}})) == ({"y": 1}, "access to shop")
    found.make_policy_provider(policy({"mine": {}}))
    assert len(MADE) == before + 1


def test_an_unknown_name():
    [said] = mine().check_provider({"mini": {}})
    assert said == 'spec.provider: "mini": no provider has this name; did you mean mine? Known are broken, mine'
    [said] = registry().check_provider({"redis": {}})
    assert said.endswith("Known are none")


def test_not_one_provider():
    assert "must be one provider" in mine().check_provider({})[0]
    assert "must be one provider" in mine().check_provider({"mine": {}, "broken": {}})[0]


def test_wrong_settings_name_the_policy():
    with pytest.raises(InvalidInput, match=r"^GuardPolicy shop/p: spec.provider.mine.x: 3: wrong$"):
        mine().make_policy_provider(policy({"mine": {"x": 3}}))


def test_what_cannot_be_loaded_disturbs_no_other():
    found = mine()
    with pytest.raises(LastcallError, match='the provider "broken" cannot be loaded: ModuleNotFoundError'):
        found.check_provider({"broken": {}})
    assert found.check_provider({"mine": {}}) == []
