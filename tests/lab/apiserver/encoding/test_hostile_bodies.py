"""Bodies of a few bytes that stand for much work: they are refused with the limits and in the words of Kubernetes."""

import base64
import json
import time
from random import Random

import pytest
from support.lab.custom_definitions import DEFINITIONS, WIDGETS, custom, definition

from lastcall.model import quantities
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.cel import cost_limit, evaluator
from lastcall_lab.apiserver.encoding import go_json, strict_yaml, yaml_limits
from lastcall_lab.apiserver.patches import json_patch, strategic_merge
from lastcall_lab.apiserver.schema.types import TypeTable
from lastcall_lab.apiserver.values.request import Request

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
YAML = "application/yaml"


def asked(*requests):
    """Status and body of the answer to each request, to a new server with widgets; (method, path, body, type)."""

    async def run():
        server = ApiServer(virtual.VirtualClock(), Random(1))
        made = [("POST", DEFINITIONS.path(), json.dumps(definition()).encode(), "application/json"), *requests]
        answers = []
        for method, path, body, kind in made:
            request = Request.of(method, path, headers={"content-type": kind}, body=body)
            response = await server.handle(request)
            answers.append((response.status, json.loads(response.body)))
        return answers[1:]

    return virtual.run(run())


def widgets(name="", namespace="default"):
    return WIDGETS.path(namespace, name)


def created(data):
    return ("POST", widgets(), json.dumps({**custom("w"), **data}).encode(), "application/json")


def patch(*operations):
    return ("PATCH", widgets("w"), json.dumps(operations).encode(), "application/json-patch+json")


def copy(source, target):
    return {"op": "copy", "from": source, "path": target}


def doubling(times):
    """Each operation copies all that there is."""
    return [copy("/data", f"/data/{number}") for number in range(times)]


def test_copies_of_copies_are_limited():
    _, (code, said) = asked(created({"data": {"a": "x" * 1000}}), patch(*doubling(22)))
    assert (code, said["reason"], said["message"]) == (
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    )


def test_what_copies_may_add():
    """Exactly three MiB of JSON."""
    text = "x" * (1024 * 1024 - 2)
    document = json_patch.apply_operations({"a": text}, [copy("/a", f"/{number}") for number in range(3)])
    assert len(document) == 4
    with pytest.raises(
        json_patch.JsonPatchDoesNotApply, match="accumulated size increase of copy is 3145729, exceeding"
    ):
        json_patch.apply_operations(
            {"a": text, "b": 1}, [*(copy("/a", f"/{number}") for number in range(3)), copy("/b", "/c")]
        )


def test_copies_do_not_share():
    document = json_patch.apply_operations({"a": [1]}, [copy("/a", "/b"), {"op": "add", "path": "/b/-", "value": 2}])
    assert document == {"a": [1], "b": [1, 2]}


@pytest.mark.parametrize("index", ["1_0", " 1", "１", "", "1" * 5000])
def test_indices_are_ascii_digits(index):
    with pytest.raises(json_patch.JsonPatchDoesNotApply, match="not a proper array index"):
        json_patch.apply_operations({"a": list(range(20))}, [{"op": "remove", "path": f"/a/{index}"}])


@pytest.mark.parametrize("times", [8, 12])
def test_a_patch_cannot_make_an_object_deeper_than_a_body_may_be(times):
    """Each operation doubles the depth."""
    deeper, path = [], "/data"
    for _ in range(times):
        deeper.append(copy("/data", path + "/data"))
        path += path
    first, (code, said) = asked(created({"data": {}}), patch(*deeper))
    assert first[0] == 201
    assert (code, said["reason"]) == (422, "Invalid")


# -- YAML --------------------------------------------------------------------------------------------------------------


def bomb(levels):
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines).encode()


def test_an_alias_bomb():
    body = b"kind: ConfigMap\nmetadata: {name: m}\ndata:\n" + b"\n".join(b"  " + line for line in bomb(9).split(b"\n"))
    ((code, said),) = asked(("POST", CONFIG_MAPS, body, YAML))
    assert code == 400
    assert "yaml: document contains excessive aliasing" in said["message"]


