"""How much of a text another one holds, by words. Good enough to tell recognition from noise on any machine."""

import re


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def share_heard(reference, heard):
    """The share of the reference's different words that were heard."""
    wanted = set(words(reference))
    return len(wanted & set(words(heard))) / len(wanted)
