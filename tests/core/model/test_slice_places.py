"""How slices of all kinds name a pod."""

import pytest

from lastcall.model.slice_places import HEADLESS, OTHER_PROXY, SERVICE_NAME, SlicePlace, find_places, merge_places
from lastcall.model.traffic import EndpointConditions, EndpointSlice, PodReference, SliceEndpoint, SliceMetadata

SHOP = {SERVICE_NAME: "shop"}


def one_slice(name, labels, *endpoints):
    return EndpointSlice(
        metadata=SliceMetadata(name=name, labels=labels),
        endpoints=tuple(
            SliceEndpoint(
                target_ref=PodReference(kind="Pod", uid=uid),
                conditions=EndpointConditions(
                    ready=ready, terminating=terminating, serving=serving[0] if serving else False
                ),
            )
            for uid, ready, terminating, *serving in endpoints
        ),
    )


@pytest.mark.parametrize(
    ("ready", "terminating", "place"),
    [
        (True, None, SlicePlace(ready=("a",), proxied=("a",))),
        (None, None, SlicePlace(ready=("a",), proxied=("a",))),
        (True, False, SlicePlace(ready=("a",), proxied=("a",))),
        (False, None, SlicePlace(proxied=("a",))),
        (False, True, SlicePlace(proxied=("a",))),
        (True, True, SlicePlace(published=("a",), proxied=("a",))),
    ],
)
def test_conditions(ready, terminating, place):
    assert find_places([one_slice("a", SHOP, ("u", ready, terminating))], ["u"]) == {"u": place}


@pytest.mark.parametrize(
    ("labels", "proxied"),
    [
        (SHOP, True),
        (None, False),
        ({}, False),
        ({**SHOP, HEADLESS: ""}, False),
        ({**SHOP, OTHER_PROXY: "cilium"}, False),
    ],
)
def test_which_slices_kube_proxy_follows(labels, proxied):
    [place] = find_places([one_slice("a", labels, ("u", False, True))], ["u"]).values()
    assert (place.proxied, place.others) == ((("a",), ()) if proxied else ((), ("a",)))


LEAVES = ("u", False, True, True)


@pytest.mark.parametrize(
    ("slices", "serving"),
    [
        ([one_slice("a", SHOP, LEAVES)], ("a",)),
        ([one_slice("a", SHOP, ("u", False, True, None))], ("a",)),
        ([one_slice("a", SHOP, LEAVES), one_slice("b", SHOP, LEAVES)], ("a", "b")),
        ([one_slice("a", SHOP, LEAVES), one_slice("b", {SERVICE_NAME: "cart"}, ("v", True, None))], ("a",)),
        ([one_slice("a", SHOP, LEAVES, ("v", False, None, False))], ("a",)),
        ([one_slice("a", SHOP, LEAVES, ("v", True, None))], ()),
        ([one_slice("a", SHOP, LEAVES), one_slice("b", SHOP, ("v", None, None))], ()),
        ([one_slice("a", SHOP, LEAVES, ("v", True, True))], ()),
        ([one_slice("a", SHOP, ("u", False, True, False))], ()),
        ([one_slice("a", SHOP, ("u", False, False, True))], ()),
        ([one_slice("a", {**SHOP, HEADLESS: ""}, LEAVES)], ()),
        ([one_slice("a", None, LEAVES)], ()),
    ],
)
def test_kube_proxy_sends_to_what_terminates_while_its_service_has_nothing_ready(slices, serving):
    assert find_places(slices, ["u"])["u"].serving == serving


def test_what_lasts_until_the_pod_is_gone():
    assert SlicePlace(published=("q", "r"), serving=("p", "q"), proxied=("s",)).lasting == ("p", "q", "r")


def test_every_slice_counts_until_the_last():
    slices = [
        one_slice("b", SHOP, ("u", False, True), ("v", True, None)),
        one_slice("custom", None, ("u", True, None)),
        EndpointSlice(metadata=SliceMetadata(name="empty")),
    ]
    found = find_places(slices, ["u", "w"])
    assert found == {"u": SlicePlace(ready=("custom",), proxied=("b",), others=("custom",)), "w": SlicePlace()}


def test_slices_that_have_named_a_pod_are_remembered():
    before = SlicePlace(ready=("a",), proxied=("a",), others=("h",))
    assert merge_places(before, SlicePlace()) == SlicePlace(proxied=("a",), others=("h",))
