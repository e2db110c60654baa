"""Makes data/types.json.gz, the lab's table of types, from the OpenAPI document and the Go types behind it.

python tools/schema_types.py CHECKOUTS

CHECKOUTS has the sources of k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver in directories of these
last names. OpenAPI says which fields there are and how lists merge; only the Go types say the order of the fields,
which of them are pointers, and which are written though they are empty. See ``lab/apiserver/schema/types.py`` for what
the table holds.
"""

import gzip
import json
import re
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "src/lastcall/lab/apiserver/data"
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) ([\w.\[\]*]+)(?: *//.*)?$", re.MULTILINE)
FIELD = re.compile(r'^\s*(?:(\w+)\s+)?([\w.\[\]*]+)\s+`([^`]*json:"[^`]*)`', re.MULTILINE)
SCALARS = {"string", "bool", "int", "int32", "int64", "float64", "byte"}
SPECIAL = {
    "v1.Time": "time",
    "v1.MicroTime": "microtime",
    "v1.Duration": "duration",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intorstring",
    "runtime.RawExtension": "raw",
    "v1.FieldsV1": "raw",
    "v1.JSON": "any",
    "v1.JSONSchemaPropsOrArray": "any",
    "v1.JSONSchemaPropsOrBool": "any",
    "v1.JSONSchemaPropsOrStringArray": "any",
}
PACKAGES = {
    "io.k8s.api": "api",
    "io.k8s.apimachinery": "apimachinery",
    "io.k8s.apiextensions-apiserver": "apiextensions-apiserver",
}
EXTENSIONS = {
    "x-kubernetes-patch-strategy": "strategy",
    "x-kubernetes-patch-merge-key": "merge_key",
    "x-kubernetes-list-type": "list",
    "x-kubernetes-list-map-keys": "keys",
    "x-kubernetes-map-type": "map",
}


class Package:
    """The types of one directory of Go."""

    def __init__(self, directory: Path) -> None:
        text = "\n".join(path.read_text() for path in sorted(directory.glob("*.go")) if "_test" not in path.name)
        self.structs = {name: FIELD.findall(body) for name, body in STRUCT.findall(text)}
        self.named = {name: kind for name, kind in NAMED.findall(text) if name not in self.structs}


class Types:
    """Go's types by package directory, and OpenAPI's definitions."""

    def __init__(self, checkouts: Path, definitions: dict) -> None:
        self.checkouts, self.definitions, self.packages = checkouts, definitions, {}

    def package(self, definition: str) -> Package | None:
        """The Go package of a definition such as ``io.k8s.api.core.v1.Pod``."""
        prefix = next((one for one in sorted(PACKAGES, key=len, reverse=True) if definition.startswith(one + ".")), "")
        if not prefix:
            return None
        directory = "/".join(definition.removeprefix(prefix + ".").split(".")[:-1])
        path = next(self.checkouts.glob(f"*{PACKAGES[prefix]}/{directory}"), None)
        if path is None:
            return None
        if path not in self.packages:
            self.packages[path] = Package(path)
        return self.packages[path]

    def fields(self, package: Package, struct: str):
        """(JSON name, Go type, options of the tag) in the order of Go, embedded structs resolved."""
        for _, kind, tag in package.structs[struct]:
            name, *options = re.search(r'json:"([^"]*)"', tag)[1].split(",")
            if not name:
                if kind.lstrip("*") in package.structs:
                    yield from self.fields(package, kind.lstrip("*"))
                elif kind.endswith("TypeMeta"):
                    yield "kind", "string", ["omitempty"]
                    yield "apiVersion", "string", ["omitempty"]
                else:
                    raise ValueError((struct, kind))
            elif name != "-":
                yield name, kind, options

    def table(self) -> dict:
        """All definitions."""
        return {name: self.definition(name, body) for name, body in self.definitions.items() if "properties" in body}

    def definition(self, name: str, body: dict) -> dict:
        """One struct."""
        package, short = self.package(name), name.rpartition(".")[2]
        known = package is not None and short in package.structs
        rest = dict(body["properties"])
        fields = {}
        for field, kind, options in self.fields(package, short) if known else ():
            if field in rest:
                fields[field] = self.field(rest.pop(field), kind, options, package, name)
        for field, schema in rest.items():
            if known and not name.endswith("DeleteOptions"):
                print("not in Go:", name, field, file=sys.stderr)
            fields[field] = self.field(schema, "", ["omitempty"], package, name)
        entry = {"go": f"{name.split('.')[-2]}.{short}", "fields": fields}
        if kinds := body.get("x-kubernetes-group-version-kind"):
            entry["kinds"] = [[one["group"], one["version"], one["kind"]] for one in kinds]
        if "x-kubernetes-map-type" in body:
            entry["map"] = body["x-kubernetes-map-type"]
        return entry

    def field(self, schema: dict, kind: str, options: list[str], package: Package | None, owner: str) -> dict:
        """One field of a struct."""
        entry: dict = {"type": self.shape(schema, kind, package)}
        go = self.qualified(kind.removeprefix("*"), package, owner)
        if go and go != self.plain(entry["type"]):
            entry["go"] = go
        if kind.startswith("*") and "omitempty" in options:
            entry["write"] = "set"
        elif "omitempty" not in options and "omitzero" not in options:
            entry["write"] = "null" if kind.startswith("*") else "always"
        elif "omitzero" not in options and re.match(r"#|(intorstring|quantity|time|microtime)$", entry["type"]):
            entry["write"] = "always"  # omitempty leaves no struct out
        entry |= {ours: schema[theirs] for theirs, ours in EXTENSIONS.items() if theirs in schema}
        return entry

    def shape(self, schema: dict, kind: str, package: Package | None) -> str:
        """The type as the table says it."""
        if ref := schema.get("$ref", "").rpartition("/")[2]:
            special = SPECIAL.get(".".join(ref.split(".")[-2:])) or SPECIAL.get(f"v1.{ref.rpartition('.')[2]}")
            if "properties" in self.definitions[ref]:
                return "#" + ref
            return special or "object"
        kind = kind.lstrip("*")
        kind = package.named.get(kind, kind) if package else kind
        match schema.get("type"):
            case "array":
                return "[]" + self.shape(schema["items"], kind.removeprefix("[]"), package)
            case "object":
                values = schema.get("additionalProperties")
                return "{}" + self.shape(values, re.sub(r"^map\[\w+\]", "", kind), package) if values else "object"
            case "integer":
                return schema.get("format", "int64")
            case "number":
                return "float64"
            case "boolean":
                return "bool"
            case "string":
                return "bytes" if schema.get("format") == "byte" else "string"
        return "any"

    def qualified(self, kind: str, package: Package | None, owner: str) -> str:
        """A Go type with its package, as errors of Go name it."""
        match = re.fullmatch(r"((?:\[\]|map\[\w+\]|\*)*)([\w.]+)", kind)
        if not match:
            return ""
        around, name = match.groups()
        around = re.sub(r"map\[(?!string)\w+\]", lambda one: self._map(one[0], package, owner), around)
        if "." in name:
            module, _, short = name.rpartition(".")
            version = re.search(r"v\d\w*$", module)
            name = f"{version[0] if version else module}.{short}"
        elif name == "byte":
            name = "uint8"
        elif name not in SCALARS:
            name = f"{owner.split('.')[-2]}.{name}"
        return around + name

    def _map(self, text: str, package: Package | None, owner: str) -> str:
        return f"map[{owner.split('.')[-2]}.{text[4:-1]}]"

    def plain(self, shape: str) -> str:
        """What errors would call the type if the Go type had no name of its own."""
        if shape.startswith("[]"):
            return "[]" + self.plain(shape[2:])
        if shape.startswith("{}"):
            return "map[string]" + self.plain(shape[2:])
        if shape.startswith("#"):
            return ".".join(shape.split(".")[-2:])
        return shape


def main() -> None:
    """Writes the table."""
    with gzip.open(DATA / "openapi/v2.json.gz") as file:
        definitions = json.load(file)["definitions"]
    table = Types(Path(sys.argv[1]), definitions).table()
    text = json.dumps(table, separators=(",", ":"))
    (DATA / "types.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(len(table), "types,", len(text), "bytes")


if __name__ == "__main__":
    main()
