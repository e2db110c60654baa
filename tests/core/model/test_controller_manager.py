"""How a kube-controller-manager was started, as far as its attach-detach controller goes."""

import pytest

from lastcall.model.controller_manager import ControllerManager, managers_in_pod

SAFE = "--disable-force-detach-on-timeout"


def manager(*arguments):
    return ControllerManager(where="here", arguments=("kube-controller-manager", *arguments))


@pytest.mark.parametrize(
    ("arguments", "detaches"),
    [
        ([], True),
        ([SAFE], False),
        ([f"{SAFE}=true"], False),
        ([f"{SAFE}=T"], False),
        ([f"{SAFE}=yes"], True),
        ([f"{SAFE}=false"], True),
        ([SAFE, f"{SAFE}=false"], True),
        ([f"{SAFE}=false", SAFE], False),
        (["--disable_force_detach_on_timeout"], False),
        (["disable-force-detach-on-timeout"], True),
        (["--controllers=*,-persistentvolume-attach-detach-controller"], False),
        (["--controllers=*,-attachdetach"], False),
        (["--controllers=nodelifecycle"], False),
        (["--controllers=nodelifecycle,attachdetach"], True),
        (["--controllers=*,bootstrapsigner"], True),
    ],
)
def test_whether_it_detaches_because_time_has_passed(arguments, detaches):
    assert manager(*arguments).detaches_on_timeout is detaches


@pytest.mark.parametrize(
    ("container", "found"),
    [
        ({"command": ["kube-controller-manager", SAFE]}, 1),
        ({"command": ["/usr/local/bin/kube-controller-manager"], "args": [SAFE]}, 1),
        ({"args": ["kube-controller-manager", SAFE]}, 1),
        ({"command": ["kube-apiserver"]}, 0),
        ({"image": "kube-controller-manager"}, 0),
        ({"command": None, "args": None}, 0),
    ],
)
def test_it_is_known_by_its_program(container, found):
    managers = list(managers_in_pod({"containers": [container, {"command": ["pause"]}]}, "here"))
    assert len(managers) == found
    assert not any(one.detaches_on_timeout for one in managers)


@pytest.mark.parametrize("spec", [{}, {"containers": None}, {"containers": "none"}])
def test_a_pod_without_containers_has_none(spec):
    assert list(managers_in_pod(spec, "here")) == []
