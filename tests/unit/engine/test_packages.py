"""The distributions of what was imported, against what the standard library says of them."""

import importlib.metadata
import sys
from types import ModuleType

import numpy  # noqa: F401 - one of those that are listed
import soundfile  # noqa: F401
import yaml  # noqa: F401

from speechmeter.engine.packages import imported_distributions


def plain(name):
    return name.lower().replace("_", "-").replace(".", "-")


def test_every_imported_package_has_the_version_that_pip_knows():
    found = imported_distributions().versions
    owners = importlib.metadata.packages_distributions()
    tops = {name for name, module in sys.modules.items() if "." not in name and getattr(module, "__file__", None)}
    wanted = {owner for top in tops if top not in sys.stdlib_module_names for owner in owners.get(top, ())}
    assert {plain(name) for name in wanted} - set(found) == set()
    assert {"numpy", "soundfile", "pyyaml", "speechmeter"} <= set(found)
    for name in wanted:
        assert found[plain(name)] == importlib.metadata.version(name)


def module(name, file, version=None, parts=None):
    made = ModuleType(name)
    made.__file__ = str(file)
    if parts is not None:
        made.__path__ = parts
    if version is not None:
        made.__version__ = version
    return made


def test_metadata_of_all_kinds_and_modules_of_nobody(tmp_path):
    site = tmp_path / "site-packages"
    for folder, tops, record in [
        ("Faster_Whisper-1.2.dist-info", None, "faster_whisper/__init__.py,,\n"),
        ("scikit_learn-1.9+local.dist-info", "sklearn\n", ""),
        ("two.parts-3.dist-info", None, "left/a.py,,\nright.py,,\n"),
        ("old-0.1-py3.9.egg-info", "oldest\n", None),
    ]:
        (site / folder).mkdir(parents=True)
        if tops is not None:
            (site / folder / "top_level.txt").write_text(tops)
        if record is not None:
            (site / folder / "RECORD").write_text(record)
    (site / "Faster_Whisper-1.2.dist-info" / "METADATA").write_text(
        "Name: faster-whisper\nRequires-Dist: Two_Parts[all]>=3\n"
        "Requires-Dist: old; extra == 'dev'\n\nRequires-Dist: scikit-learn\n"
    )
    found = imported_distributions({
        "faster_whisper": module("faster_whisper", site / "faster_whisper" / "__init__.py", parts=[]),
        "faster_whisper.audio": module("faster_whisper.audio", site / "faster_whisper" / "audio.py"),
        "sklearn": module("sklearn", site / "sklearn" / "__init__.py", parts=[]),
        "right": module("right", site / "right.py"),
        "oldest": module("oldest", site / "oldest.py"),
        "mine": module("mine", tmp_path / "mine.py"),
        "built_here": module("built_here", tmp_path / "src" / "built_here" / "__init__.py", "2.0", parts=[]),
        "json": module("json", site / "json.py"),
        "made_up": ModuleType("made_up"),
    })  # fmt: skip
    assert found.versions == {
        "built-here": "2.0", "faster-whisper": "1.2", "old": "0.1", "scikit-learn": "1.9+local", "two-parts": "3",
    }  # fmt: skip
    assert found.leading == ("built-here", "faster-whisper", "old", "scikit-learn")
