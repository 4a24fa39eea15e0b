"""Text made comparable before words are counted. Each normaliser has an id with a version, stored with the figures.

`basic`, for any language: lower case, punctuation and symbols to spaces, single spaces. History: `basic.v1` made a
space of every invisible character, so that joiners (U+200C, U+200D) split words of Persian and Indic scripts, and a
soft hyphen split any word; it left combining marks that had lost their letter as words of their own. `basic.v2` drops
what is invisible, and marks without a letter.

`english`: `basic`, and one form for what English writes in several. Contractions, titles, spelling and numbers get one
form each; hesitations and tags such as [noise] are left out. History: `english.v1` is made on `basic.v1`, `english.v2`
on `basic.v2`. A change of any word below is a new version.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from speechmeter.core.english_numbers import in_digits

_SPACES = dict.fromkeys((0x200B, 0x2028, 0x2029), " ")
"""The space without width separates words of Thai, Khmer and Burmese."""
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Code points with the property Default_Ignorable_Code_Point of Unicode 15, which `unicodedata` does not have."""

_TAG = re.compile(r"\[[^\]]*\]|<[^>]*>")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_CLOCK = re.compile(r"\b(\d{2}):([1-5]\d)\b")
_MONEY = re.compile(r"([$£€])\s?(\d+(?:\.\d+)?)((?:\s(?:hundred|thousand|million|billion))?)")
_DECIMAL = re.compile(r"(?<=\d)\.(?=\d)")
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ", "'"))
_WORD = re.compile(r"[\w']+")
_HESITATIONS = frozenset(["um", "umm", "uh", "uhh", "uhm", "er", "err", "erm", "hm", "hmm", "mm", "mmm", "mhm"])
"""Sounds that transcribers write or leave out as they like."""
_CURRENCIES: Mapping[str, str] = {"$": "dollars", "£": "pounds", "€": "euros"}
_IRREGULAR: Mapping[str, str] = {
    "won't": "will not", "can't": "can not", "cannot": "can not", "shan't": "shall not", "ain't": "is not",
    "let's": "let us", "y'all": "you all", "ma'am": "madam", "'cause": "because", "'em": "them", "'til": "until",
    "o'clock": "oclock",
}  # fmt: skip
"""Contractions that no rule for an ending gives."""
_ENDINGS: Mapping[str, str] = {
    "n't": "not", "'re": "are", "'ll": "will", "'ve": "have", "'m": "am", "'d": "would",
}  # fmt: skip
"""What an ending means; `'d` is read as would, `'s` only after the words of `_IS_AFTER`."""
_IS_AFTER = frozenset({
    "it", "that", "he", "she", "what", "there", "here", "who", "where", "how", "when", "why", "this", "everything",
    "everybody", "everyone",
})  # fmt: skip
"""Words after which `'s` is read as `is`; after any other it is a possessive, and joins its word."""
_ONE_FORM: Mapping[str, str] = {
    "mr": "mister", "mrs": "missus", "dr": "doctor", "prof": "professor", "jr": "junior", "sr": "senior",
    "capt": "captain", "lt": "lieutenant", "vs": "versus", "etc": "et cetera", "okay": "ok", "gonna": "going to",
    "wanna": "want to", "gotta": "got to", "gimme": "give me", "lemme": "let me", "dunno": "do not know",
    "alright": "all right", "mom": "mum", "grey": "gray", "cheque": "check", "cheques": "checks",
    "programme": "program", "programmes": "programs", "tyre": "tire", "tyres": "tires", "pyjamas": "pajamas",
    "jewellery": "jewelry", "aluminium": "aluminum", "plough": "plow", "ploughs": "plows", "kerb": "curb",
    "ageing": "aging", "judgement": "judgment", "acknowledgement": "acknowledgment", "moustache": "mustache",
    "enrol": "enroll", "fulfil": "fulfill", "skilful": "skillful", "towards": "toward", "afterwards": "afterward",
    "whilst": "while", "amongst": "among", "learnt": "learned", "burnt": "burned", "dreamt": "dreamed",
    "spelt": "spelled",
}  # fmt: skip
"""Words with another common form."""
_OUR = (
    "arbour ardour armour behaviour candour clamour colour demeanour endeavour favour fervour flavour harbour honour "
    "humour labour neighbour odour parlour rancour rigour rumour saviour savour splendour tumour valour vapour vigour"
)
_ISE = (
    "agonis apologis authoris capitalis categoris characteris civilis colonis criticis crystallis customis digitis "
    "emphasis energis equalis familiaris fertilis finalis generalis harmonis hypnotis idealis immunis industrialis "
    "legalis localis materialis maximis memoris minimis mobilis modernis monopolis nationalis naturalis neutralis "
    "normalis optimis organis patronis penalis personalis popularis prioritis publicis rationalis realis recognis "
    "reorganis socialis specialis stabilis standardis sterilis summaris symbolis sympathis synchronis terroris "
    "utilis visualis"
)
_DOUBLED = "travel cancel model label level signal fuel counsel quarrel marvel dial"
_RE = "calibre centre fibre kilometre litre lustre metre centimetre millimetre millilitre sabre sombre spectre theatre"
_STEMS: Mapping[str, str] = {
    **{word: word.removesuffix("our") + "or" for word in _OUR.split()},
    **{f"{stem}{ending}": f"{stem[:-1]}z{ending}" for stem in _ISE.split() for ending in ("e", "ing", "ation")},
    **{word: word.removesuffix("re") + "er" for word in _RE.split()},
    "centred": "centered", "centring": "centering",
    **{f"{verb}l{ending}": f"{verb}{ending}"
       for verb in _DOUBLED.split()
       for ending in ("ed", "ing", "er")},
    "analyse": "analyze", "analysing": "analyzing", "paralyse": "paralyze", "catalogue": "catalog",
    "dialogue": "dialog", "analogue": "analog", "defence": "defense", "offence": "offense", "licence": "license",
    "pretence": "pretense", "practise": "practice", "practising": "practicing", "mould": "mold", "sceptic": "skeptic",
    "manoeuvre": "maneuver", "anaesthetic": "anesthetic", "encyclopaedia": "encyclopedia", "paediatric": "pediatric",
    "marvellous": "marvelous", "woollen": "woolen",
}  # fmt: skip
_TAILS = (
    "s", "d", "ed", "ing", "able", "ful", "hood", "al", "ally", "ly", "y", "ite", "ites", "er", "ers", "less", "r",
)  # fmt: skip


