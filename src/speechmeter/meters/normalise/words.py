"""The words that `english.v1` knows. A change here is a new version of the normaliser."""

from __future__ import annotations

from collections.abc import Mapping

HESITATIONS = frozenset(["um", "umm", "uh", "uhh", "uhm", "er", "err", "erm", "hm", "hmm", "mm", "mmm", "mhm"])
"""Sounds that transcribers write or leave out as they like."""

CURRENCIES: Mapping[str, str] = {"$": "dollars", "£": "pounds", "€": "euros"}

IRREGULAR: Mapping[str, str] = {
    "won't": "will not",
    "can't": "can not",
    "cannot": "can not",
    "shan't": "shall not",
    "ain't": "is not",
    "let's": "let us",
    "y'all": "you all",
    "ma'am": "madam",
    "'cause": "because",
    "'em": "them",
    "'til": "until",
    "o'clock": "oclock",
}
"""Contractions that no rule for an ending gives."""

ENDINGS: Mapping[str, str] = {
    "n't": "not",
    "'re": "are",
    "'ll": "will",
    "'ve": "have",
    "'m": "am",
    "'d": "would",
}
"""What an ending stands for; `'d` is read as would, `'s` only after the words of `IS_AFTER`."""

IS_AFTER = frozenset(
    [
        "it",
        "that",
        "he",
        "she",
        "what",
        "there",
        "here",
        "who",
        "where",
        "how",
        "when",
        "why",
        "this",
        "everything",
        "everybody",
        "everyone",
    ]
)
"""Words after which `'s` is read as `is`; after any other it is a possessive, and joins its word."""

ONE_FORM: Mapping[str, str] = {
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
    "prof": "professor",
    "jr": "junior",
    "sr": "senior",
    "capt": "captain",
    "lt": "lieutenant",
    "vs": "versus",
    "etc": "et cetera",
    "okay": "ok",
    "gonna": "going to",
    "wanna": "want to",
    "gotta": "got to",
    "gimme": "give me",
    "lemme": "let me",
    "dunno": "do not know",
    "alright": "all right",
    "mom": "mum",
    "grey": "gray",
    "cheque": "check",
    "cheques": "checks",
    "programme": "program",
    "programmes": "programs",
    "tyre": "tire",
    "tyres": "tires",
    "pyjamas": "pajamas",
    "jewellery": "jewelry",
    "aluminium": "aluminum",
    "plough": "plow",
    "ploughs": "plows",
    "kerb": "curb",
    "ageing": "aging",
    "judgement": "judgment",
    "acknowledgement": "acknowledgment",
    "moustache": "mustache",
    "enrol": "enroll",
    "fulfil": "fulfill",
    "skilful": "skillful",
    "towards": "toward",
    "afterwards": "afterward",
    "whilst": "while",
    "amongst": "among",
    "learnt": "learned",
    "burnt": "burned",
    "dreamt": "dreamed",
    "spelt": "spelled",
}
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
    "s",
    "d",
    "ed",
    "ing",
    "able",
    "ful",
    "hood",
    "al",
    "ally",
    "ly",
    "y",
    "ite",
    "ites",
    "er",
    "ers",
    "less",
    "r",
)


def american(word: str) -> str:
    """The American spelling of a word that has two, by a short list of stems; any other word as it is."""
    if word in _STEMS:
        return _STEMS[word]
    for tail in _TAILS:
        stem = word.removesuffix(tail)
        if stem != word and stem in _STEMS:
            return _STEMS[stem] + tail
    return word
