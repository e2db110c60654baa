"""Events, in both of their groups."""

import pytest
from support.conformance.api_client import causes
from support.conformance.objects import meta

from lastcall.adapters.kube.resources import EVENTS, dict_resource

source = pytest.mark.source
VALIDATION = "pkg/apis/core/validation/events.go"
CONVERSION = "pkg/apis/events/v1/conversion.go"
NEW = dict_resource("events.k8s.io", "v1", "events")


def old(api, name="e", **more):
    """An event of the core group."""
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace}
    return {**meta(name), "involvedObject": about, "reason": "R", "message": "M", "type": "Normal", **more}


def new(api, name="e", **more):
    """An event of events.k8s.io."""
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace}
    whole = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "A",
        "reason": "R",
        "regarding": about,
        "type": "Normal",
    }
    return {**meta(name), **whole, **more}


@source(VALIDATION)
async def test_an_event_of_the_core_group_needs_little(api):
    """Reason, type and source may be missing."""
    about = {"kind": "Pod", "name": "p", "namespace": api.namespace}
    made = await api.create(EVENTS, {**meta("e"), "involvedObject": about})
    assert made["involvedObject"] == about


@source(VALIDATION)
async def test_an_event_lies_beside_what_it_is_about(api):
    """Another namespace is refused."""
    about = {"kind": "Pod", "name": "p", "namespace": "other"}
    status = await api.create(EVENTS, old(api, involvedObject=about)).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "involvedObject.namespace")]


@source(VALIDATION)
async def test_events_about_the_cluster_lie_in_default(api):
    """What has no namespace is told in the namespace default."""
    about = {"kind": "Node", "name": "n"}
    await api.create(EVENTS, old(api, involvedObject=about)).refused(422, "Invalid")


@source(VALIDATION)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("reportingController", ""),
        ("reportingController", "a b"),
        ("reportingInstance", ""),
        ("action", ""),
        ("reason", ""),
        ("type", "Loud"),
        ("note", "x" * 1025),
        ("reason", "x" * 129),
        ("eventTime", None),
    ],
)
async def test_new_events_are_strict(api, field, value):
    """Each field that they need, and its length."""
    status = await api.create(NEW, new(api, **{field: value})).refused(422, "Invalid")
    assert causes(status)


@source(CONVERSION)
async def test_one_event_in_two_groups(api):
    """The same object under other names."""
    made = await api.create(NEW, new(api, note="N"))
    found = await api.get(EVENTS, "e")
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert found["involvedObject"] == made["regarding"]
    assert (found["message"], found["reportingComponent"]) == ("N", "example.com/c")


@source(CONVERSION)
async def test_old_fields_are_shown_as_deprecated(api):
    """count and the two times."""
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z", "count": 4}
    await api.create(EVENTS, old(api, source={"component": "c"}, **times))
    found = await api.get(NEW, "e")
    assert found["deprecatedCount"] == 4
    assert found["deprecatedFirstTimestamp"] == times["firstTimestamp"]
    assert found["deprecatedSource"] == {"component": "c"}


@source(VALIDATION)
async def test_a_series_is_counted(api):
    """A patch of count, as recorders send it."""
    await api.create(EVENTS, old(api, count=1))
    assert (await api.patch(EVENTS, "e", {"count": 2}))["count"] == 2


@source(VALIDATION)
async def test_a_new_event_hardly_changes(api):
    """Only its series may."""
    await api.create(NEW, new(api))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    assert (await api.patch(NEW, "e", {"series": series}))["series"]["count"] == 2
    status = await api.patch(NEW, "e", {"reason": "Other"}).refused(422, "Invalid")
    assert ("FieldValueInvalid", "reason") in causes(status)


@source("pkg/registry/core/event/strategy.go")
async def test_events_are_deleted_by_what_they_are_about(api):
    """A collection by field selector."""
    for name in ("a", "b"):
        about = {"kind": "Pod", "name": name, "namespace": api.namespace}
        await api.create(EVENTS, old(api, name, involvedObject=about))
    await api.ask("DELETE", api.at(EVENTS), fieldSelector="involvedObject.name=a")
    assert await api.names(EVENTS) == ["b"]


