"""Text to values as Kubernetes reads it, and values to structs with every violation."""

import json
import time
from contextlib import suppress
from enum import Enum
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall.model.base import Facts

ONE = {  # a scalar, and what it means
    "yes": True,
    "on": True,
    "y": "y",
    "True": True,
    "no": False,
    "Off": False,
    "N": "N",
    "tRUE": "tRUE",
    '"yes"': "yes",
    "!!str yes": "yes",
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "nULL": "nULL",
    "7": 7,
    "+7": 7,
    "-7": -7,
    "010": 8,
    "-010": -8,
    "0o10": 8,
    "08": 8,
    "0x1F": 31,
    "0b11": 3,
    "1_000": 1000,
    "1e3": 1000,
    "10.0": 10,
    "1.5": 1.5,
    ".5": 0.5,
    "1e400": float("inf"),
    "-.inf": float("-inf"),
    "1:30": "1:30",
    "22:22:22": "22:22:22",
    "=": "=",
    "2020-01-01": "2020-01-01",
    "2020-01-01T00:00:00Z": "2020-01-01T00:00:00Z",
    "!!timestamp 2020-99-99": "2020-99-99",
    "1.2.3": "1.2.3",
    "0x": "0x",
    "-": None,
    "1e3s": "1e3s",
}

WRONG_TEXT = {  # text, and its whole message
    b"a: 1\nb: 2\na: 3\n": 'f: line 3, column 1: key "a" already set in map',
    b'{"a": 1, "a": 2}': 'f: line 1, column 10: key "a" already set in map',
    b'{"b": {"a": 1, "a": 2}}': 'f: line 1, column 16: key "a" already set in map',
    b'1: a\n"1": b\n': 'f: line 2, column 1: key "1" already set in map',
    b"a: b\n\tc: d\n": "f: line 2, column 1: found a tab character that violates indentation",
    b"a:\n\t- b\n": "f: line 2, column 1: found character that cannot start any token",
    b"a: b: c\n": "f: line 1, column 5: mapping values are not allowed in this context",
    b"[1, 2": "f: line 2, column 1: did not find expected ',' or ']'",
    b'{"a": 1': "f: line 2, column 1: did not find expected ',' or '}'",
    b'{"a": 1} x': "f: line 1, column 10: did not find expected <document start>",
    b"? [a]\n: b\n": "f: line 1, column 3: a key must be text",
    b"? {a: b}\n: b\n": "f: line 1, column 3: a key must be text",
    b"a: *x\n": "f: line 1, column 4: found undefined alias 'x'",
    b"a: &a [*a]\n": 'f: line 1, column 8: anchor "a" contains itself',
    b"a: &a {b: {c: *a}}\n": 'f: line 1, column 15: anchor "a" contains itself',
    b"a: !!int x\n": 'f: line 1, column 4: "x" is not an integer that can be read',
    b"a: !!float x\n": 'f: line 1, column 4: "x" is not a number that can be read',
    b"a: !!bool x\n": 'f: line 1, column 4: "x" is not a boolean that can be read',
    b"a: !!python/object/apply:os.getcwd []\n": (
        "f: line 1, column 4: could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/object/apply:os.getcwd'"
    ),
    b"a: !!int [1]\n": "f: line 1, column 4: expected a scalar node, but found sequence",
    b"a: !!bool {}\n": "f: line 1, column 4: expected a scalar node, but found mapping",
    b"a: !!timestamp []\n": "f: line 1, column 4: expected a scalar node, but found sequence",
    b'{"a": "\\ud800"}': "f: line 1, column 10: found invalid Unicode character escape code",
    b"a: !own x\n": "f: line 1, column 4: could not determine a constructor for the tag '!own'",
    b"a: " + b"9" * 5000: f'f: line 1, column 4: "{"9" * 57}..." is not an integer that can be read',
    b"a: \xff\n": "f: not UTF-8 text: byte 3 is 0xff",
    b"- " * 100_000: "f: line 1, column 201: nested more than 100 levels deep",
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000: "f: line 1, column 497: nested more than 100 levels deep",
}


def bomb(levels: int, width: int) -> bytes:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(("text", "value"), ONE.items())
def test_scalars_mean_what_they_mean_to_kubernetes(text, value):
    (document,) = decoding.parse_documents(f"a: {text}\n".encode() if text != "-" else b"a:\n", "f")
    assert document == {"a": value}
    assert type(document["a"]) is type(value)


