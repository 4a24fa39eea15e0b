"""Links of README and the other pages outside `docs/` lead to files and headings; `make docs` checks those inside."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    ROOT.glob("examples/**/*.md")
)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def anchors(page: Path) -> set[str]:
    """The names that GitHub and MkDocs give to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for link in filter(None, (found[1] or found[2] for found in LINK.finditer(page.read_text()))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
            broken.append(link)
    assert broken == []


def test_the_start_page_leads_to_every_page_for_users():
    """Those below a metric are reached from the page of metrics."""
    docs = ROOT / "docs"
    pages = {
        str(page.relative_to(docs))
        for kind in ("howto", "reference", "explanation")
        for page in docs.glob(f"{kind}/*.md")
    }
    linked = {found[1].partition("#")[0] for found in LINK.finditer((docs / "index.md").read_text()) if found[1]}
    assert pages | {"tutorial.md", "reference/metrics/index.md"} <= linked


DOCS = sorted((ROOT / "docs").rglob("*.md"))


def headless(text: str) -> list[str]:
    """Rows that no heading stands above, as after an empty line within a table: they are shown as text with bars."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    blocks = re.findall(r"(?:^\|.*\n?)+", prose, re.M)
    return [block.splitlines()[0] for block in blocks if not re.match(r"\|.*\n\|[-:| ]+\|$", block, re.M)]


def test_every_table_of_the_documentation_has_its_heading():
    assert headless("| a |\n|---|\n| b |\n\n| c |\n") == ["| c |"]
    assert {
        str(page.relative_to(ROOT)): headless(page.read_text()) for page in DOCS if headless(page.read_text())
    } == {}