def test_an_alias_bomb_as_an_apply():
    path = f"{CONFIG_MAPS}/m?fieldManager=m"
    ((code, said),) = asked(("PATCH", path, bomb(9), "application/apply-patch+yaml"))
    assert (code, said["message"]) == (
        400,
        "error decoding YAML: error converting YAML to JSON: yaml: document contains excessive aliasing",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bomb(7), "excessive aliasing"),
        (bomb(8).replace(b"x", b"''"), "excessive aliasing"),
        (b"a: &a {x: 1}\n" + b"\n".join(b"b%d: &b%d {<<: [*a,*a,*b%d,*b%d]}" % (n, n, n - 1, n - 1) for n in range(1, 25)).replace(b"*b0", b"*a"), "excessive aliasing"),
        (b"a: &a " + b"x" * 1_000_000 + b"\nb: [*a,*a,*a]", "excessive aliasing"),
        (b"a: &a [*a]", "anchor 'a' value contains itself"),
        (b"[" * 100_000, "exceeded max depth of 200"),
        (b"{a: " * 10_000, "exceeded max depth of 200"),
        (b"- " * 10_000 + b"a", "exceeded max depth of 200"),
        (b"\n".join(b" " * n + b"a:" for n in range(300)), "exceeded max depth of 200"),
        (b"a: !!float x", "cannot decode"),
        (b"a: !!timestamp x", "cannot decode"),
    ],
)  # fmt: skip
def test_yaml_that_is_too_much(text, why):
    with pytest.raises(strict_yaml.yaml.YAMLError, match=why):
        strict_yaml.first_document(text)
    with pytest.raises(strict_yaml.yaml.YAMLError, match=why):
        yaml_limits.check_yaml_limits(text) if "decode" not in why else strict_yaml.first_document(text)


def test_a_mappings_own_key_hides_a_merged_one():
    text = b"x: &x {a: 1, b: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y, c: 3}\n"
    assert strict_yaml.first_document(text).value["z"] == {"a": 1, "b": 2, "c": 3}


def test_yaml_with_aliases_that_is_not():
    text = b"a: &a {x: &b [1, 2]}\nb: [*a, *a, *b]\nc: {<<: *a, z: 1}"
    assert strict_yaml.first_document(text).value == {
        "a": {"x": [1, 2]},
        "b": [{"x": [1, 2]}, {"x": [1, 2]}, [1, 2]],
        "c": {"x": [1, 2], "z": 1},
    }
    assert strict_yaml.first_document(bomb(3)).value["a2"]


# -- depth, and what is no Unicode -------------------------------------------------------------------------------------


def nested(depth):
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize("text", [nested(go_json.MAX_DEPTH + 1), nested(100_000), b"[" * 100_000, b"[[],[" * 100_000])
def test_json_that_is_too_deep(text):
    with pytest.raises(go_json.MalformedJson, match=r"exceeded max depth|unexpected end of JSON input"):
        go_json.decode_json(text)


def test_json_that_is_not_too_deep():
    assert go_json.decode_json(nested(go_json.MAX_DEPTH))
    assert go_json.decode_json(b"[" + b"[]," * 1000 + b'"["]')


@pytest.mark.parametrize("depth", [go_json.MAX_DEPTH - 1, go_json.MAX_DEPTH, 450, 900, 100_000])
@pytest.mark.parametrize("how", ["create", "apply", "merge", "json"])
def test_a_deep_object(how, depth):
    """It is stored and can be listed, or it is refused; the server goes on."""
    head = json.dumps(custom("w"))[:-1].encode()
    deep = head + b',"data":' + nested(depth - 1) + b"}"
    inner = b'{"data":' + nested(depth - 1) + b"}"
    operations = b'[{"op":"add","path":"/data","value":' + nested(depth - 2) + b"}]"
    write = {
        "create": ("POST", widgets(), deep, "application/json"),
        "apply": ("PATCH", widgets("w") + "?fieldManager=m", deep, "application/apply-patch+yaml"),
        "merge": ("PATCH", widgets("w"), inner, "application/merge-patch+json"),
        "json": ("PATCH", widgets("w"), operations, "application/json-patch+json"),
    }[how]
    before = [] if how in ("create", "apply") else [created({})]
    *_, (code, said), listed = asked(*before, write, ("GET", widgets(), b"", ""))
    assert listed[0] == 200
    if depth > go_json.MAX_DEPTH:
        assert (code, "exceeded max depth" in said["message"]) == (400, True)
    else:
        assert code in (200, 201), said


