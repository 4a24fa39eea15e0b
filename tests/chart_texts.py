"""Where the texts of a drawing are: boxes by the widths of DejaVu Sans, and which of them lie on each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from xml.etree import ElementTree

from speechmeter.report.charts.letters import wide_px

_MOVE = re.compile(r"translate\(([-\d.e]+)[, ]([-\d.e]+)\)")
_ABOVE, _BELOW = 0.72, 0.2
"""Of the size of letters: what a line of text takes above and below its base line."""


@dataclass(frozen=True)
class Box:
    """A line of text and its edges in pixels."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def on(self, other: Box) -> bool:
        """Whether the two share more than a hair's breadth."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide > 1 and high > 1


def boxes(svg: str) -> list[Box]:
    """Every visible line of text in an SVG by vl-convert."""
    return list(_inside(ElementTree.fromstring(svg), 0.0, 0.0))


def overlaps(svg: str) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    return [(one.text, other.text) for one, other in combinations(boxes(svg), 2) if one.on(other)]


def cut_off(svg: str) -> list[str]:
    """Texts that reach beyond the drawing."""
    _, _, wide, high = map(float, ElementTree.fromstring(svg).get("viewBox", "0 0 0 0").split())
    return [
        box.text for box in boxes(svg) if min(box.left, box.top) < -1 or box.right > wide + 1 or box.bottom > high + 1
    ]


def _inside(element: ElementTree.Element, x: float, y: float) -> Iterator[Box]:
    if element.get("opacity") == "0":
        return
    moves = _MOVE.findall(element.get("transform", ""))
    x, y = x + sum(float(right) for right, _ in moves), y + sum(float(down) for _, down in moves)
    if element.tag.endswith("}svg") and element.get("y"):
        y += float(element.get("y", "0"))
    if element.tag.endswith("}text"):
        yield from _lines(element, x, y)
    for child in element:
        yield from _inside(child, x, y)


def _lines(element: ElementTree.Element, x: float, y: float) -> Iterator[Box]:
    size = float(element.get("font-size", "11px").removesuffix("px"))
    bold = element.get("font-weight") == "bold"
    spans = list(element) or [element]
    down = 0.0
    for span in spans:
        down += float(span.get("dy", "0")) if span is not element else 0.0
        text = (span.text or "").strip()
        if text:
            wide = wide_px(text, size, bold=bold) * 0.94  # the estimate is on the safe side
            before = {"start": 0.0, "middle": wide / 2, "end": wide}[element.get("text-anchor", "start")]
            along, above, below = (-before, wide - before), down - _ABOVE * size, down + _BELOW * size
            if "rotate(-90" in element.get("transform", ""):
                yield Box(text, x + above, y - along[1], x + below, y - along[0])
            else:
                yield Box(text, x + along[0], y + above, x + along[1], y + below)
