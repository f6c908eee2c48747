"""The identity of a data set, as its owner writes it and as a ledger compares it.

One data set must not have two accounts because of how its name is typed. Identities are compared after NFKC
and case folding; what a reader cannot see, or not tell from another letter, is refused by its Unicode name.

A simple rule instead of Unicode's table of confusable characters: letters of one script, ASCII digits and
ASCII punctuation. So a Cyrillic letter does not stand among Latin ones; and a name all of whose letters look
like Latin ones, though none is, is refused as well.
"""

from __future__ import annotations

import unicodedata

from atoll.errors import ParameterError

# Letters by their category that show nothing: fillers and inherent vowels.
_BLANK_LETTERS = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0")
# Writing systems that are used together, by the first words of their letters' names.
_TOGETHER = dict.fromkeys(("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"), "east asian")
# Scripts that are written today. Among the others are some whose letters are drawn like Latin capitals:
# all of "COHORT" can be written in Lisu.
# fmt: off
_SCRIPTS = frozenset({
    *_TOGETHER, "LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "HEBREW", "ARABIC", "SYRIAC",
    "THAANA", "ETHIOPIC", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU",
    "KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN", "MYANMAR", "KHMER", "MONGOLIAN",
})
# fmt: on
# Of the Latin letters beyond ASCII: these, and others that are a letter with an accent. The rest (phonetic
# ones, clicks, small capitals) are lookalikes more than letters.
_LATIN = range(0x00C0, 0x0180)
_NO_LATIN = "\u0138"  # kra, a small k without its stem
# Letters without accents that are drawn like Latin ones.
_LIKE_LATIN = frozenset(
    "АВЕЅІЈКМНОРСТУХҮаеорсухіјѕһԁԛԝӏүѵ"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυχγ"  # Greek
    "ԼՍՕգզհոսցօյք"  # Armenian
)


def canonical(identity: str) -> str:
    """The key that an identity is booked under; the same for all ways to write it."""
    if not isinstance(identity, str) or not identity.strip():
        raise ParameterError(
            "a private release needs the identity of the data set it is made from",
            hint="name the data set as its owner knows it; a new file of the same people is no new data set",
        )
    for character in identity:
        _refuse_unseen(identity, character)
    if identity != identity.strip():
        raise _refused(identity, "begins or ends with a blank")
    shown = unicodedata.normalize("NFKC", identity)
    _refuse_lookalikes(shown)
    return _key(shown)


def _key(shown: str) -> str:
    folded = unicodedata.normalize("NFKC", shown.casefold())
    # The only letter of Turkish that differs from an ASCII one by a dot alone. Capital eth and D with a
    # stroke look the same.
    for one, other in (("\u0131", "i"), ("i\u0307", "i"), ("\u00f0", "\u0111")):
        folded = folded.replace(one, other)
    return " ".join(folded.split())


def lenient(identity: str) -> str:
    """The key of an identity that an earlier version let pass: what cannot be seen is left out."""
    seen = "".join(c for c in identity if not _unseen(c))
    return _key(unicodedata.normalize("NFKC", seen)) or identity


def _unseen(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp") or character in _BLANK_LETTERS


def _refuse_unseen(identity: str, character: str) -> None:
    if _unseen(character):
        raise _refused(identity, f"holds {_name(character)}, which nobody can see")


def _refuse_lookalikes(shown: str) -> None:
    first: str | None = None
    foreign = [c for c in shown if not c.isascii()]
    letters = [c for c in unicodedata.normalize("NFD", shown) if c.isalpha()]
    for character in shown:
        if character.isascii() and not character.isalpha():
            continue
        script = _script(shown, character)
        if first is not None and script != _script(shown, first):
            other = character if not character.isascii() else first
            raise _refused(shown, f"mixes letters of two scripts: {_name(other)} stands among others")
        first = first or character
    if foreign and letters and all(c in _LIKE_LATIN for c in letters):
        raise _refused(shown, f"looks like Latin letters and is not: {_name(letters[0])}")


def _script(shown: str, character: str) -> str:
    """Of a letter or of a mark that belongs to one; anything else has no place in an identity."""
    script = unicodedata.name(character, "").split(" ")[0].split("-")[0]
    if unicodedata.category(character)[0] not in "LM" or script in ("COMBINING", "VARIATION", "MODIFIER"):
        raise _refused(shown, f"holds {_name(character)}, which is neither a letter nor an ASCII character")
    if script not in _SCRIPTS or (script == "LATIN" and not _is_usual(character)):
        raise _refused(shown, f"holds {_name(character)}, which is easily taken for another letter")
    return _TOGETHER.get(script, script)


def _is_usual(latin: str) -> bool:
    """An ASCII letter, one of a European alphabet, or one of these with accents (as in Vietnamese)."""
    base = unicodedata.normalize("NFD", latin)[0]
    return base.isascii() or (ord(base) in _LATIN and base not in _NO_LATIN)


def _name(character: str) -> str:
    return f"{unicodedata.name(character, 'a control character')} (U+{ord(character):04X})"


def _refused(identity: str, why: str) -> ParameterError:
    return ParameterError(
        f"the identity {identity!a} {why}; it would be another account for the same people",
        hint="letters of one script, ASCII digits and punctuation, nothing invisible",
    )