@pytest.mark.parametrize(("data", "message"), WRONG_TEXT.items(), ids=range(len(WRONG_TEXT)))
def test_wrong_text_is_told_with_its_place(data, message):
    with pytest.raises(InvalidInput) as caught:
        decoding.parse_documents(data, "f")
    assert str(caught.value) == message


@pytest.mark.parametrize("data", [b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b"[" * 101, b"{a: " * 101])
def test_nested_lists_are_limited(data):
    """libyaml reads ahead, and newer versions have a limit of their own: the place depends on the version."""
    with pytest.raises(InvalidInput, match=r"^f: line 1, column \d+: nested more than 100 levels deep$"):
        decoding.parse_documents(data, "f")


@pytest.mark.parametrize("text", ["a: {<<: 1}", "a: {<<: [1]}", "a: {<<: [[b]]}"])
def test_only_mappings_are_merged(text):
    with pytest.raises(InvalidInput, match="expected a mapping or list of mappings for merging"):
        decoding.parse_documents(text.encode(), "f")


def test_control_characters_are_refused():
    with pytest.raises(InvalidInput, match=r"^f: not YAML: .*#x0000"):
        decoding.parse_documents(b"a: \x00", "f")


def test_keys_are_text_whatever_they_look_like():
    assert decoding.parse_documents(b"yes: 1\n1: 2\nnull: 3\n1.0: 4\n", "f") == [
        {"yes": 1, "1": 2, "null": 3, "1.0": 4}
    ]


@pytest.mark.parametrize("data", [b"", b"\n", b"---\n---\n", b"# nothing\n", b"null", b"---\n...\n", b"\xef\xbb\xbf"])
def test_empty_documents_are_left_out(data):
    assert decoding.parse_documents(data, "f") == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["a: ü\n", '{"a": "ü"}', "---\na: ü\n---\n"])
def test_byte_order_marks_are_no_matter(encoding, text):
    assert decoding.parse_documents(text.encode(encoding), "f") == [{"a": "ü"}]


@pytest.mark.parametrize("text", ['{"a": 1}\n---\n{"b": 2}\n', "a: 1\n---\n\n---\nb: 2\n...\n"])
def test_several_documents(text):
    assert decoding.parse_documents(text.encode(), "f") == [{"a": 1}, {"b": 2}]


def test_anchors_and_merge_keys():
    text = b"x: &x {a: 1, b: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: [*y, {c: 3, a: 9}], d: 4}\nw: [*x, *x]\n"
    (document,) = decoding.parse_documents(text, "f")
    assert document["y"] == {"a": 1, "b": 2}
    assert document["z"] == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert document["w"] == [{"a": 1, "b": 1}] * 2


def test_a_merge_into_what_is_built_later_is_no_duplicate():
    text = b"s: {a: &a {k: 1}}\nd: {e: {f: &b {<<: *a, k: 2}}}\nc: {<<: *b}\n"
    assert decoding.parse_documents(text, "f")[0]["c"] == {"k": 2}


@pytest.mark.parametrize(
    "data", [bomb(12, 9), bomb(3, 500), b"a: &a [" + b"x," * 2000 + b"]\nb: [" + b"*a," * 2000 + b"]"]
)
def test_a_billion_laughs_are_few(data):
    began = time.monotonic()
    with pytest.raises(InvalidInput, match="aliases repeat more than 100000 nodes"):
        decoding.parse_documents(data, "f")
    assert time.monotonic() - began < 100


class Colour(Enum):
    RED = "Red"
    GREEN = "Green"
    BLUE = "Blue"


class Painted(Facts, frozen=True):
    one: Colour = Colour.RED
    perhaps: Colour | None = None
    several: tuple[Colour, ...] = ()
    by_name: dict[str, tuple[Colour, ...]] | None = None
    text: str = ""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"one": "red"}, 'one: "red": must be Red, Green or Blue'),
        ({"one": True}, "one: true: must be Red, Green or Blue"),
        ({"perhaps": "x"}, 'perhaps: "x": must be Red, Green or Blue'),
        ({"several": ["Red", "x"]}, 'several[1]: "x": must be Red, Green or Blue'),
        ({"several": "Red"}, 'several: "Red": must be a list, not text'),
        ({"byName": {"a": ["Red"], "b": ["Blue", "x"]}}, 'byName.b[1]: "x": must be Red, Green or Blue'),
        ({"text": 7}, "text: 7: must be text, not an integer"),
    ],
)
def test_words_that_may_stand_there_are_named(value, said):
    with pytest.raises(InvalidInput) as caught:
        decoding.convert(value, Painted, "f")
    assert list(caught.value.violations) == [said]