def test_lone_surrogates_become_replacement_characters():
    r"""As Go's decoder has it; two halves of one character are one."""
    assert go_json.decode_json(rb'{"a": "x\ud800y", "\udc00": "\ud83d\ude00\ud83d"}') == {"a": "x�y", "�": "😀�"}
    assert go_json.decode_json(b'{"a": "\xed\xa0\x80\xff"}')["a"].strip("�") == ""


def test_a_lone_surrogate_in_an_object():
    body = rb'{"metadata": {"name": "m"}, "data": {"k": "\ud800"}}'
    (code, said), (again, read) = asked(
        ("POST", CONFIG_MAPS, body, "application/json"), ("GET", f"{CONFIG_MAPS}/m", b"", "")
    )
    assert (code, said["data"], again, read["data"]) == (201, {"k": "�"}, 200, {"k": "�"})


@pytest.mark.parametrize("said", ["5", "[]", "{}", "true", "null", "1e400", '"\\ud800"'])
@pytest.mark.parametrize("field", ["apiVersion", "kind", "metadata"])
def test_an_apply_whose_kind_is_no_text(field, said):
    whole = {"apiVersion": '"v1"', "kind": '"ConfigMap"', "metadata": "{}", field: said}
    body = "{" + ",".join(f'"{name}": {value}' for name, value in whole.items()) + "}"
    path = f"{CONFIG_MAPS}/m?fieldManager=m"
    ((code, refusal),) = asked(("PATCH", path, body.encode(), "application/apply-patch+yaml"))
    assert (code, refusal.get("reason")) == (400, "BadRequest") or (
        (code, field) == (500, "metadata")
        and refusal["message"].startswith(
            "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata: expected map, got &{"
        )
    )


# -- patterns ----------------------------------------------------------------------------------------------------------


def test_a_pattern_that_would_backtrack():
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}}
    made = definition("gadgets", "Gadget")
    made["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    body = {**custom("g", kind="Gadget"), "s": "a" * 30_000 + "!"}
    path = "/apis/x.example.com/v1/namespaces/default/gadgets"
    began = time.thread_time()
    _, (code, said) = asked(
        ("POST", DEFINITIONS.path(), json.dumps(made).encode(), "application/json"),
        ("POST", path, json.dumps(body).encode(), "application/json"),
    )
    assert (code, "should match '^(a+)+$'" in said["message"]) == (422, True)
    assert time.thread_time() - began < 60


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1e10", "10e9"),
        ("1e20", "100e18"),
        ("1e100", "10e99"),
        ("1.5e100", "1.5e100"),
        ("1e-100", "1e-9"),
        ("0e5", "0"),
    ],
)
def test_quantities_with_exponents(text, written):
    assert quantities.canonical_quantity(text) == written


@pytest.mark.parametrize(
    "text", ["1e1000000000", "1e-1000000000", "1e2147483647", "9" * 5000, "1e" + "9" * 5000], ids=range(5)
)
def test_quantities_that_would_take_for_ever(text):
    with pytest.raises(ValueError, match="unable to parse"):
        quantities.parse_quantity(text)


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"limit={LONG}", 400),
        (f"timeoutSeconds={LONG}", 400),
        (f"resourceVersion={LONG}", 400),
        ("resourceVersion=%D9%A1", 400),
        ("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6IngiLCJzdGFydCI6NX0", 400),
        ("continue=" + base64.urlsafe_b64encode(b"[" * 3000).decode(), 400),
    ],
    ids=range(6),
)
def test_numbers_in_a_query(query, code):
    ((found, said),) = asked(("GET", f"{CONFIG_MAPS}?{query}", b"", ""))
    assert (found, "Internal error" in said["message"]) == (code, False)