OLD_FIELDS = ["involvedObject.name=p", "reportingComponent=example.com/c", "source=example.com/c", "reason=R"]
NEW_FIELDS = ["regarding.name=p", "reportingController=example.com/c", "type=Normal", "metadata.name=e"]


@source(CONVERSION)
@pytest.mark.parametrize("asked", OLD_FIELDS)
async def test_a_field_under_the_old_names(api, asked):
    """It selects new events, too."""
    await api.create(NEW, new(api))
    assert await api.names(EVENTS, fieldSelector=asked) == ["e"]


@source(CONVERSION)
@pytest.mark.parametrize("asked", NEW_FIELDS)
async def test_a_field_under_the_new_names(api, asked):
    """The same in events.k8s.io."""
    await api.create(NEW, new(api))
    assert await api.names(NEW, fieldSelector=asked) == ["e"]


@source(CONVERSION)
@pytest.mark.parametrize(
    ("resource", "field"),
    [(EVENTS, "regarding.name"), (EVENTS, "reportingController"), (NEW, "reportingComponent"), (NEW, "source")],
    ids=["old-regarding", "old-controller", "new-component", "new-source"],
)
async def test_a_field_under_the_name_of_the_other_version(api, resource, field):
    """400: each version knows its own names alone."""
    status = await api.list(resource, fieldSelector=f"{field}=x").refused(400, "BadRequest")
    assert status["message"] == f"field label not supported: {field}"


@source(CONVERSION)
async def test_an_old_event_in_the_new_version(api):
    """Texts that it does not say are left out."""
    await api.create(EVENTS, old(api))
    found = await api.get(NEW, "e")
    assert (found["note"], found["eventTime"]) == ("M", None)
    assert not {"reportingController", "reportingInstance", "action"} & found.keys()


@source(VALIDATION)
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"type": "Odd"}, 'type: Invalid value: "": has invalid value: Odd'),
        ({"note": "x" * 1025}, 'message: Invalid value: "": can have at most 1024 characters'),
        ({"action": "x" * 129}, 'action: Invalid value: "": can have at most 128 characters'),
        ({"eventTime": None}, "eventTime: Required value"),
        ({"deprecatedCount": 3}, 'count: Invalid value: "": needs to be unset'),
        (
            {"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}},
            'series.count: Invalid value: "": should be at least 2',
        ),
        ({"series": {"count": 2}}, "series.lastObservedTime: Required value"),
    ],
)
async def test_what_an_error_of_a_new_event_says(api, said, why):
    """The rules are those of the event within the server, which has no group, and leave out the values."""
    status = await api.create(NEW, new(api, **said)).refused(422, "Invalid")
    assert status["message"] == f'Event "e" is invalid: {why}'
    assert status["details"].get("group") is None


@source(VALIDATION)
async def test_a_new_event_may_be_about_another_namespace(api):
    """Complete ones lie where their object does only if that is in no namespace."""
    about = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
    assert (await api.create(NEW, new(api, regarding=about)))["regarding"] == about


@source(VALIDATION)
async def test_an_event_without_its_reporter(api):
    """An empty name breaks three rules."""
    status = await api.create(EVENTS, old(api, eventTime="2026-01-01T00:00:00.000000Z")).refused(422, "Invalid")
    found = [field for _, field in causes(status)]
    assert found == [*["reportingComponent"] * 3, "reportingInstance", "action"]


@source(VALIDATION)
async def test_what_of_an_old_event_cannot_be_changed_by_the_new_version(api):
    """What neither says is no difference; values are shown with the names of Go's fields."""
    await api.create(EVENTS, old(api))
    status = await api.patch(NEW, "e", {"note": "N"}).refused(422, "Invalid")
    assert status["message"] == 'Event "e" is invalid: message: Invalid value: "N": field is immutable'
    status = await api.patch(NEW, "e", {"regarding": {"name": "q"}}).refused(422, "Invalid")
    assert f'{{"Kind":"Pod","Namespace":"{api.namespace}","Name":"q","UID":"",' in status["message"]
