"""Bigram segmentation of scripts without blanks between words; pure functions.

The text analysers of both databases treat a run of Chinese, Japanese, Korean or Thai as one word, so that no
part of it is found. Here a run ABC becomes the words AB, BC and, for its end, C. A query for AB matches the
word AB, one for ABC the phrase AB BC, and one for B or C the prefix of a word. Text in other scripts is
unchanged. Passages store the segmented text, so a change of the segmentation needs a migration.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from gatewayd.text import casefold_nfkc

# Letters and marks, without digits and punctuation: Thai, Lao, Burmese, Khmer, Hangul, kana, bopomofo, Han.
_SCRIPTS: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"
    "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"
    "\u1000-\u103f\u1050-\u108f"
    "\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa1-\uffdc"
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u3105-\u312f\u31a0-\u31bf"
    "\u3005-\u3007\u3031-\u3035\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_RUN: Final = re.compile(f"[{_SCRIPTS}]+")
MAX_PHRASES: Final = 8
"""Maximum number of runs of a query that are searched as phrases."""
MAX_PHRASE_PAIRS: Final = 64
"""Maximum number of pairs of a phrase; a longer run is searched by its beginning."""


@dataclass(frozen=True, slots=True)
class SegmentedQuery:
    """A query with segmented runs, and the phrase (pairs in order) of each run of over two characters."""

    text: str
    phrases: tuple[str, ...] = ()


def segment_text(text: str) -> str | None:
    """Return the segmented text for the index, None when it equals the text."""
    return _RUN.sub(_segment_run, text) if _RUN.search(text) else None


def segment_query(text: str) -> SegmentedQuery:
    """Return the segmented query."""
    runs = [_pairs(_letters(run)) for run in _RUN.findall(text)]
    phrases = dict.fromkeys(" ".join(pairs[:MAX_PHRASE_PAIRS]) for pairs in runs if len(pairs) > 1)
    return SegmentedQuery(_RUN.sub(_query_run, text), tuple(phrases)[:MAX_PHRASES])


def is_letter(word: str) -> bool:
    """Return whether a word is a single character of these scripts, which is searched as a prefix."""
    return len(word) == 1 and _RUN.match(word) is not None


def _segment_run(match: re.Match[str]) -> str:
    letters = _letters(match[0])
    return f" {' '.join(letters[at : at + 2] for at in range(len(letters)))} "


def _query_run(match: re.Match[str]) -> str:
    return f" {' '.join(_pairs(_letters(match[0])))} "


def _pairs(letters: str) -> list[str]:
    return [letters[at : at + 2] for at in range(len(letters) - 1)] or [letters]


def _letters(run: str) -> str:
    """Return a run in NFKC, folded and without marks, which the analysers treat differently."""
    folded = casefold_nfkc(run)
    if folded.isalpha():
        return folded
    return "".join(letter for letter in folded if not unicodedata.category(letter).startswith("M"))