def test_json_documents_may_follow_each_other():
    """As after ``kubectl get -o json > file`` and another one with ``>>``; kubectl itself reads that."""
    assert decoding.parse_documents(b'{"a": 1}\n{"b": [2]}\n', "f") == [{"a": 1}, {"b": [2]}]
    assert decoding.parse_documents(b'\xef\xbb\xbf [1]{"b": "{"}\r\nnull \t', "f") == [[1], {"b": "{"}]
    assert decoding.parse_documents(b'{"a": 1}\n---\n{"b": 2}\n', "f") == [{"a": 1}, {"b": 2}]
    assert decoding.parse_documents(b"{a: 1} # YAML", "f") == [{"a": 1}]


@pytest.mark.parametrize("second", ['{"b": 1, "b": 2}', '{"b": NaN}', '{"b": "\\ud800"}', '{"b":', "b"])
def test_what_is_no_json_behind_json_is_refused(second):
    with pytest.raises(
        InvalidInput, match=r"line 2, column (1: did not find expected <document start>|10: found invalid)"
    ):
        decoding.parse_documents(f'{{"a": 1}}\n{second}'.encode(), "f")


def test_aliases_start_from_nothing_in_every_document():
    document = b"---\na: &a [" + b"x," * 600 + b"]\nb: [" + b"*a," * 100 + b"]\n"
    assert len(decoding.parse_documents(document * 3, "f")) == 3


def test_as_deep_as_allowed():
    assert decoding.parse_documents(b"[" * 100 + b"]" * 100, "f")
    assert decoding.parse_documents(b"a: " + b"[" * 98 + b"x" + b"]" * 98, "f")


class Inner(Facts, frozen=True):
    name: str
    count: Annotated[int, msgspec.Meta(ge=0, le=9)] = 0
    ratio: float | None = None


class Outer(Facts, frozen=True):
    inner_list: tuple[Inner, ...] | None = None
    labels: dict[str, str] | None = None
    port: int | str = 0
    flag: bool = False
    text: str = "default"
    by_name: dict[str, Inner] | None = None


def violations(value: Any, at: str = "") -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        decoding.convert(value, Outer, "f", at=at)
    return list(caught.value.violations)


WRONG_VALUES = [
    ([], ["document: []: must be a mapping, not a list"]),
    ("x", ['document: "x": must be a mapping, not text']),
    ({"text": 7}, ["text: 7: must be text, not an integer"]),
    ({"text": True}, ["text: true: must be text, not true or false"]),
    ({"flag": "yes"}, ['flag: "yes": must be true or false, not text']),
    ({"port": 1.5}, ["port: 1.5: must be an integer or text, not a number"]),
    ({"innerList": {}}, ["innerList: {}: must be a list, not a mapping"]),
    ({"innerList": [{}]}, ["innerList[0].name: missing: must be given"]),
    ({"innerList": [None]}, ["innerList[0]: null: must be a mapping, not null"]),
    ({"innerList": [{"name": "a", "count": -1}]}, ["innerList[0].count: -1: must be an integer >= 0"]),
    ({"innerList": [{"name": "a", "count": 10}]}, ["innerList[0].count: 10: must be an integer <= 9"]),
    ({"innerList": [{"name": "a", "ratio": "x"}]}, ['innerList[0].ratio: "x": must be a number, not text']),
    ({"labels": {"good": "x", "bad": 1}}, ["labels.bad: 1: must be text, not an integer"]),
    ({"byName": {"x": {"name": "a"}, "y": {"name": 1}}}, ["byName.y.name: 1: must be text, not an integer"]),
    (
        {"innerList": [{"name": 1}, {"name": "ok"}, 7, {"name": "ok", "count": "x"}, {}, {"name": 1}]},
        [
            "innerList[0].name: 1: must be text, not an integer",
            "innerList[2]: 7: must be a mapping, not an integer",
            'innerList[3].count: "x": must be an integer, not text',
            "innerList[4].name: missing: must be given",
            "innerList[5].name: 1: must be text, not an integer",
        ],
    ),
    (
        {"text": 7, "flag": 1, "labels": []},
        [
            "labels: []: must be a mapping, not a list",
            "flag: 1: must be true or false, not an integer",
            "text: 7: must be text, not an integer",
        ],
    ),
]


