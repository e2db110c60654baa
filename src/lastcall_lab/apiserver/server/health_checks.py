"""``/healthz``, ``/livez`` and ``/readyz``: overall, one check by name, or verbose (pure)."""

from collections.abc import Sequence

_CHECKS = {
    "healthz": ("ping", "log", "etcd"),
    "livez": ("ping", "log", "etcd"),
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"),
}
"""The checks of Kubernetes that apply to the lab; a server that responds is healthy."""


def health_report(path: str, *, verbose: bool, excluded: Sequence[str]) -> str | None:
    """The report at ``path``, such as ``readyz`` or ``livez/ping``; None if the check does not exist."""
    name, _, check = path.partition("/")
    checks = _CHECKS.get(name)
    if checks is None or (check and check not in checks):
        return None
    if check:
        return "ok"
    if not verbose:
        return "ok"
    lines = [f"[+]{one} excluded: ok" if one in excluded else f"[+]{one} ok" for one in checks]
    unknown = [one for one in excluded if one not in checks]
    if unknown:
        said = ", ".join(f'"{one}"' for one in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {said}")
    return "\n".join([*lines, f"{name} check passed\n"])
