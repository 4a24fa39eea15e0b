"""How wide a text will be in a drawing, by the widths of DejaVu Sans, which is wider than other usual fonts."""

from __future__ import annotations

_EM = {
    **dict.fromkeys(" ',./:;IJ\\ijl|·", 0.34),
    **dict.fromkeys("!()-[]frt", 0.41),
    **dict.fromkeys('"*?_`csz–', 0.55),
    **dict.fromkeys("ABCKNRUVXZ", 0.71),
    **dict.fromkeys("#&+<=>DGHOQ^w~×±≥", 0.83),
    **dict.fromkeys("M%@Wm…", 1.0),
}
_USUAL, _BOLD, _OUTSIDE_LATIN = 0.63, 1.11, 1.05
SIZE = 11.0
"""Of the texts of a chart, in pixels."""


def wide_px(text: str, size: float = SIZE, *, bold: bool = False) -> float:
    """The width of a line of text in pixels."""
    ems = sum(_EM.get(letter, _USUAL if ord(letter) < 0x2E80 else _OUTSIDE_LATIN) for letter in text)
    return ems * size * (_BOLD if bold else 1.0)


def cut(text: str, most_px: float, size: float = SIZE, *, least: int = 1) -> str:
    """The text, or its beginning with an ellipsis where it is too wide; empty where fewer letters than `least` fit."""
    if wide_px(text, size) <= most_px:
        return text
    kept = text
    while kept and wide_px(f"{kept}…", size) > most_px:
        kept = kept[:-1]
    return f"{kept.rstrip()}…" if len(kept) >= least else ""


def in_two(text: str) -> list[str]:
    """A name of several parts, `a · b · c`, in the two lines that are least wide."""
    parts = text.split(" · ")
    ways = [[" · ".join(parts[:at]), " · ".join(parts[at:])] for at in range(1, len(parts))]
    return min(ways, key=lambda way: max(map(wide_px, way)))


def wrapped(text: str, most_px: float, size: float = SIZE, *, bold: bool = False, most_lines: int = 3) -> list[str]:
    """The text in lines that are no wider; the last of them ends in an ellipsis where the text is longer."""
    lines: list[str] = []
    words = text.split()
    while words:
        line = [words.pop(0)]
        while words and wide_px(" ".join([*line, words[0]]), size, bold=bold) <= most_px:
            line.append(words.pop(0))
        lines.append(cut(" ".join(line), most_px / (_BOLD if bold else 1.0), size))
    if len(lines) <= most_lines:
        return lines
    last = cut(f"{lines[most_lines - 1]} …", most_px / (_BOLD if bold else 1.0), size)
    return [*lines[: most_lines - 1], last]
