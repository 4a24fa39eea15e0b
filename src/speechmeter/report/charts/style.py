"""Colours that colour-blind readers can distinguish, and how charts look in light, dark and print."""

from __future__ import annotations

from typing import Any

CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
"""Okabe and Ito's colours without black and yellow, which vanish on one of the two grounds, and two quiet ones."""
RAMP = "cividis"
"""From dark blue (low) to yellow (high); even steps for every kind of colour vision."""
RAMP_TURN = 0.47
"""Above this value of the ramp black text has more contrast than white; both have 4.6 there."""
TINTS = ["#c9ced4", "#9ecae1", "#fdc38f", "#a3dcc4", "#e8bcd8", "#f5da8c", "#c3d4f2", "#dccba6", "#e4e6e8"]
"""Light grounds for black text in both themes, in the order of the categories; the first is quiet."""
TINT_LINE = "#59636e"
"""Around blocks of a light ground."""
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
BLACK, WHITE = "#000000", "#ffffff"


def theme(ink: str, quiet: str, line: str, ground: str | None, categories: tuple[str, ...]) -> dict[str, Any]:
    """The `config` of a specification: text in `ink` and `quiet`, grid lines in `line`."""
    return {
        "background": ground,
        "font": FONT,
        "axis": {
            "labelColor": ink, "titleColor": ink, "domainColor": quiet, "tickColor": quiet, "gridColor": line,
            "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 220,
            "labelOverlap": "greedy", "labelSeparation": 4,
        },
        "axisY": {"titlePadding": 8},
        "legend": {
            "labelColor": ink, "titleColor": ink, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
            "orient": "bottom", "labelLimit": 260, "columns": 2, "symbolStrokeWidth": 2,
            "symbolOpacity": 1,
            "symbolBaseFillColor": ink, "symbolBaseStrokeColor": ink,
            "layout": {"bottom": {"direction": "vertical", "anchor": "start"}},
        },
        "title": {
            "color": ink, "fontSize": 12, "fontWeight": "bold", "anchor": "start",
            "subtitleColor": quiet, "subtitleFontSize": 10,
        },
        "view": {"stroke": None},
        "mark": {"color": categories[0]},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": quiet},
        "range": {"category": list(categories), "heatmap": {"scheme": RAMP}, "ramp": {"scheme": RAMP}},
        "style": {
            "gap": {"color": quiet, "fill": quiet, "opacity": 0.13},
            "gap-text": {"fill": ink, "fontSize": 11},
            "quiet-line": {"stroke": quiet},
            "quiet": {"fill": quiet, "stroke": quiet},
            "quiet-text": {"fill": quiet, "fontSize": 11},
        },
    }  # fmt: skip


PAGE = theme("var(--ink)", "var(--quiet)", "var(--line)", None, tuple(f"var(--c{n})" for n in range(1, 9)))
"""Colours by name: the style sheet of the page says what they are in light, in dark and in print."""
PAPER = theme(BLACK, "#444444", "#dddddd", WHITE, CATEGORIES)


def text_on(colour: str) -> str:
    """Black or white, whichever has more contrast on a ground of this colour (`#rrggbb`)."""
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return BLACK if luminance > 0.179 else WHITE