@pytest.mark.parametrize(("value", "expected"), WRONG_VALUES, ids=range(len(WRONG_VALUES)))
def test_every_violation_names_field_value_and_rule(value, expected):
    assert sorted(violations(value)) == sorted(expected)


def test_null_in_a_mapping_counts_as_absent():
    value = {"text": None, "innerList": [{"name": "a", "count": None}], "labels": None, "unknown": None}
    assert decoding.convert(value, Outer, "f") == Outer(inner_list=(Inner(name="a"),))


def test_what_is_right_comes_back_beside_the_violations():
    value = {"text": 7, "flag": True, "innerList": [{"name": "a"}, 7, {"name": "b"}]}
    result, wrong = decoding.convert_readable(value, Outer)
    assert result == Outer(flag=True, inner_list=(Inner(name="a"), Inner(name="b")))
    assert wrong == ["text: 7: must be text, not an integer", "innerList[1]: 7: must be a mapping, not an integer"]


def test_at_stands_before_every_path():
    assert violations({"text": 7}, at="items[3]") == ["items[3].text: 7: must be text, not an integer"]
    assert violations(7, at="items[3]") == ["items[3]: 7: must be a mapping, not an integer"]


def test_fifty_violations_are_enough():
    began = time.monotonic()
    assert len(violations({"labels": dict.fromkeys(map(str, range(500)), 1)})) == 50
    assert time.monotonic() - began < 100


def test_the_value_is_left_as_it_was():
    value = {"innerList": [7, {"name": None}], "text": None}
    before = json.dumps(value)
    decoding.convert_readable(value, Outer)
    assert json.dumps(value) == before


def test_many_nulls_are_quick():
    value = {"byName": {str(i): {"name": "x", "count": None} for i in range(20_000)}}
    began = time.monotonic()
    decoding.convert(value, Outer, "f")
    assert time.monotonic() - began < 100


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", '"x"'),
        (None, "null"),
        ("ü", '"ü"'),
        ("\x1b[31m", '"\\u001b[31m"'),
        ("y" * 100, '"' + "y" * 56 + "..."),
        ({"a": [1, 2]}, '{"a": [1, 2]}'),
        (deep(900), '[[[[[[[["..."]]]]]]]]'),
    ],
)
def test_values_are_quoted_shortly(value, text):
    assert decoding.quote_value(value) == text
    assert len(text) <= 60


def test_deep_values_do_no_harm():
    wrong = violations({"text": 7, "other": deep(900)})
    assert wrong == ["text: 7: must be text, not an integer"]


@given(st.text() | st.text(alphabet="{}[]:,-\"'&*!|>%@`#?~=<. \n\t019abeEnyx\\"), st.sampled_from(["utf-8", "utf-16"]))
def test_any_text_is_read_or_refused(text, encoding):
    with suppress(InvalidInput):
        assert isinstance(decoding.parse_documents(text.encode(encoding, "surrogatepass"), "f"), list)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
FIELDS = ["innerList", "labels", "port", "flag", "text", "byName", "name", "count", "ratio", "x"]
SHAPED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6),
    max_leaves=40,
)


@given(JSON)
def test_json_comes_back_as_it_was_written(value):
    text = json.dumps([value], allow_nan=False) if finite(value) else "[]"
    assert decoding.parse_documents(text.encode(), "f") == json.loads("[" + text + "]")


def finite(value):
    try:
        json.dumps(value, allow_nan=False).encode()
        msgspec.json.decode(json.dumps(value))
    except ValueError:
        return False
    return True


@given(SHAPED)
def test_every_value_is_converted_or_refused(value):
    result, wrong = decoding.convert_readable(value, Outer)
    assert wrong or isinstance(result, Outer)
    assert len(set(wrong)) == len(wrong)
    for violation in wrong:
        assert len(violation.split(": ")) >= 3
