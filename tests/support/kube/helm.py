"""The real Helm, in a process of its own: it is a Go library, whose threads and signals are not for the tests' process.

As a program this module makes the calls that it reads as JSON from standard input, one in a line: the method, its
arguments. One such program makes all calls of the tests' process that need no environment of their own.
"""

import atexit
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy/helm/lastcall"
NAMESPACE = "lastcall-system"


class HelmFailed(Exception):
    """Helm refuses, and says why."""


def call(method, *arguments, config=None, environment=None, **options):
    """What a function of ``helm_python`` returns, or a method of its Config."""
    request = {"method": method, "arguments": arguments, "options": options, "config": config}
    line = json.dumps(request, default=str) + "\n"
    answer = json.loads(_ask_shared_program(line) if environment is None else _ask_own_program(line, environment))
    if "failure" in answer:
        raise HelmFailed(answer["failure"])
    return answer["result"]


def _ask_own_program(line, environment):
    done = subprocess.run(
        [sys.executable, __file__],
        input=line,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _ask_shared_program(line):
    program = _shared_program()
    program.stdin.write(line)
    program.stdin.flush()
    answer = program.stdout.readline()
    assert answer, "Helm's program has ended, and has said why on standard error"
    return answer


@functools.cache
def _shared_program():
    program = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end_program, program)
    return program


def _end_program(program):
    with program:
        program.kill()


def render(values=None, *, namespace=NAMESPACE, chart=CHART):
    """Files by the names of their templates, as ``helm template`` prints them."""
    return call("render", chart, values or {}, name="lastcall", namespace=namespace)


def objects(files):
    """The objects of rendered files."""
    found = [list(yaml.safe_load_all(text)) for name, text in files.items() if name.endswith(".yaml")]
    return [one for documents in found for one in documents if one]


class Helm:
    """Releases of the chart in a cluster."""

    def __init__(self, kubeconfig, home, namespace=NAMESPACE):
        self._config = {"kubeconfig_path": str(kubeconfig), "namespace": namespace}
        self._environment = os.environ | {"HOME": str(home), "HELM_CACHE_HOME": str(home / "helm")}

    def __call__(self, method, *arguments, **options):
        """A method of Config: ``helm("install", CHART, "lastcall", {}, namespace=...)``."""
        return call(method, *arguments, config=self._config, environment=self._environment, **options)


def _answer(request):
    import helm_python

    method, arguments, options = request["method"], request["arguments"], request["options"]
    if request["config"]:
        with helm_python.Config(**request["config"]) as config:
            return getattr(config, method)(*arguments, **options)
    if method in ("render", "validate_schema"):
        with helm_python.Chart.load(arguments[0]) as chart:
            return getattr(chart, method)(*arguments[1:], **options)
    return getattr(helm_python, method)(*arguments, **options)


def _main():
    import helm_python

    for line in sys.stdin:
        try:
            answer = {"result": _answer(json.loads(line))}
        except helm_python.HelmError as error:
            answer = {"failure": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
