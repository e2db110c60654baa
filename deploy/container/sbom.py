"""``python sbom.py ROOT COMPONENT``: prints what an image contains, as CycloneDX in JSON.

Reads the installed Python distributions (*.dist-info) and the Debian packages (var/lib/dpkg/status.d) below ROOT.
"""

import importlib.metadata
import sys
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

SITE = "opt/lastcall/lib/python3.11/site-packages"


def python_components(root: Path) -> Iterator[Component]:
    """One for each installed distribution."""
    for found in importlib.metadata.distributions(path=[str(root / SITE)]):
        name, version = found.metadata["Name"], found.version
        yield library(name, version, PackageURL("pypi", name=name.lower().replace("_", "-"), version=version))


def debian_components(root: Path) -> Iterator[Component]:
    """One for each unpacked package."""
    for file in sorted((root / "var/lib/dpkg/status.d").iterdir()):
        fields = Parser().parsestr(file.read_text(encoding="utf-8"))
        name, version = fields["Package"], fields["Version"]
        qualifiers = {"arch": fields["Architecture"], "distro": "debian-12"}
        yield library(name, version, PackageURL("deb", "debian", name, version, qualifiers))


def library(name: str, version: str, purl: PackageURL) -> Component:
    """A package that is identified by its purl."""
    return Component(name=name, version=version, type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl))


def main(root: Path, component: str) -> None:
    """Prints the bill of materials."""
    components = sorted([*python_components(root), *debian_components(root)], key=lambda one: str(one.purl))
    [version] = [one.version for one in components if str(one.purl).startswith("pkg:pypi/lastcall@")]
    bom = Bom(components=components)
    bom.metadata.component = Component(
        name=f"lastcall-{component}", version=version, type=ComponentType.CONTAINER, bom_ref=f"lastcall-{component}"
    )
    bom.register_dependency(bom.metadata.component, components)
    sys.stdout.write(JsonV1Dot6(bom).output_as_string(indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
