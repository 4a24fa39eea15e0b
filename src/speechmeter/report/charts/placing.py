"""Names beside the points of a chart: where each has room, so that no legend is needed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from speechmeter.report.charts.figure import Rows
from speechmeter.report.charts.letters import cut, wide_px

WIDE_PX = 230
"""What a column of a paper leaves for the points: names that have room there have room in a wider chart."""
_MOST_NAMES = 16
"""With more models than this none has its name beside its points: the names would not be read."""
_MOST_NAME_PX = 125
_HALF_LINE_PX, _HALF_POINT_PX = 6.5, 5
_SIDES = tuple(
    (align, right, down)
    for down in (0, -14, 14)
    for align, right in (("left", 8), ("right", -8), ("center", 0))
    if down or align != "center"
)
"""Where a name may be beside its point, best first: alignment, and pixels right and down."""
_MOST_TRIES = 20_000
Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels from the top left."""
_Choice = tuple[int, tuple[str, int, int], Box]


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of a chart in pixels from the top left, the ends of its bars, and whose it is."""

    name: str
    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float

    @property
    def boxes(self) -> tuple[Box, Box, Box]:
        """The mark and its bars."""
        half = _HALF_POINT_PX
        mark = (self.x - half, self.y - half, self.x + half, self.y + half)
        return mark, (self.left, self.y - 1, self.right, self.y + 1), (self.x - 1, self.top, self.x + 1, self.bottom)


def named_beside(
    rows: Rows,
    points: Sequence[Point],
    height_px: float,
    obstacles: Sequence[Point] = (),
    ends: Collection[int] | None = None,
) -> Rows:
    """The rows, one of each name with where the name is to be: `name`, `align`, `right` and `down`.

    A name is beside one of its own points (one of those at `ends`, if these are given), on no other name and on no
    point, bar or obstacle of another. Where that cannot be, no row has one: a legend has them then.
    """
    names = list(dict.fromkeys(point.name for point in points))
    if len(names) > _MOST_NAMES:
        return rows
    everything = [(point.name, box) for point in (*points, *obstacles) for box in point.boxes]
    choices: list[list[_Choice]] = []
    for name in names:
        wide = wide_px(_short(name))
        others = [box for whose, box in everything if whose != name]
        own = [box for whose, box in everything if whose == name]
        at = [(index, point) for index, point in enumerate(points)
              if point.name == name and (ends is None or index in ends)]  # fmt: skip
        boxes = [(index, side, _box(side, point.x, point.y, wide)) for index, point in reversed(at) for side in _SIDES]
        inside = [one for one in boxes if not _outside(one[2], height_px)]
        free = [one for one in inside if not any(_overlap(one[2], other) for other in others)]
        choices.append(sorted(free, key=lambda one: sum(_overlap(one[2], box) for box in own)))
    made = list(rows)
    for name, (index, (align, right, down), _) in zip(names, _apart(choices), strict=False):
        made[index] = {**rows[index], "name": _short(name), "align": align, "right": right, "down": down}
    return made


def names_layer(x: Any, y: Any) -> Any:
    """The layer of a chart that draws the names of `named_beside`."""
    import altair as alt

    beside = {"align": alt.expr("datum.align"), "dx": alt.expr("datum.right"), "dy": alt.expr("datum.down")}
    named = alt.Chart().transform_filter("isValid(datum.name)").encode(x=x, y=y, text="name:N")
    return named.mark_text(baseline="middle", tooltip=None, **beside)


def _short(name: str) -> str:
    return cut(name, _MOST_NAME_PX)


def _apart(choices: Sequence[Sequence[_Choice]]) -> list[_Choice]:
    """One choice of each, no two of whose boxes overlap; empty where none was found."""
    chosen: list[_Choice] = []
    tried = [0] * len(choices)
    for _ in range(_MOST_TRIES):
        index = len(chosen)
        if index == len(choices):
            return chosen
        if tried[index] == len(choices[index]):  # back to the one before
            if not chosen:
                return []
            tried[index] = 0
            chosen.pop()
            continue
        one = choices[index][tried[index]]
        tried[index] += 1
        if not any(_overlap(one[2], other[2]) for other in chosen):
            chosen.append(one)
    return []


def _box(side: tuple[str, int, int], x: float, y: float, wide: float) -> Box:
    align, right, down = side
    left = x + right - {"left": 0.0, "center": wide / 2, "right": wide}[align]
    return left, y + down - _HALF_LINE_PX, left + wide, y + down + _HALF_LINE_PX


def _overlap(one: Box, other: Box) -> float:
    """Square pixels that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0


def _outside(box: Box, height_px: float) -> bool:
    """Whether a name would be on the axes or beyond the drawing."""
    return box[0] < 2 or box[2] > WIDE_PX + _HALF_LINE_PX or box[1] < -_HALF_LINE_PX or box[3] > height_px
