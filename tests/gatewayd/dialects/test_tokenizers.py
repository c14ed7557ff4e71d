"""Tests for gatewayd.dialects.tokenizers."""

import pytest

from gatewayd.dialects import tokenizers
from gatewayd.dialects.token_estimate import count_tokens, text_tokens
from gatewayd.dialects.tokenizers import PIECE_CHARACTERS, count_locally, encoding_of, tokenizer_of
from gatewayd.pipeline.local_counts import CountMethod

BODY = {"messages": [{"role": "user", "content": "price: 1.37"}]}


@pytest.mark.parametrize(
    ("family", "encoding"),
    [
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo-2024-04-09", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4.1", "o200k_base"),
        ("gpt-5.5", "o200k_base"),
        ("openai/gpt-oss-120b", "o200k_harmony"),
        ("meta-llama/Llama-3.3-70B", "llama3"),
        ("llama3.1", "llama3"),
        ("Qwen/Qwen3-8B", "qwen3"),
        ("qwen2.5-coder", "qwen3"),
        ("claude-opus-5", "o200k_base"),
        ("", "o200k_base"),
    ],
)
def test_families_have_their_encoding(family: str, encoding: str) -> None:
    assert encoding_of(family) == encoding


@pytest.mark.parametrize(
    ("family", "text", "tokens"),
    # By tiktoken.
    [
        ("gpt-4o", "hello w\u00f6rld", 4),
        ("gpt-4", "\u4eba\u4eba\u751f\u800c\u81ea\u7531", 6),
        ("gpt-4o", "\u4eba\u4eba\u751f\u800c\u81ea\u7531", 4),
    ],
)
def test_texts_are_counted_by_the_tokenizer(family: str, text: str, tokens: int) -> None:
    counter = tokenizer_of(family)
    assert counter is not None
    assert counter(text) == tokens


def test_long_texts_are_counted_in_pieces() -> None:
    counter = tokenizer_of("gpt-4o")
    assert counter is not None
    text = "The quick brown fox. " * (PIECE_CHARACTERS // 7)
    assert counter(text) == pytest.approx(counter(text[:2100]) * len(text) / 2100, rel=0.005)
    assert counter("") == 0
    # Half of a character is no text for the tokenizer.
    assert counter("x\ud800") == text_tokens("x\ud800")


def test_without_the_extra_it_is_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    found = count_locally(BODY, "gpt-4o")
    assert found.method is CountMethod.TOKENIZER
    monkeypatch.setattr(tokenizers, "find_library", lambda _: None)
    assert count_locally(BODY, "gpt-4o") == (count_tokens(BODY), CountMethod.ESTIMATE)
