"""Words of scripts that do not put blanks between words: pairs of neighbouring characters; pure.

The analysers of both databases take a run of Chinese, Japanese, Korean or Thai for one word, so that nothing
within it is found. Here a run ABC becomes the words AB, BC and, for its end, C. A query for AB finds it, one
for ABC as the phrase AB BC, and one for B or C as the beginning of a word. Text in other scripts stays as it
is. Passages keep what is made of them here: to make something else takes a migration.
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
"""Runs of a query that are looked for as phrases."""
MAX_PHRASE_PAIRS: Final = 64
"""Pairs of one phrase: what is longer is looked for by its beginning."""


@dataclass(frozen=True, slots=True)
class SegmentedQuery:
    """A query whose runs are pairs, with a blank on each side, and these in order for each longer run."""

    text: str
    phrases: tuple[str, ...] = ()


def segment_text(text: str) -> str | None:
    """Return a text as its words are indexed; None when that is the text itself."""
    return _RUN.sub(_indexed, text) if _RUN.search(text) else None


def segment_query(text: str) -> SegmentedQuery:
    """Return a query as its words are looked for."""
    runs = [_pairs(_letters(run)) for run in _RUN.findall(text)]
    phrases = dict.fromkeys(" ".join(pairs[:MAX_PHRASE_PAIRS]) for pairs in runs if len(pairs) > 1)
    return SegmentedQuery(_RUN.sub(_queried, text), tuple(phrases)[:MAX_PHRASES])


def is_letter(word: str) -> bool:
    """Tell whether a word is one character of these scripts: words are to be found that begin with it."""
    return len(word) == 1 and _RUN.match(word) is not None


def _indexed(match: re.Match[str]) -> str:
    letters = _letters(match[0])
    return f" {' '.join(letters[at : at + 2] for at in range(len(letters)))} "


def _queried(match: re.Match[str]) -> str:
    return f" {' '.join(_pairs(_letters(match[0])))} "


def _pairs(letters: str) -> list[str]:
    return [letters[at : at + 2] for at in range(len(letters) - 1)] or [letters]


def _letters(run: str) -> str:
    """Return a run in its common form, without marks: analysers do not agree on what these are."""
    folded = casefold_nfkc(run)
    if folded.isalpha():
        return folded
    return "".join(letter for letter in folded if not unicodedata.category(letter).startswith("M"))
