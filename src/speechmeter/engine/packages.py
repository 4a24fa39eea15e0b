"""Which distributions the imported packages belong to, with their versions.

The standard library's `packages_distributions` reads files of every distribution that is installed: a quarter of a
second in a large environment, for each process. Most packages are found by the names of metadata folders alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path
from types import ModuleType

_OURS = "speechmeter"
_METADATA = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)(-py[\d.]+)?\.(dist|egg)-info")
_SITES = ("site-packages", "dist-packages")
_REQUIRES = "Requires-Dist: "
_NAME = re.compile(r"[\w.-]+")
_EDITABLE = re.compile(r'"editable":\s*true')


@dataclass(frozen=True, kw_only=True)
class _Installed:
    """A distribution, as the name of its metadata's folder states it."""

    name: str
    version: str
    folder: Path

    def has(self, packages: Iterable[str]) -> bool:
        """Whether it installed one of these top-level packages."""
        files = Distribution.at(self.folder)
        tops = (files.read_text("top_level.txt") or "").split()
        tops = tops or [line.partition("/")[0].partition(".")[0] for line in _lines(files.read_text("RECORD"))]
        return not set(packages).isdisjoint(tops)

    def requires(self) -> list[str]:
        """The distributions that it cannot do without."""
        text = Distribution.at(self.folder).read_text("METADATA") or ""
        lines = text.partition("\n\n")[0].splitlines()
        needed = (line for line in lines if line.startswith(_REQUIRES) and "extra ==" not in line)
        return [_plain(match[0]) for line in needed if (match := _NAME.match(line[len(_REQUIRES) :]))]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The version of each distribution that an imported top-level package belongs to, by the name that pip spells.

    Of a package that no distribution installed, such as a source folder on the path, it is the version that the package
    itself states. A package without one, as a file of the user's own, is not listed. `leading` are those that none of
    the others requires: of a few dozen, the ones to name in a sentence.
    """

    versions: dict[str, str]
    leading: tuple[str, ...]


def imported_distributions(modules: Mapping[str, ModuleType] = sys.modules) -> Imported:
    """What the modules were imported from."""
    found: dict[str, str] = {}
    claimed: list[_Installed] = []
    unclaimed: dict[Path, list[str]] = {}
    sites: dict[Path, dict[str, _Installed]] = {}
    for name, module in sorted(modules.items()):
        folder = _folder(name, module)
        if folder is None:
            continue
        if folder.name in _SITES and folder not in sites:
            sites[folder] = _installed_in(folder)
        known = sites.get(folder, {}).get(_plain(name))
        if known is not None:
            claimed.append(known)
        elif folder in sites:
            unclaimed.setdefault(folder, []).append(name)
        elif stated := _elsewhere(name, module):
            found[_plain(name)] = stated
    for folder, names in unclaimed.items():
        claimed += [one for one in sites[folder].values() if one not in claimed and one.has(names)]
    found |= {one.name: one.version for one in claimed}
    required = {name for one in claimed for name in one.requires() if name != one.name}
    return Imported(versions=dict(sorted(found.items())), leading=tuple(sorted(found.keys() - required)))


def _folder(name: str, module: ModuleType) -> Path | None:
    """The folder that a top-level package lies in; None for the standard library and for what is no file."""
    if "." in name or name == "__main__" or name in sys.stdlib_module_names:
        return None
    file, parts = getattr(module, "__file__", None), getattr(module, "__path__", None)
    if isinstance(file, str):
        return Path(file).parents[1 if parts is not None else 0]
    first = next(iter(parts or ()), None)  # a namespace package has folders alone
    return Path(first).parent if isinstance(first, str) else None


def _installed_in(folder: Path) -> dict[str, _Installed]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return {}
    found = [(match, entry) for entry in entries if (match := _METADATA.fullmatch(entry.name))]
    return {
        _plain(match["name"]): _Installed(name=_plain(match["name"]), version=match["version"], folder=entry)
        for match, entry in found
    }


def _elsewhere(name: str, module: ModuleType) -> str | None:
    """The version of a package outside of the installed ones: of the distribution that refers to it, or its own."""
    try:
        if name == _OURS or _EDITABLE.search(distribution(name).read_text("direct_url.json") or ""):
            return version(name)
    except PackageNotFoundError:
        pass
    stated = getattr(module, "__version__", None)
    return stated if isinstance(stated, str) else None


def _plain(name: str) -> str:
    """One spelling of the many that pip takes for the same."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _lines(text: str | None) -> list[str]:
    return (text or "").splitlines()
