"""How large a cluster can be rehearsed in virtual time: a virtual hour of rolling reboot, from ten nodes to a thousand."""

import json
import math
import subprocess
import sys
from pathlib import Path

from figures import Figures, Row

from lastcall_lab.simulation.fleet import PODS_PER_NODE

HERE = Path(__file__).parent
PLOT = HERE.parent / "docs" / "images" / "simulation-growth.svg"
SIZES = (10, 30, 100, 300, 1000)
HOUR = 3600.0
MOST_SECONDS, MOST_GIB = 180.0, 3.0
"""For the largest of the sizes."""
AT_ONCE = 1
"""Machines that are rebooted at a time; the next when the last is ready and every workload is whole."""


def rows(*, quick, tell):
    """Each size in a process of its own, whose memory is its own; draws the plot unless ``quick``."""
    sizes, seconds = ((3,), 200.0) if quick else (SIZES, HOUR)
    found = []
    for nodes in sizes:
        tell(f"{seconds / 60:.0f} virtual minutes of {nodes} nodes")
        command = [sys.executable, str(HERE / "simulate_one.py"), str(nodes), str(AT_ONCE), str(seconds)]
        found.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    if not quick:
        PLOT.write_text(plot([(one["nodes"], one["wall"]) for one in found]))
    return [row for one in found for row in _rows(one)]


def _rows(one):
    nodes, pods, largest = one["nodes"], one["nodes"] * PODS_PER_NODE, one["nodes"] == SIZES[-1]
    what = f"rolling reboot of {nodes} nodes in virtual time, {one['rebooted']} machines in the time"
    seconds = Figures((one["wall"],), "s")
    memory = Figures((one["memory"],), "GiB")
    yield Row(what, pods, seconds, limit=MOST_SECONDS if largest else None)
    yield Row(f"{what}: memory", pods, memory, limit=MOST_GIB if largest else None)


# -- the plot ----------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, MARGIN = 640, 360, 56


def plot(points):
    """Both axes are logarithmic, so that a straight line of 45 degrees is a cost that grows as the cluster does."""
    lows = [10 ** math.floor(math.log10(min(column))) for column in zip(*points, strict=True)]
    highs = [10 ** math.ceil(math.log10(max(column))) for column in zip(*points, strict=True)]

    def place(nodes, seconds):
        across, up = (
            (math.log10(value) - math.log10(low)) / max(1, math.log10(high) - math.log10(low))
            for value, low, high in zip((nodes, seconds), lows, highs, strict=True)
        )
        return MARGIN + across * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)

    parts = [*_grid(place, lows, highs), *_line(place, points)]
    style = "text{font:13px sans-serif;fill:#57606a}.g{stroke:#d0d7de}.l{stroke:#0969da;fill:none;stroke-width:2}"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    title = "Seconds of wall time for a virtual hour, by the number of nodes"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">',
            f"<style>{style}</style>",
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="{WIDTH / 2}" y="24" text-anchor="middle">{title}</text>',
            *parts,
            "</svg>\n",
        ]
    )


def _grid(place, lows, highs):
    for nodes in _decades(lows[0], highs[0]):
        (x, bottom), (_, top) = place(nodes, lows[1]), place(nodes, highs[1])
        yield f'<line class="g" x1="{x:.1f}" y1="{bottom:.1f}" x2="{x:.1f}" y2="{top:.1f}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 20:.1f}" text-anchor="middle">{nodes:g} nodes</text>'
    for seconds in _decades(lows[1], highs[1]):
        (left, y), (right, _) = place(lows[0], seconds), place(highs[0], seconds)
        yield f'<line class="g" x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{seconds:g} s</text>'


def _decades(low, high):
    return [low * 10**power for power in range(round(math.log10(high / low)) + 1)]


def _line(place, points):
    places = [place(*point) for point in points]
    yield f'<polyline class="l" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'
    for (x, y), (_, seconds) in zip(places, points, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#0969da"/>'
        yield f'<text x="{x:.1f}" y="{y - 9:.1f}" text-anchor="middle">{seconds:.3g} s</text>'
