"""A badge: a figure with its interval as a small SVG picture, for a README or a web page."""

from __future__ import annotations

from html import escape

from speechmeter.report.charts.letters import cut, wide_px
from speechmeter.report.charts.style import FONT
from speechmeter.report.large_figures import Finding

_HEIGHT, _EDGE, _SIZE = 22, 8, 11.0
_LEFT, _RIGHT, _INK = "#3b434c", "#0b5cad", "#ffffff"
_MOST_PX = 360.0


def badge(finding: Finding) -> str:
    """The picture: whose figure it is at the left, the figure at the right. Texts that are too long are cut."""
    interval = finding.interval.removeprefix("95 % interval ").partition(": no interval")[0]
    figure = f"{finding.value} {finding.unit}".strip()
    name, value = cut(finding.name, _MOST_PX, _SIZE), cut(f"{figure} ({interval})", _MOST_PX, _SIZE)
    left, right = (wide_px(text, _SIZE) + 2 * _EDGE for text in (name, value))
    title = escape(f"{finding.name}: {figure}, {finding.interval}; {finding.label}")
    texts = "".join(
        f'<text x="{middle:.0f}" y="15" text-anchor="middle" fill="{_INK}">{escape(text)}</text>'
        for middle, text in ((left / 2, name), (left + right / 2, value))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="{_HEIGHT}" role="img" '
        f'font-family="{escape(FONT)}" font-size="{_SIZE:g}"><title>{title}</title>'
        f'<clipPath id="round"><rect width="{left + right:.0f}" height="{_HEIGHT}" rx="4"/></clipPath>'
        f'<g clip-path="url(#round)"><rect width="{left:.0f}" height="{_HEIGHT}" fill="{_LEFT}"/>'
        f'<rect x="{left:.0f}" width="{right:.0f}" height="{_HEIGHT}" fill="{_RIGHT}"/></g>{texts}</svg>\n'
    )
