"""Word errors as the Open ASR Leaderboard counts them: its English normaliser, and compounds that count as one word.

No package carries its normaliser. It is Whisper's with other rules, written here by hand; with Whisper's numbers, which
`transformers` carries; and with three lists of words, which are read from a checkout of the leaderboard: they are
long, they change, and a figure is only comparable to the leaderboard with its own lists. Nothing of the checkout is
run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from speechmeter.core import metrics
from speechmeter.core.errors import InputError
from speechmeter.core.files import MIB, read_text
from speechmeter.core.types import Measurement

RULES_ID = "open-asr.v1"
"""The version of the rules below: those of the leaderboard from June 2026 on."""
VARIABLE = "SPEECHMETER_OPEN_ASR"
"""Names the folder of a checkout of the leaderboard."""
_LISTS_FILE = Path("normalizer", "english_abbreviations.py")
_LISTS = ("english_spelling_normalizer", "english_name_normalizer", "english_compound_normalizer")
_FIX = f"clone https://github.com/huggingface/open_asr_leaderboard and set {VARIABLE} to its folder"
_PACKAGES = ("kaldialign", "transformers")

_BRACKETS, _PARENTHESES = re.compile(r"[<\[][^>\]]*[>\]]"), re.compile(r"\(([^)]+?)\)")
_FILLERS = "hmm mm mhm mmm uh um ah aha ahh ahm eh ehehe em hm huh hum mhum uhm umm uhuh"
_WHOLE: Mapping[str, str] = {
    "won't": "will not", "can't": "can not", "let's": "let us", "ain't": "aint", "y'all": "you all",
    "wanna": "want to", "gotta": "got to", "gonna": "going to", "i'ma": "i am going to", "imma": "i am going to",
    "woulda": "would have", "coulda": "could have", "shoulda": "should have", "ma'am": "madam",
}  # fmt: skip
"""Contracted words, with what each stands for."""
_TITLES = (
    "mr mister mrs missus st saint dr doctor prof professor capt captain gov governor ald alderman gen general "
    "sen senator rep representative pres president rev reverend hon honorable asst assistant assoc associate "
    "lt lieutenant col colonel jr junior sr senior esq esquire"
)
"""Short forms of titles, each before its long form."""
_ENDINGS: Mapping[str, str] = {
    "'d been": " had been", "'s been": " has been", "'d gone": " had gone", "'s gone": " has gone",
    "'d done": " had done", "'s got": " has got", "n't": " not", "'re": " are",
}  # fmt: skip
_IS_AFTER = "it he she what that who here there how when where why this"
"""Words after which `'s` means `is`."""
_LAST_ENDINGS: Mapping[str, str] = {"'d": " would", "'ll": " will", "'t": " not", "'ve": " have", "'m": " am"}
_KEPT_SYMBOLS = ".%$¢€£"
_LONE_WORDS = frozenset("ai")
"""Letters that are words: a run of single letters that has one is joined from three letters on."""


@dataclass(frozen=True, kw_only=True)
class WordLists:
    """Spellings, names and compounds that get one form; `digest` tells two versions of the lists apart."""

    spellings: Mapping[str, str]
    names: Mapping[str, str]
    compounds: tuple[tuple[re.Pattern[str], str], ...]
    digest: str


def lacking() -> str | None:
    """What is missing here to score as the leaderboard does, and how to get it; None when nothing is."""
    absent = [package for package in _PACKAGES if find_spec(package) is None]
    if absent:
        return f"{absent[0]} is not installed: pip install 'speechmeter[open-asr]'"
    return None if os.environ.get(VARIABLE) else f"the leaderboard's word lists are missing; {_FIX}"


def lists_of(folder: Path) -> WordLists:
    """The lists in a checkout. They are read as literals; no line of the file is run. Raises InputError."""
    path = folder / _LISTS_FILE
    try:
        text = read_text(path, 4 * MIB)
        found = {
            target.id: ast.literal_eval(node.value)
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id in _LISTS
        }
        spellings, names, compounds = (_texts(found[name]) for name in _LISTS)
        patterns = tuple((re.compile(pattern), form) for pattern, form in compounds.items())
    except (OSError, SyntaxError, ValueError, KeyError, RecursionError, re.error) as error:
        raise InputError(f"the leaderboard's word lists cannot be read: {error}", where=str(path), fix=_FIX) from error
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return WordLists(spellings=spellings, names=names, compounds=patterns, digest=digest)


def _texts(data: object) -> dict[str, str]:
    if not isinstance(data, dict) or not all(isinstance(one, str) for pair in data.items() for one in pair):
        raise ValueError("a list is not a mapping of words")
    return data


@lru_cache(maxsize=4)
def normaliser_of(folder: str) -> tuple[Callable[[str], str], str]:
    """(rule for text, its id with that of the word lists) for a checkout. Raises InputError where it cannot be used."""
    from transformers.models.whisper.english_normalizer import EnglishNumberNormalizer, remove_symbols_and_diacritics

    lists = lists_of(Path(folder))
    replaced, numbers = _replacements(), EnglishNumberNormalizer()

    def normalise(text: str) -> str:
        text = _PARENTHESES.sub("", _BRACKETS.sub("", text.lower()))
        for pattern, form in replaced:
            text = pattern.sub(form, text)
        text = re.sub(r"(\d),(\d)", r"\1\2", text)
        text = re.sub(r"\.([^0-9]|$)", r" \1", text)
        text = remove_symbols_and_diacritics(text, keep=_KEPT_SYMBOLS)
        for pattern, form in lists.compounds:
            text = pattern.sub(form, text)
        words = [lists.spellings.get(word, word) for word in numbers(text).split()]
        text = " ".join(joined_letters([lists.names.get(word, word) for word in words]))
        text = re.sub(r"[.$¢€£]([^0-9])", r" \1", text)  # symbols that belong to no number
        text = re.sub(r"([^0-9])%", r"\1 ", text)
        return re.sub(r"\s+", " ", text)

    return normalise, f"{RULES_ID}+{lists.digest}"


def _replacements() -> list[tuple[re.Pattern[str], str]]:
    """What is replaced by what, in the order in which it is done."""
    titles = _TITLES.split()
    pairs = [(rf"\b({'|'.join(_FILLERS.split())})\b", ""), (r"\s+'", "'")]
    pairs += [(rf"\b{word}\b", form) for word, form in _WHOLE.items()]
    pairs += [(rf"\b{short}\b", f"{long} ") for short, long in zip(titles[::2], titles[1::2], strict=True)]
    pairs += [(rf"{ending}\b", form) for ending, form in _ENDINGS.items()]
    pairs += [(rf"\b({'|'.join(_IS_AFTER.split())})'s\b", r"\1 is")]
    pairs += [(rf"{ending}\b", form) for ending, form in _LAST_ENDINGS.items()]
    return [(re.compile(pattern), form) for pattern, form in pairs]


def joined_letters(words: Sequence[str]) -> list[str]:
    """Neighbouring single letters and digits as one word: `b b c` is `bbc`, `5 g` is `5g`, `a b` stays."""
    found: list[str] = []
    run: list[str] = []
    for word in [*words, ""]:
        if len(word) == 1 and word.isalnum():
            run.append(word)
            continue
        least = 3 if _LONE_WORDS & set(run) else 2
        found += ["".join(run)] if len(run) >= least else run
        run = []
        found += [word] if word else []
    return found


def errors(reference: str, output: str) -> tuple[int, int]:
    """(word errors, words of the reference) of normalised texts; a split or joined compound is no error."""
    from kaldialign import edit_distance

    found = edit_distance(tuple(reference.split()), tuple(output.split()), merge_compounds=True)
    return int(found["total"]), int(found["ref_len"])


def measured(pairs: Sequence[tuple[str, str]]) -> list[Measurement]:
    """Word errors and reference words of each (reference, output), with the lists that the environment names.

    Raises InputError where these cannot be read.
    """
    normalise, normaliser_id = normaliser_of(os.environ[VARIABLE])
    counts = [errors(normalise(reference), normalise(output)) for reference, output in pairs]
    notes = {"normaliser": normaliser_id}
    return [
        Measurement.of(metrics.WORD_ERRORS_OPEN_ASR, [float(wrong) for wrong, _ in counts], notes=notes),
        Measurement.of(metrics.REFERENCE_WORDS_OPEN_ASR, [float(size) for _, size in counts], notes=notes),
    ]
