"""CEL: what expressions mean, and the words of the errors."""

import pytest

from lastcall_lab.apiserver.cel import evaluator

SELF = {
    "a": 1,
    "s": "hello",
    "list": [1, 2, 3],
    "m": {"k1": "v1", "k2": "v2"},
    "containers": [{"name": "c", "image": "registry.example/app:1"}],
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("self.a < 8 || self.b == 'B'", True),
        ("self.a > 8 && self.b == 'B'", False),
        ("has(self.a) && !has(self.b)", True),
        ("self.containers.all(c, c.image.startsWith('registry.example/'))", True),
        ("self.list.exists(x, x == 2) && self.list.exists_one(x, x > 2)", True),
        ("self.list.map(x, x * 2).filter(x, x > 2)", [4, 6]),
        ("self.m.all(k, self.m[k].matches('^v[0-9]$'))", True),
        ("'k1' in self.m && !('k3' in self.m)", True),
        ("size(self.list) == 3 && self.s.size() == 5", True),
        ("self.list.sum() + self.list.min() + self.list.max()", 10),
        ("self.list.isSorted() && [3, 1].indexOf(1) == 1", True),
        ("self.s.upperAscii().replace('L', 'x')", "HExxO"),
        ("'a,b,c'.split(',').join('-')", "a-b-c"),
        ("self.s.substring(1, 3) + self.s.charAt(4)", "elo"),
        ("'abc 123'.find('[0-9]+')", "123"),
        ("sets.contains([1, 2], [1]) && !sets.intersects([1], [2])", True),
        ("math.greatest(1, 3) - math.least([2, 5])", 1),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi')) && quantity('1Gi') == quantity('1024Mi')", True),
        ("quantity('1500m').isInteger()", False),
        ("quantity('1k').sub(quantity('1')).asInteger()", 999),
        ("isQuantity('1Zi') || isIP('10.0.0') || isCIDR('10.0.0.0') || isURL('x')", False),
        ("ip('127.0.0.1').isLoopback() && ip('::1').family() == 6", True),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.1/8').ip() == ip('10.0.0.1')", True),
        ("url('https://a.b:80/c?x=1').getHost() + url('https://a.b:80/c?x=1').getQuery()['x'][0]", "a.b:801"),
        ("duration('90m') > duration('1h')", True),
        ("timestamp('2026-01-01T00:00:00Z').getFullYear()", 2026),
        ("1 == 1.0", True),
        ("'size ' + string(self.a)", "size 1"),
        ("optional.none().hasValue()", False),
        ("self.?b.orValue(3) + self.?a.orValue(3)", 4),
        ("self.?m.?k1.orValue('') + self.?none.?k1.orValue('-') + self.m[?'k2'].orValue('')", "v1-v2"),
        ("self.list[?7].hasValue() || self.list[?0].value() == 1", True),
        ("['.?x', '[?'][1] + self.m['k1']", "[?v1"),
    ],
)
def test_values(expression, value):
    assert evaluator.evaluate(expression, {"self": SELF}) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("self.spec.nodeName == 'n1'", "no such key: spec"),
        ("self.m['k3'] == 'x'", "no such key: k3"),
        ("self.a / 0", "division by zero"),
        ("self.a % 0", "modulus by zero"),
        ("self.list[7]", "index out of bounds: 7"),
        ("self.s + 1", "no such overload"),
        ("self.a.startsWith('x')", "no such overload"),
        ("9223372036854775807 + self.a", "integer overflow"),
        ("[].min()", "min called on empty list"),
        ("quantity('x').isInteger()", "quantities must match the regular expression "),
        ("other == 1", "undeclared reference to 'other' (in container '')"),
    ],
)
def test_errors(expression, words):
    with pytest.raises(evaluator.CelError) as error:
        evaluator.evaluate(expression, {"self": SELF})
    assert str(error.value).startswith(words)


def test_good_expression_compiles():
    assert evaluator.compile_error("self.all(k, k.startsWith('a')) && sets.contains([1], [1])", declared=["self"]) == ""


def test_syntax_error_is_said_as_cel_go_says_it():
    assert evaluator.compile_error("object.x ==") == (
        "compilation failed: ERROR: <input>:1:12: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.',"
        " '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.x ==\n"
        " | ...........^"
    )


def test_the_names_of_types_are_declared():
    assert evaluator.compile_error("type(self) == int || type(self) == string", declared=["self"]) == ""
    assert evaluator.evaluate("type(self) == int ? self >= 1 : self == 'all'", {"self": "all"}) is True


def test_undeclared_variable():
    assert evaluator.compile_error("object.x == foo.y", declared=["object"]) == (
        "compilation failed: ERROR: <input>:1:13: undeclared reference to 'foo' (in container '')\n"
        " | object.x == foo.y\n | ............^"
    )


def test_undefined_field():
    assert evaluator.undefined_field_error("self.foo == 1", "foo") == (
        "compilation failed: ERROR: <input>:1:5: undefined field 'foo'\n | self.foo == 1\n | ....^"
    )
