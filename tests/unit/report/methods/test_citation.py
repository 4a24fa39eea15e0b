"""BibTeX from CITATION.cff: the file is whole, is in the wheel, and every field finds its place."""

import re
from pathlib import Path

import speechmeter
from speechmeter.report.methods.paragraph import CITATION, bibtex, citation, citation_key

ROOT = Path(__file__).parents[4]


def test_the_file_is_that_of_this_version_and_goes_into_the_wheel():
    assert citation()["version"] == speechmeter.__version__
    assert citation()["cff-version"] == "1.2.0"
    packed = (ROOT / "pyproject.toml").read_text().partition("[tool.hatch.build.targets.wheel.force-include]")[2]
    assert f'"{CITATION}" = "speechmeter/{CITATION}"' in packed.splitlines()[1]


def test_the_entry_holds_what_the_file_says():
    entry = bibtex(citation())
    assert entry.startswith("@software{speechmeter,\n") and entry.endswith("\n}")
    assert "  title = {{Speechmeter}}," in entry
    assert "  author = {{The Speechmeter developers}}," in entry
    assert f"  version = {{{speechmeter.__version__}}}," in entry
    assert len(re.findall("[{]", entry)) == len(re.findall("[}]", entry))


def test_persons_years_and_addresses_have_their_fields():
    data = {
        "title": "A & B",
        "authors": [
            {"family-names": "Fant", "given-names": "Gunnar"},
            {"family-names": "Beethoven", "given-names": "Ludwig", "name-particle": "van"},
            {"name": "R&D group"},
        ],
        "date-released": "2026-12-01", "version": "2.0", "doi": "10.1/x", "repository-code": "https://example.org/ab",
    }  # fmt: skip
    entry = bibtex(data)
    assert citation_key(data) == "a2026"
    assert r"  title = {{A \& B}}," in entry
    assert r"  author = {Fant, Gunnar and van Beethoven, Ludwig and {R\&D group}}," in entry
    assert "  year = {2026}," in entry and "  doi = {10.1/x}," in entry
    assert "  url = {https://example.org/ab}," in entry


def test_versions_that_measured_come_before_that_of_the_file():
    assert "  version = {0.1.0, 0.2.0}," in bibtex(citation(), ["0.1.0", "0.2.0"])