def _basic_v1(text: str) -> str:
    """Letters, marks and digits alone, in lower case, with one space between words."""
    lowered = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(" " if unicodedata.category(char)[0] in "PSZC" else char for char in lowered).split())


def _basic(text: str) -> str:
    """Letters with their marks and digits alone, in lower case, with one space between words.

    What is invisible goes, and the letters beside it stay together. A code point that this Python does not know is a
    letter, so that a figure does not depend on the version of Python.
    """
    composed = unicodedata.normalize("NFKC", _visible(text))
    lowered = unicodedata.normalize("NFKC", composed.lower())
    kept: list[str] = []
    for char in lowered:
        kind = unicodedata.category(char)
        if kind[0] in "PSZ" or kind in ("Cc", "Cs"):
            kept.append(" ")
        elif kind[0] != "M" or (kind != "Me" and kept and kept[-1] != " "):
            kept.append(char)
    return " ".join("".join(kept).split())


def _visible(text: str) -> str:
    """The text without characters that are never seen; those that part words are spaces."""
    return _IGNORABLE.sub("", text.translate(_SPACES))


def _english_v1(text: str) -> str:
    """English text in one form, in lower case, with one space between words."""
    return _one_form(text, _basic_v1)


def _english(text: str) -> str:
    """The same, in which what is invisible does not split words."""
    return _one_form(_visible(text), _basic)


def _one_form(text: str, plain: Callable[[str], str]) -> str:
    lowered = text.lower().translate(_APOSTROPHES)
    # symbols as they are spoken; the point of a decimal too
    spoken = _CLOCK.sub(r"\1\2", _THOUSANDS.sub("", _TAG.sub(" ", lowered)))
    spoken = _MONEY.sub(lambda found: f"{found[2]}{found[3]} {_CURRENCIES[found[1]]}", spoken)
    spoken = _DECIMAL.sub(" point ", spoken).replace("%", " percent ").replace("&", " and ")
    words = plain(_WORD.sub(lambda found: _spelt_out(found[0]), spoken)).split()
    one_form = " ".join(_ONE_FORM.get(word, _american(word)) for word in words if word not in _HESITATIONS)
    return " ".join(in_digits(one_form.replace("per cent", "percent").split()))


def _spelt_out(word: str) -> str:
    """A contraction in full; an apostrophe that is left over is dropped, and its two sides are joined."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    word = word.strip("'")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("'s") and word[:-2] in _IS_AFTER:
        return f"{word[:-2]} is"
    for ending, meant in _ENDINGS.items():
        if word.endswith(ending):
            return f"{word.removesuffix(ending)} {meant}"
    return word.replace("'", "")


def _american(word: str) -> str:
    """The American spelling of a word that has two, by a short list of stems; any other word as it is."""
    if word in _STEMS:
        return _STEMS[word]
    for tail in _TAILS:
        stem = word.removesuffix(tail)
        if stem != word and stem in _STEMS:
            return _STEMS[stem] + tail
    return word


_RULES: dict[str, Callable[[str], str]] = {
    "none.v1": lambda text: " ".join(text.split()),
    "basic.v1": _basic_v1,
    "basic.v2": _basic,
    "english.v1": _english_v1,
    "english.v2": _english,
}


def normaliser(id: str) -> Callable[[str], str]:
    """The rule for text of an id such as `english.v1`. Raises KeyError for one that this version does not have."""
    return _RULES[id]
