"""Admission webhooks: redirections, webhooks that ask for time, and answers that are no JSON."""

import pytest
from support.conformance.api_client import causes
from support.conformance.objects import config_map

from lastcall.adapters.kube.resources import CONFIG_MAPS

source = pytest.mark.source
GO = "https://pkg.go.dev/net/http#Client"
RETRY = "staging/src/k8s.io/client-go/rest/with_retry.go"
DECODER = "staging/src/k8s.io/apimachinery/pkg/runtime/serializer/recognizer/recognizer.go"

ONLY = {"matchConditions": [{"name": "only", "expression": "object.metadata.name == 'm'"}]}
"""Only the object of the case is asked about, not those by which it finds out whether its webhooks are known."""


def redirection(hooks, code, name):
    """To another webhook of the case."""
    return {"status": code, "headers": {"location": f"{hooks.url}/{hooks.paths[name]}"}, "raw": b"moved"}


@source(GO)
@pytest.mark.parametrize("code", [307, 308])
async def test_a_redirection_that_keeps_the_method(api, hooks, code):
    """The review is sent once more, and the second answer counts."""
    hooks.names.append("there")
    await hooks.answer(hooks.said("moved"), moved=lambda _: redirection(hooks, code, "there"))
    await api.create(CONFIG_MAPS, config_map())
    assert [review["name"] for review in hooks.reviews("there")] == ["m"]


@source(GO)
@pytest.mark.parametrize("code", [301, 302, 303])
async def test_a_redirection_that_becomes_a_get(api, hooks, code):
    """Nothing is sent to the other place, so its answer is to no review."""
    hooks.names.append("there")
    await hooks.answer(hooks.said("moved", **ONLY), moved=lambda _: redirection(hooks, code, "there"))
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert "received invalid webhook response: expected response.uid=" in status["message"]
    assert [review["method"] for review in hooks.reviews("there")] == ["GET"]


@source(GO)
async def test_redirections_without_end(api, hooks):
    """The tenth is not followed."""
    await hooks.answer(hooks.said("round"), round=lambda _: redirection(hooks, 307, "round"))
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert "stopped after 10 redirects" in status["message"]
    assert len(hooks.reviews("round")) == 10


@source(RETRY)
@pytest.mark.parametrize("code", [429, 500, 503])
async def test_a_webhook_that_asks_for_time(api, hooks, code):
    """With a number of seconds in Retry-After it is called again."""
    answers = iter([{"status": code, "headers": {"retry-after": "0"}, "raw": b"later"}])
    await hooks.answer(hooks.said("busy", **ONLY), busy=lambda _: next(answers, {}))
    await api.create(CONFIG_MAPS, config_map())
    assert len(hooks.reviews("busy")) == 2


@source(RETRY)
@pytest.mark.parametrize(("code", "header"), [(404, "0"), (429, ""), (503, "Wed, 21 Oct 2026 07:28:00 GMT")])
async def test_a_refusal_that_names_no_seconds(api, hooks, code, header):
    """The call has failed, and so has one with another status."""
    headers = {"retry-after": header} if header else {}
    await hooks.answer(hooks.said("busy"), busy={"status": code, "headers": headers, "raw": b"later"})
    await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert len(hooks.reviews("busy")) == 1


@source(RETRY)
async def test_a_webhook_that_asks_for_time_for_ever(api, hooks):
    """It is called eleven times."""
    await hooks.answer(
        hooks.said("busy", timeoutSeconds=30), busy={"status": 429, "headers": {"retry-after": "0"}, "raw": b"later"}
    )
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert "the server has received too many requests and has asked us to try again later" in status["message"]
    assert len(hooks.reviews("busy")) == 11


@source(RETRY)
async def test_a_webhook_that_asks_for_more_time_than_it_has(api, hooks):
    """The time of the webhook ends the waiting."""
    later = {"status": 429, "headers": {"retry-after": "9"}, "raw": b"later"}
    await hooks.answer(hooks.said("busy", timeoutSeconds=1), busy=later)
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert "context deadline exceeded" in status["message"]


@source(GO)
@source(RETRY)
@pytest.mark.parametrize(
    ("code", "headers"),
    [(307, {"location": "https://[no-host/"}), (429, {"retry-after": "9" * 400}), (429, {"retry-after": "9" * 5000})],
    ids=["no URL", "no number of 64 bits", "a very long number"],
)
async def test_a_header_that_makes_no_sense(api, hooks, code, headers):
    """The call has failed as any other: a webhook that fails open is passed over."""
    odd = {"status": code, "headers": headers, "raw": b"odd"}
    await hooks.answer(hooks.said("odd", failurePolicy="Ignore"), odd=odd)
    await api.create(CONFIG_MAPS, config_map())
    assert len(hooks.reviews("odd")) == 1


@source(DECODER)
async def test_an_answer_in_yaml(api, hooks):
    """It counts as one in JSON."""

    def said(review):
        text = (
            f"apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {{uid: {review['uid']}, allowed: true}}"
        )
        return {"raw": text.encode(), "headers": {"content-type": "text/plain"}}

    await hooks.answer(hooks.said("yaml"), yaml=said)
    await api.create(CONFIG_MAPS, config_map())


@source(DECODER)
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"OK", "json: cannot unmarshal string into Go value of type struct"),
        (b"- 1", "json: cannot unmarshal array into Go value of type struct"),
        (b"a: b: c", "yaml: mapping values are not allowed in this context"),
        (b"<p>x: y</p>", "received invalid webhook response: webhook response was absent"),
        (b"{bad", "invalid character 'b' looking for beginning of object key string"),
    ],
)
async def test_an_answer_that_is_text(api, hooks, raw, why):
    """What does not begin with a brace is read as YAML, and is no review."""
    await hooks.answer(hooks.said("text"), text={"raw": raw})
    status = await api.create(CONFIG_MAPS, config_map()).refused(500, "InternalError")
    assert causes(status) == [(None, None)]
    assert why in status["message"]
