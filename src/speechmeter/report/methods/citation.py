"""How Speechmeter is cited: BibTeX from `CITATION.cff`, which is in every wheel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from speechmeter.report.escaping import latex_text

FILE = "CITATION.cff"


def citation() -> dict[str, Any]:
    """What the file says. A wheel has it inside the package, a checkout at its root."""
    import yaml

    packed = files("speechmeter") / FILE
    text = (packed if packed.is_file() else Path(__file__).parents[4] / FILE).read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def citation_key(data: Mapping[str, Any]) -> str:
    """What a paper cites: the first word of the title, and the year where there is one."""
    word = re.sub(r"\W", "", str(data["title"]).split()[0]).lower()
    return f"{word}{str(data.get('date-released', ''))[:4]}"


def bibtex(data: Mapping[str, Any], versions: Sequence[str] = ()) -> str:
    """The entry for what the file says. `versions` are those that measured; by default the file's own."""
    fields = {
        "title": f"{{{latex_text(str(data['title']))}}}",
        "author": " and ".join(_author(author) for author in data["authors"]),
        "version": latex_text(", ".join(versions) or str(data.get("version", ""))),
        "year": str(data.get("date-released", ""))[:4],
        "doi": str(data.get("doi", "")),
        "url": str(data.get("url") or data.get("repository-code") or ""),
        "license": str(data.get("license", "")),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@software{{{citation_key(data)},", *lines, "}"])


def _author(author: Mapping[str, Any]) -> str:
    """`Family, Given` of a person; a group in braces, so that its name is not taken apart."""
    if "name" in author:
        return f"{{{latex_text(str(author['name']))}}}"
    family = " ".join(str(author[part]) for part in ("name-particle", "family-names") if author.get(part))
    return latex_text(", ".join(filter(None, [family, str(author.get("given-names", ""))])))
