"""Writes what a reader of Kubernetes' protobuf needs: descriptors, and what only Go's sources tell of each field.

    python protobuf_fields.py DESCRIPTOR_SET SOURCES OUTPUT

Which fields are pointers decides whether a zero was said or is only the absence of a value; which ones are inline
decides where their content stands in JSON.
"""

import base64
import gzip
import json
import re
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2

STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^\t(?:\w+\s+)?(\*?)[\w\[\]\.\*]+\s+`json:\"([^\"]*)\"[^`]*protobuf:\"\w+,(\d+),", re.MULTILINE)


def fields(sources: Path) -> dict[str, dict[str, list[object]]]:
    """By message and field number: the name in JSON (empty if inline), and whether it is a pointer."""
    found: dict[str, dict[str, list[object]]] = {}
    for path in sorted((sources / "k8s.io").rglob("types*.go")):
        package = ".".join(path.parent.relative_to(sources).parts)
        for name, body in STRUCT.findall(path.read_text()):
            for pointer, tag, number in FIELD.findall(body):
                said = tag.split(",")[0]
                found.setdefault(f"{package}.{name}", {})[number] = [said, bool(pointer)]
    return found


def main(arguments: list[str]) -> None:
    """Of the messages in the descriptor set."""
    descriptors, sources, output = Path(arguments[0]), Path(arguments[1]), Path(arguments[2])
    found = descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())
    known = {f"{file.package}.{message.name}" for file in found.file for message in file.message_type}
    said = {name: facts for name, facts in fields(sources).items() if name in known}
    content = {"descriptors": base64.b64encode(descriptors.read_bytes()).decode(), "fields": said}
    with output.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        packed.write(json.dumps(content, sort_keys=True).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