# -- many of something -------------------------------------------------------------------------------------------------


def test_many_owners():
    """Forty thousand of them, each compared with all others, took minutes."""
    owners = [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": str(number)} for number in range(40_000)]
    body = {"metadata": {"name": "m", "ownerReferences": [*owners, owners[0]]}}
    ((code, said),) = asked(("POST", CONFIG_MAPS, json.dumps(body).encode(), "application/json"))
    assert (code, len(said["metadata"]["ownerReferences"])) == (201, 40_000)


def test_a_strategic_merge_of_many_items():
    """The same for lists that merge by a key, for sets, and for their orders."""
    many = [{"name": f"E{number}", "value": "x"} for number in range(40_000)]
    pod = TypeTable().find("", "v1", "Pod")
    before = {
        "spec": {"containers": [{"name": "c", "env": many}]},
        "metadata": {"finalizers": [str(n) for n in range(40_000)]},
    }
    changed = [{**one, "value": "y"} for one in reversed(many)]
    deleted = [{"name": one["name"], "$patch": "delete"} for one in many[:10_000]]
    patch = {
        "spec": {"containers": [{"name": "c", "env": [*changed[:30_000], *deleted]}]},
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": [str(n) for n in range(20_000)],
            "finalizers": [str(n) for n in range(20_000, 60_000)],
        },
    }
    after = strategic_merge.apply_strategic_patch(before, patch, pod)
    assert after["spec"]["containers"][0]["env"] == changed[:30_000]
    assert after["metadata"]["finalizers"] == [str(n) for n in range(20_000, 60_000)]


# -- expressions -------------------------------------------------------------------------------------------------------


def test_a_rule_with_loops_within_loops():
    spec = {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "integer"}}}}
    rule = {"rule": "self.l.all(a, self.l.all(b, a + b >= 0))"}
    made = definition("gadgets", "Gadget")
    schema = {"type": "object", "properties": {"spec": {**spec, "x-kubernetes-validations": [rule]}}}
    made["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    path = "/apis/x.example.com/v1/namespaces/default/gadgets"
    bodies = [{**custom(f"g{n}", kind="Gadget"), "spec": {"l": list(range(n))}} for n in (300, 2_000)]
    _, small, (code, said) = asked(
        ("POST", DEFINITIONS.path(), json.dumps(made).encode(), "application/json"),
        *(("POST", path, json.dumps(body).encode(), "application/json") for body in bodies),
    )
    assert (small[0], code) == (201, 422)
    assert "operation cancelled: actual cost limit exceeded" in said["message"]


NUMBERS = {"self": {"l": list(range(5000)), "parts": [{"sub": [1, 2, 3]} for _ in range(5000)]}}


@pytest.mark.parametrize(
    ("expression", "exceeded"),
    [
        ("self.l.all(a, a >= 0) && self.l.all(b, b >= 0)", False),
        ("self.parts.all(p, p.sub.all(s, s > 0))", False),
        ("self.parts.map(p, p.sub.filter(s, s > 0).size())", False),
        ("self.l.all(a, 'self.l.all(b, b' != 'x')", False),
        ("self.l.all(a, self.l.exists(b, b == a))", True),
        ("self.l.map(a, self.parts.map(p, p.sub.map(s, s + a)))", True),
    ],
)
def test_what_expressions_cost(expression, exceeded):
    assert cost_limit.exceeds_limit(expression, NUMBERS) is exceeded


@pytest.mark.parametrize("expression", ["lists.range(10000000000)", "self.s.replace('a', self.s).replace('a', self.s)"])
def test_functions_whose_results_are_too_large(expression):
    with pytest.raises(evaluator.CelError, match="actual cost limit exceeded"):
        evaluator.evaluate(expression, {"self": {"s": "a" * 10_000}})
