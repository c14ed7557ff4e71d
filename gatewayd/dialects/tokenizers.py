"""Tokenizers of model families, where the extra `tokens` is installed."""

import re
from functools import cache
from typing import Any, Final

from gatewayd.completions.records import Body
from gatewayd.dialects.token_estimate import TextTokens, count_tokens, text_tokens
from gatewayd.extras import PackageExtra, find_library
from gatewayd.pipeline.local_counts import CountMethod, TokenCount

DEFAULT_ENCODING: Final = "o200k_base"
"""The encoding of OpenAI's models since GPT-4o, and the one for families without a tokenizer here."""

ENCODINGS: Final = (
    (re.compile(r"gpt-(?:3\.5|4)(?![.o\d])"), "cl100k_base"),
    (re.compile(r"gpt-oss"), "o200k_harmony"),
    (re.compile(r"(?:meta-)?llama-?3"), "llama3"),
    (re.compile(r"qwen-?(?:2\.5|3)"), "qwen3"),
)
"""Beginnings of the canonical ids of models whose encoding is another."""

PIECE_CHARACTERS: Final = 65_536
"""Number of characters that are counted at once, so that other threads get a turn."""


def encoding_of(family: str) -> str:
    """Return the name of the encoding of a family, the canonical id of a model."""
    name = family.lower().rpartition("/")[2]
    return next((encoding for start, encoding in ENCODINGS if start.match(name)), DEFAULT_ENCODING)


def tokenizer_of(family: str) -> TextTokens | None:
    """Return the counter of a family, None without the extra; the first call of a family reads a file."""
    library = find_library(PackageExtra.TOKENS)
    return None if library is None else _counter(library, encoding_of(family))


@cache
def _counter(library: Any, encoding: str) -> TextTokens:
    count: TextTokens = library.get_encoding(encoding).count

    def count_text(text: str) -> int:
        try:
            return sum(
                count(text[start : start + PIECE_CHARACTERS])
                for start in range(0, len(text), PIECE_CHARACTERS)
            )
        except TypeError:
            # Half a character of UTF-16, which no model reads.
            return text_tokens(text)

    return count_text


def count_locally(body: Body, family: str) -> TokenCount:
    """Return the count of a messages request by the tokenizer of a family, without one the estimate."""
    tokenizer = tokenizer_of(family)
    method = CountMethod.ESTIMATE if tokenizer is None else CountMethod.TOKENIZER
    return TokenCount(count_tokens(body, tokenizer), method)
